package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func newCore(format string, level zap.AtomicLevel, out io.Writer) zapcore.Core {
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewConsoleEncoder(c)
	if format == "json" {
		encoder = zapcore.NewJSONEncoder(c)
	}
	return zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), level)
}

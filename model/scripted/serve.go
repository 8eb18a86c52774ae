package scripted

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// Serve answers on addr, such as "127.0.0.1:8585", until ctx is done; then it ends every request that is still open. That is
// no error.
func Serve(ctx context.Context, addr string, log *zap.Logger, scenarios ...*Scenario) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("scripted model: %w", err)
	}
	s := New(scenarios...)
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          zap.NewStdLog(log),
	}
	log.Info("scripted model listens", zap.String("base_url", "http://"+listener.Addr().String()+"/v1"), zap.Strings("scenarios", s.names()))
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); ctx.Err() == nil || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("scripted model on %s: %w", addr, err)
	}
	return nil
}

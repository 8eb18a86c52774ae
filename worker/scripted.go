package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"go.uber.org/zap"

	"belay/model/scripted"
)

// serveScripted serves scenario files as an OpenAI-compatible endpoint: the model of the demo and of tests.
func serveScripted(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("belay-worker scripted-model", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:7480", "address to listen on")
	scenarios := flags.String("scenarios", "", "a scenario file, or a folder of them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *scenarios == "" {
		return errors.New("scripted-model: --scenarios: missing; expected a scenario file or a folder of them")
	}
	list, err := scripted.Load(*scenarios)
	if err != nil {
		return fmt.Errorf("scripted-model: %w", err)
	}
	log := zap.New(newCore("console", zap.NewAtomicLevel(), stderr))
	return scripted.Serve(ctx, *listen, log, list...)
}

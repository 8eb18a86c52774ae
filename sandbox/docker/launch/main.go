// Belay-container is the launcher of package docker: it takes a wire.Launch on its standard input, starts the container that
// it describes, and ends. Supervisors run it. It is a program of its own so that neither they nor the agents, which are in
// every sandbox, carry a Docker client.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"belay/sandbox/docker/container"
	"belay/sandbox/process/wire"
)

func main() {
	if err := launch(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func launch(ctx context.Context) error {
	var l wire.Launch
	if err := json.NewDecoder(os.Stdin).Decode(&l); err != nil {
		return fmt.Errorf("belay-container is started by belay-sandbox and has no use of its own: read launch: %w", err)
	}
	var s container.Spec
	if err := json.Unmarshal(l.Spec, &s); err != nil {
		return fmt.Errorf("read specification: %w", err)
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	return s.Start(ctx, c, l)
}

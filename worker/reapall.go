package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"belay/activities"
	"belay/sandbox/process"
)

// reapAll destroys every sandbox of this host, whether its task still needs it or not: for a host that is taken out of
// service, and for `make clean`. Tasks that wait go on elsewhere from their last checkpoint. It needs no Temporal server.
func reapAll(ctx context.Context, args []string, stdout io.Writer) error {
	s, err := readSettings(args, stdout)
	if err != nil {
		return err
	}
	boxes, err := process.New(process.Config{StateDir: filepath.Join(s.State, "sandboxes"), MaxSandboxes: s.MaxSandboxes})
	if err != nil {
		return err
	}
	ids, err := boxes.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		err := boxes.Destroy(ctx, id)
		if err == nil {
			err = activities.Forget(filepath.Join(s.State, "index"), id)
			fmt.Fprintln(stdout, "sandbox ended:", id)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

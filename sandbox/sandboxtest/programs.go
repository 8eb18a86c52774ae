package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
)

// exec runs the few programs that there are.
func (s *shell) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	var err error
	switch args[0] {
	case "cat":
		err = s.cat(ctx, hc, args[1:])
	case "sleep":
		err = sleep(ctx, args[1:])
	case "mkdir":
		err = s.change(hc, args[1:], func(name string) error { return s.root.MkdirAll(name, 0o755) })
	case "rm":
		err = s.change(hc, args[1:], s.root.RemoveAll)
	default:
		fmt.Fprintf(hc.Stderr, "%s: command not found\n", args[0])
		return interp.ExitStatus(127)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	fmt.Fprintf(hc.Stderr, "%s: %v\n", args[0], err)
	return interp.ExitStatus(1)
}

func (s *shell) cat(ctx context.Context, hc interp.HandlerContext, names []string) error {
	if len(names) == 0 {
		if in, ok := hc.Stdin.(*os.File); ok && in != nil {
			_, err := io.Copy(hc.Stdout, in)
			return err
		}
		return nil
	}
	for _, name := range names {
		f, err := s.open(ctx, name, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		_, err = io.Copy(hc.Stdout, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// sleep takes seconds.
func sleep(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("expected a number of seconds")
	}
	d, err := time.ParseDuration(args[0] + "s")
	if err != nil {
		return fmt.Errorf("%q: expected a number of seconds", args[0])
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// change does something to each path in the workspace; options are ignored.
func (s *shell) change(hc interp.HandlerContext, args []string, do func(string) error) error {
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		if !path.IsAbs(a) {
			a = path.Join(hc.Dir, a)
		}
		name, err := inside(a)
		if err != nil {
			return err
		}
		if s.readOnly {
			return &fs.PathError{Op: "write", Path: a, Err: syscall.EROFS}
		}
		s.box.still.RLock()
		err = do(name)
		s.box.still.RUnlock()
		if err != nil {
			return err
		}
	}
	return nil
}

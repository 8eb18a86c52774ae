package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"belay/agent"
	"belay/sandbox"
)

// failure makes an error the runtime's concern: it says what was being done, and has a category.
func failure(err error, format string, args ...any) error {
	doing := fmt.Sprintf(format, args...)
	if agent.TypeOf(err) != "" {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return agent.Errorf(category(err), "%s: %w", doing, err)
}

// category sorts the errors of a sandbox and of a context. Detaching counts as a cancellation: who stops a worker looks
// for sandbox.ErrDetached first.
func category(err error) agent.ErrorType {
	switch {
	case errors.Is(err, sandbox.ErrDetached), errors.Is(err, context.Canceled):
		return agent.Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return agent.Timeout
	case errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrNotFound):
		return agent.SandboxLost
	case errors.Is(err, sandbox.ErrConflict):
		return agent.StateError
	case errors.Is(err, sandbox.ErrBusy):
		return agent.ResourceExhausted
	case errors.Is(err, sandbox.ErrUnsupported):
		return agent.InvalidInput
	}
	return agent.ToolError
}

// outcome sorts what a file operation ended with: what the model can mend becomes an observation, the rest an error.
func outcome(env Env, text string, err error) (agent.Observation, error) {
	o := agent.Observation{Call: env.Call, Status: agent.CallOK, Text: text}
	if err == nil {
		return o, nil
	}
	var r refusal
	switch errno, path := mendable(err); {
	case errors.As(err, &r):
		o.Status, o.Text = r.status, r.text
	case errors.Is(err, errOutside):
		o.Status, o.Text = agent.CallInvalid, err.Error()
	case errno != 0:
		o.Status, o.Text = agent.CallFailed, fmt.Sprintf("%s: %v", visibleName(path), errno)
	default:
		return agent.Observation{}, failure(err, "call %s", env.Call)
	}
	return o, nil
}

// mendable finds an error of the file system that another path, another permission or less data would avoid, and the path
// in the workspace that it is about.
func mendable(err error) (syscall.Errno, string) {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok || !slices.Contains([]syscall.Errno{
		syscall.EACCES, syscall.EPERM, syscall.ENOENT, syscall.EEXIST, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOTEMPTY,
		syscall.ENAMETOOLONG, syscall.ELOOP, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.ENXIO,
	}, errno) {
		return 0, ""
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return errno, p.Path
	}
	return errno, "workspace"
}

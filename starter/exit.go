package main

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"belay/agent"
)

// The exit codes.
const (
	exitDone        = 0
	exitNotWell     = 1 // the task did not finish well, or something failed on the way
	exitUsage       = 2 // bad usage or input
	exitUnreachable = 3 // Temporal can't be reached
	exitRefused     = 4 // by policy, by the task or by its ledger
)

// coded is an error that knows its exit code.
type coded struct {
	code int
	err  error
}

func (e coded) Error() string { return e.err.Error() }
func (e coded) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return coded{exitUsage, fmt.Errorf(format, args...)} }

func refusedf(format string, args ...any) error {
	return coded{exitRefused, fmt.Errorf(format, args...)}
}

// exitCode gives the exit code of an error.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if e, ok := errors.AsType[coded](err); ok {
		return e.code
	}
	if agent.TypeOf(err) == agent.InvalidInput {
		return exitUsage
	}
	if unreachable(err) {
		return exitUnreachable
	}
	return exitNotWell
}

// spelledOut puts into words what the server says only tersely.
func spelledOut(err error) error {
	if e, ok := errors.AsType[*serviceerror.NamespaceNotFound](err); ok {
		return usagef("the Temporal server has no namespace %q; see --namespace and TEMPORAL_NAMESPACE", e.Namespace)
	}
	return err
}

func unreachable(err error) bool {
	if _, ok := errors.AsType[*serviceerror.Unavailable](err); ok {
		return true
	}
	_, ok := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return ok
}

// answerOf turns what came back from a running task or ledger into what its sender is to know.
func answerOf(id string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return refusedf("refused: %s", e.Message())
	}
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return coded{exitUsage, fmt.Errorf("%q is not running: it has ended, or there is no such workflow", id)}
	}
	if e, ok := errors.AsType[*serviceerror.QueryFailed](err); ok {
		return fmt.Errorf("%q can't answer: %w", id, e)
	}
	_, idle := errors.AsType[*serviceerror.FailedPrecondition](err)
	_, early := errors.AsType[*serviceerror.WorkflowNotReady](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	_, waited := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	if idle || early || late || waited || errors.Is(err, context.DeadlineExceeded) {
		return coded{exitNotWell, fmt.Errorf("%q did not answer within %s; is a worker running that serves it?", id, answerTime)}
	}
	return err
}

// stopped is nil when it was the user who stopped waiting.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"belay/activities"
	"belay/sandbox"
	"belay/workflows"
)

// reapEvery is how often a worker looks for sandboxes whose run is gone.
const reapEvery = 5 * time.Minute

// reaper destroys the sandboxes of this host that no run needs any more: those of tasks that were terminated or reset, or
// whose release was lost.
type reaper struct {
	c        client.Client
	boxes    sandbox.Runtime
	indexDir string
	log      *slog.Logger
}

func (r reaper) run(ctx context.Context) {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		if err := r.pass(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("sandboxes not reaped", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r reaper) pass(ctx context.Context) error {
	ids, err := r.boxes.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		needed, err := r.needed(ctx, id)
		if err == nil && !needed {
			r.log.Info("sandbox reaped: its run is gone", "sandbox", id)
			err = errors.Join(r.boxes.Destroy(ctx, id), activities.Forget(r.indexDir, id))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// needed says whether the run that a sandbox was made for still goes on under the id that the sandbox carries.
func (r reaper) needed(ctx context.Context, id sandbox.ID) (bool, error) {
	owner, err := os.ReadFile(activities.OwnerFile(r.indexDir, id))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // it is written before the sandbox is made
	}
	if err != nil {
		return true, fmt.Errorf("owner of sandbox %s: %w", id, err)
	}
	d, err := r.c.DescribeWorkflow(ctx, string(owner), "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("task of sandbox %s: %w", id, err)
	}
	if d.RawResponse.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return false, nil
	}
	v, err := r.c.QueryWorkflow(ctx, string(owner), "", workflows.QueryState)
	var s workflows.Status
	if err == nil {
		err = v.Get(&s)
	}
	if err != nil {
		return true, fmt.Errorf("task of sandbox %s: %w", id, err)
	}
	return s.Sandbox == "" || s.Sandbox == string(id), nil
}

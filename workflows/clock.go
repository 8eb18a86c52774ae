package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"belay/agent"
)

// The clock of task_timeout counts work: model calls, tool calls, checkpoints. It stands while the task is paused or
// waits for people.

// tick brings Worked up to now.
func (r *run) tick(ctx workflow.Context) {
	now := workflow.Now(ctx)
	if r.working {
		r.Worked += agent.Duration(now.Sub(r.since))
	}
	r.since = now
}

// during runs f with the clock running.
func (r *run) during(ctx workflow.Context, f func() error) error {
	r.tick(ctx)
	r.working = true
	defer func() {
		r.tick(ctx)
		r.working = false
	}()
	return f()
}

// left is what remains of the task's time.
func (r *run) left(ctx workflow.Context) time.Duration {
	r.tick(ctx)
	return time.Duration(r.Limits.TaskTimeout - r.Worked)
}

// watchClock stops the work when the task's time is up. One timer serves for many steps: it is set for what remains, and
// set again if there is still time left when it fires.
func (r *run) watchClock(ctx workflow.Context) {
	for r.end == nil {
		if err := workflow.Await(ctx, func() bool { return r.end != nil || r.working && r.Limits.TaskTimeout > 0 }); err != nil || r.end != nil {
			return
		}
		left := r.left(ctx)
		if left <= 0 {
			r.timedOut = true
			r.stopWork()
			// A raise may give the task more time and new work.
			if err := workflow.Await(ctx, func() bool { return r.end != nil || !r.timedOut }); err != nil {
				return
			}
			continue
		}
		timer := workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "task timeout"})
		if err := timer.Get(ctx, nil); err != nil {
			return
		}
	}
}

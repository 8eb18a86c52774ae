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
	if r.working && !r.held() {
		r.Worked += agent.Duration(now.Sub(r.since))
	}
	r.since = now
}

// held says whether a pause keeps the calls of a batch from starting and none of them runs: that is no work.
func (r *run) held() bool { return r.batching && r.Paused != nil && r.running == 0 }

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

// clockCalls says whether checkClock has something to do.
func (r *run) clockCalls() bool {
	switch {
	case r.end != nil || r.root.Err() != nil:
		return false
	case r.alarm != nil:
		return r.alarm.IsReady()
	}
	return r.working && !r.timedOut && r.Limits.TaskTimeout > 0
}

// checkClock stops the work when the task's time is up. One timer serves for many steps: it is set for what remains when
// work begins, and set again if there is still time left when it has fired and work goes on.
func (r *run) checkClock() {
	if !r.clockCalls() {
		return
	}
	if r.alarm != nil {
		r.alarm = nil
		return
	}
	left := r.left(r.root)
	if left <= 0 {
		r.timedOut = true
		r.stopWork()
		return
	}
	r.alarm = workflow.NewTimerWithOptions(r.root, left, workflow.TimerOptions{Summary: "task timeout"})
}

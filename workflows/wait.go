package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"belay/agent"
)

// waiting is the context for waits on people: the task's own, which the end of its working time does not reach.
func (r *run) waiting() workflow.Context { return r.root }

// awaitUntil waits for done, for the time to pass, or for the history to be full. It says whether it was not the time
// that ended the wait; an error means that the task was cancelled.
func (r *run) awaitUntil(ctx workflow.Context, until time.Time, what string, done func() bool) (bool, error) {
	left := until.Sub(workflow.Now(ctx))
	if left <= 0 {
		return done(), nil
	}
	ok, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout:      left,
		TimerOptions: workflow.TimerOptions{Summary: r.summary(what)},
	}, func() bool { return done() || r.full() })
	if err == nil {
		err = ctx.Err() // a wait for what holds already does not look at it
	}
	return ok, err
}

// unpaused waits while the task is paused. It says whether the task may act: not when it was cancelled, nor when the
// history is full.
func (r *run) unpaused() bool {
	if r.Paused != nil {
		r.show(agent.StatePaused)
		if err := workflow.Await(r.waiting(), func() bool { return r.Paused == nil || r.full() }); err != nil {
			r.cancelled()
			return false
		}
	}
	if r.root.Err() != nil {
		r.cancelled()
	}
	if r.Paused != nil || r.end != nil {
		return false
	}
	r.show(agent.StateRunning)
	return true
}

// atRest is what people see of a task that waits for them.
func (r *run) atRest() agent.ExecutionState {
	if r.Paused != nil {
		return agent.StatePaused
	}
	return agent.StateWaiting
}

// resumed is what people see of a task that is not paused any more.
func (r *run) resumed() agent.ExecutionState {
	if len(r.pendings()) > 0 {
		return agent.StateWaiting
	}
	return agent.StateRunning
}

// cancelled ends the task because someone cancelled it.
func (r *run) cancelled() {
	if r.end == nil {
		r.end = &ending{Reason: agent.ReasonCancelled, Type: agent.Cancelled, Text: "the task was cancelled"}
	}
}

// renewWork lets the task work again after its time was up and raised.
func (r *run) renewWork() {
	if r.timedOut {
		r.work, r.stopWork = workflow.WithCancel(r.root)
		r.timedOut = false
	}
}

func (r *run) approvalTime() time.Duration { return time.Duration(r.Limits.ApprovalTimeout) }

package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
)

// Retries is the one table of retry rules by category of failure. An activity looks here when it fails; Temporal's own
// policy below is only the outer bound. It is told in docs/reference.md.
func Retries() agent.RetryTable {
	return agent.RetryTable{
		agent.ModelError:        {Attempts: 4, First: time.Second, Factor: 2, Max: 30 * time.Second},
		agent.NetworkError:      {Attempts: 8, First: 500 * time.Millisecond, Factor: 2, Max: 30 * time.Second},
		agent.ResourceExhausted: {Attempts: 10, First: 2 * time.Second, Factor: 2, Max: time.Minute},
		agent.Timeout:           {Attempts: 2, First: time.Second, Factor: 2, Max: 10 * time.Second},
		agent.ToolError:         {Attempts: 3, First: time.Second, Factor: 2, Max: 10 * time.Second},
		agent.StateError:        {Attempts: 3, First: 200 * time.Millisecond, Factor: 4, Max: 5 * time.Second},
	}
}

const (
	// heartbeatTimeout is how long a worker may be silent before its activity is given to another.
	heartbeatTimeout = 5 * activities.Heartbeat
	// slack is what an activity may take beyond the time that its call was given.
	slack = time.Minute
	// hostGone is how long a call waits for the host that has its sandbox before the sandbox counts as lost.
	hostGone = 2 * time.Minute
	// shortTime bounds the activities that only talk to the store.
	shortTime = time.Minute
)

// outerRetries bounds what crashes of workers may cost; failures are counted by category in the activity. Every event of
// an activity's start repeats it, so it says no more than that: payloads too large for Temporal need no word, since the
// activities bound what they return.
func outerRetries() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1, MaximumAttempts: 50}
}

// brief are the options of an activity that takes no time worth beating for.
func (r *run) brief(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: shortTime,
		RetryPolicy:         outerRetries(),
		Summary:             r.summary(summary),
		Priority:            r.priority(),
	})
}

// long are the options of an activity that beats and may take up to limit.
func (r *run) long(ctx workflow.Context, limit time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: limit + slack,
		HeartbeatTimeout:    heartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy:         outerRetries(),
		Summary:             r.summary(summary),
		Priority:            r.priority(),
	})
}

// onHost are the options of an activity that only the host of the sandbox can do.
func (r *run) onHost(ctx workflow.Context, limit time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              r.Sandbox.Queue,
		ScheduleToStartTimeout: hostGone,
		StartToCloseTimeout:    limit + slack,
		HeartbeatTimeout:       heartbeatTimeout,
		WaitForCancellation:    true,
		RetryPolicy:            outerRetries(),
		Summary:                r.summary(summary),
		Priority:               r.priority(),
	})
}

func gateOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumAttempts: 5},
	})
}

func (r *run) priority() temporal.Priority {
	if r.Task.Priority == defaultPriority {
		return temporal.Priority{}
	}
	return temporal.Priority{PriorityKey: r.Task.Priority}
}

const defaultPriority = 3

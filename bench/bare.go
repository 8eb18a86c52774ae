package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
)

// The control: what Temporal alone takes for the same work. A bare task schedules what an AgentTask of as many steps
// does, activity for activity, on the same queues, with the same timeouts, heartbeats and retry policies, so it is
// dispatched in the same ways, and its activities take and give about as many bytes. It says nothing to people, keeps
// nothing and decides nothing.

// The control's workflow types.
const (
	typeBareTask   = "BareTask"
	typeBareLedger = "BareLedger"
	typeBareParked = "BareParked"
)

// bareInput says how long a bare task is.
type bareInput struct {
	Steps int    `json:"steps"`
	Host  string `json:"host"` // the host's queue
}

// How many bytes the activities of a usual step take and give in an AgentTask, about half of them digests.
const (
	taken = 250
	given = 200
)

// bareActivity does nothing. It is registered once per activity of an AgentTask that has options of its own.
func bareActivity(_ context.Context, in string) (string, error) { return filler(in, given), nil }

// filler is so many hexadecimal digits that follow from a seed.
func filler(seed string, n int) string {
	var b []byte
	for sum := sha256.Sum256([]byte(seed)); len(b) < n; sum = sha256.Sum256(sum[:]) {
		b = hex.AppendEncode(b, sum[:])
	}
	return string(b[:n])
}

const (
	bareBrief = "BareBrief"
	bareLong  = "BareLong"
	bareHost  = "BareHost"
	bareGate  = "BareGate"
)

func registerBare(tasks, host worker.Worker) {
	for _, w := range []worker.Worker{tasks, host} {
		for _, name := range []string{bareBrief, bareLong, bareHost, bareGate} {
			w.RegisterActivityWithOptions(bareActivity, activityNamed(name))
		}
	}
	tasks.RegisterWorkflowWithOptions(bareTask, workflow.RegisterOptions{Name: typeBareTask})
	tasks.RegisterWorkflowWithOptions(bareLedger, workflow.RegisterOptions{Name: typeBareLedger})
	tasks.RegisterWorkflowWithOptions(bareParked, workflow.RegisterOptions{Name: typeBareParked})
}

// bareOptions are those of package workflows.
type bareOptions struct{ brief, long, host, release, gate workflow.Context }

func newBareOptions(ctx workflow.Context, host string) bareOptions {
	retries := &temporal.RetryPolicy{
		InitialInterval: time.Second, BackoffCoefficient: 1, MaximumAttempts: 50,
	}
	long := workflow.ActivityOptions{
		StartToCloseTimeout: 11 * time.Minute, HeartbeatTimeout: 5 * activities.Heartbeat, WaitForCancellation: true, RetryPolicy: retries,
	}
	brief := workflow.ActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: retries}
	onHost, release := long, brief
	onHost.TaskQueue, onHost.ScheduleToStartTimeout = host, 2*time.Minute
	release.TaskQueue, release.ScheduleToStartTimeout = host, 2*time.Minute
	return bareOptions{
		brief:   workflow.WithActivityOptions(ctx, brief),
		long:    workflow.WithActivityOptions(ctx, long),
		host:    workflow.WithActivityOptions(ctx, onHost),
		release: workflow.WithActivityOptions(ctx, release),
		gate: workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
			StartToCloseTimeout: 10 * time.Second,
			RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumAttempts: 5},
		}),
	}
}

// bareTask prepares, acquires, takes its steps (model, gate, execute), asks the model once more, starts the ledger and
// releases.
func bareTask(ctx workflow.Context, in bareInput) error {
	o := newBareOptions(ctx, in.Host)
	if err := doAll(do{o.brief, bareBrief}, do{o.long, bareLong}); err != nil {
		return err
	}
	for range in.Steps {
		if err := doAll(do{o.long, bareLong}, do{o.gate, ""}, do{o.host, bareHost}); err != nil {
			return err
		}
	}
	if err := doAll(do{o.long, bareLong}); err != nil {
		return err
	}
	child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:        ledgerOf(workflow.GetInfo(ctx).WorkflowExecution.ID),
		ParentClosePolicy: enums.PARENT_CLOSE_POLICY_ABANDON,
	})
	if err := workflow.ExecuteChildWorkflow(child, typeBareLedger, in).GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		return err
	}
	return doAll(do{o.release, bareHost})
}

func ledgerOf(id string) string { return "ledger/" + id }

// bareLedger writes, seals and writes again.
func bareLedger(ctx workflow.Context, in bareInput) error {
	o := newBareOptions(ctx, in.Host)
	return doAll(do{o.brief, bareBrief}, do{o.brief, bareBrief}, do{o.brief, bareBrief})
}

// bareParked does what an AgentTask does until its first call waits for a person, and waits for a signal.
func bareParked(ctx workflow.Context, in bareInput) error {
	o := newBareOptions(ctx, in.Host)
	if err := doAll(do{o.brief, bareBrief}, do{o.long, bareLong}, do{o.long, bareLong}, do{o.gate, ""}, do{o.brief, bareBrief}); err != nil {
		return err
	}
	parked := true
	if err := workflow.SetQueryHandler(ctx, queryParked, func() (bool, error) { return parked, nil }); err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, "approve").Receive(ctx, nil)
	return nil
}

const queryParked = "parked"

// do is one activity to be done; a local one has no name of its own.
type do struct {
	ctx  workflow.Context
	name string
}

func doAll(list ...do) error {
	for _, d := range list {
		f := workflow.ExecuteLocalActivity
		var activity any = bareActivity
		if d.name != "" {
			f, activity = workflow.ExecuteActivity, d.name
		}
		in := filler(workflow.Now(d.ctx).String(), taken)
		if err := f(d.ctx, activity, in).Get(d.ctx, nil); err != nil {
			return fmt.Errorf("bare %s: %w", d.name, err)
		}
	}
	return nil
}

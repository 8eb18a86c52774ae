package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
)

// AgentTask runs one task to its ledger. Its input is one agent.Task as JSON; a run that continues another one's history
// gets that one's state instead. Its result is the ledger: returned for a final answer, and as the details of the error
// for every other end.
func AgentTask(ctx workflow.Context, input converter.RawValue) (*agent.Ledger, error) {
	r, err := newRun(ctx, input)
	if err != nil {
		return nil, failure(err, nil)
	}
	return r.loop(ctx)
}

// run is one AgentTask execution.
type run struct {
	state
	act  *activities.Activities // never called: names the activities
	info *workflow.Info

	// root is the task's own context: only a cancellation ends it.
	root workflow.Context
	// work is cancelled when the task is, and when its time is up; what follows then uses other contexts.
	work     workflow.Context
	stopWork workflow.CancelFunc
	// side is for what runs beside the loop and nobody waits for.
	side     workflow.Context
	stopSide workflow.CancelFunc
	working  bool            // the clock of task_timeout runs
	since    time.Time       // when it was last looked at
	alarm    workflow.Future // its timer; nil when none runs
	timedOut bool

	batching bool // the calls of a batch may start
	running  int  // calls that run

	open int // activities that run beside the loop
	end  *ending
}

// errSecondLife refuses what would start a task again under the id of its first life, whose results it would meet.
var errSecondLife = agent.Errorf(agent.InvalidInput,
	"a task can't be started with a retry policy or a cron schedule of Temporal's; start it anew, with rerun_of if you like")

// maxWorkflowID is how long a workflow id may be on the server, in bytes.
const maxWorkflowID = 1000

// newRun reads the input, restores what an earlier run left, and registers the handlers.
func newRun(ctx workflow.Context, input converter.RawValue) (*run, error) {
	r := &run{info: workflow.GetInfo(ctx), root: ctx}
	raw := input.Payload().GetData()
	if r.info.CronSchedule != "" || r.info.RetryPolicy != nil {
		return nil, errSecondLife
	}
	if r.info.ContinuedExecutionRunID != "" {
		if err := json.Unmarshal(raw, &r.state); err != nil || r.Schema != stateSchema {
			return nil, errSecondLife
		}
		r.Previous = r.info.ContinuedExecutionRunID
	} else {
		task, err := agent.DecodeTask(raw)
		if err != nil {
			return nil, err
		}
		r.state = state{Schema: stateSchema, Task: task, Run: agent.RunID(r.info.FirstRunID), Started: workflow.Now(ctx)}
	}
	if id := r.ledgerID(); len(id) > maxWorkflowID {
		return nil, agent.Errorf(agent.InvalidInput, "workflow id: %d bytes; expected at most %d, so that its ledger can have one too",
			len(r.info.WorkflowExecution.ID), maxWorkflowID-(len(id)-len(r.info.WorkflowExecution.ID)))
	}
	r.work, r.stopWork = workflow.WithCancel(ctx)
	r.side, r.stopSide = workflow.WithCancel(ctx)
	return r, r.listen(ctx)
}

// loop is the process. Everything before "continue" happens again when a history is continued, and finds itself done.
func (r *run) loop(ctx workflow.Context) (*agent.Ledger, error) {
	if err := r.begin(ctx); err != nil {
		return nil, failure(err, nil)
	}
	for r.end == nil {
		r.step()
		if r.end == nil && r.full() && r.quiet(ctx) {
			return nil, workflow.NewContinueAsNewError(ctx, TypeAgentTask, r.state)
		}
		if ctx.Err() != nil {
			r.cancelled()
		}
	}
	return r.finish(ctx)
}

// begin seals the run before, prepares the task and gets its sandbox. An error means that the task is refused: it has no
// ledger, since nothing of it ran, and perhaps no tenant to file one under.
func (r *run) begin(ctx workflow.Context) error {
	if r.Previous != "" {
		r.sealPrevious()
		return nil
	}
	r.note(ctx, agent.EventTaskStarted)
	if err := r.prepare(); err != nil {
		switch kind := typeOf(err); kind {
		case agent.InvalidInput, agent.Unauthorized, agent.PolicyDenied:
			return agent.Errorf(kind, "%s", reasonOf(err))
		}
		r.stop(err)
		return nil
	}
	r.Limits = r.Prepared.Limits
	r.show(agent.StateRunning)
	if err := r.acquire(r.work); err != nil {
		r.stop(err)
	}
	return nil
}

// step takes the task one reply further, or on from where the run before stopped to continue as new.
func (r *run) step() {
	if r.Parked != "" && !r.waitForRaise() {
		return
	}
	if r.Answer != "" {
		r.final(r.Answer)
		return
	}
	if r.Batch == nil && !r.reply() {
		return
	}
	if r.decide() {
		r.runBatch()
	}
}

// prepare fixes what the run runs under. It is asked again when the run gets another identity.
func (r *run) prepare() error {
	in := activities.PrepareInput{Run: r.ref(r.work), Task: r.Task, Head: r.Head, Notes: r.takeNotes()}
	if err := workflow.ExecuteActivity(r.brief(r.work, "prepare"), r.act.Prepare, in).Get(r.work, &r.Prepared); err != nil {
		return err
	}
	r.Head = r.Prepared.Head
	return nil
}

// acquire gets a sandbox: with the task's source in it the first time, and from the last checkpoint when one was lost.
func (r *run) acquire(ctx workflow.Context) error {
	in := activities.AcquireInput{
		Run:        r.ref(ctx),
		Generation: r.Sandbox.Generation + 1,
		Source:     r.Task.Workspace,
		Tree:       r.Tree,
		Profile:    r.Prepared.Profile,
		Notes:      r.takeNotes(),
	}
	var got activities.Acquired
	err := workflow.ExecuteActivity(r.long(ctx, acquireTime, "sandbox"), r.act.AcquireSandbox, in).Get(ctx, &got)
	if err != nil {
		return err
	}
	r.Sandbox, r.Level, r.Tree, r.Dir = got.Sandbox, got.Level, got.Tree, ""
	if r.Base == "" {
		r.Base = got.Tree
	}
	return nil
}

const acquireTime = 10 * time.Minute

// ref names the run to an activity. After a reset the same workflow code goes on under another run id: whatever happens
// from there on is filed under that id, so it never meets what the old run recorded.
func (r *run) ref(ctx workflow.Context) agent.RunRef {
	var id agent.RunID
	mine := r.Run
	if r.info.OriginalRunID != r.info.WorkflowExecution.RunID {
		mine = agent.RunID(r.info.WorkflowExecution.RunID)
	}
	value := workflow.MutableSideEffect(ctx, "run", func(workflow.Context) any { return mine }, func(a, b any) bool { return a == b })
	if err := value.Get(&id); err != nil {
		panic(fmt.Sprintf("run id: %v", err)) // a string always decodes
	}
	return agent.RunRef{Tenant: r.Task.Tenant, Run: id}
}

// adopt makes sure that the run's things are filed under its present id and says whether it has another sandbox since.
func (r *run) adopt() (moved bool, err error) {
	id := r.ref(r.work).Run
	if id == r.Run {
		return false, nil
	}
	r.Run = id
	r.Sandbox = activities.SandboxRef{}
	if err := r.prepare(); err != nil {
		return true, err
	}
	return true, r.acquire(r.work)
}

// full says whether the history is long enough to be continued as a new one.
func (r *run) full() bool { return r.info.GetContinueAsNewSuggested() }

// quiet makes the run ready to go on with a new history: every handler has finished and every signal was read. It is not
// when it was cancelled meanwhile, which a new history would not know, nor when an edit came that its sender waits for.
func (r *run) quiet(ctx workflow.Context) bool {
	r.stopSide()
	edited := func() bool { return r.Batch != nil && r.toJudge() != nil }
	err := workflow.Await(ctx, func() bool { return edited() || r.open == 0 && workflow.AllHandlersFinished(ctx) })
	if err == nil && ctx.Err() == nil {
		r.drain(ctx)
		r.tick(ctx)
	}
	r.side, r.stopSide = workflow.WithCancel(r.root)
	return err == nil && ctx.Err() == nil && !edited()
}

// sealPrevious keeps the events of the run that this one continues before its history can be deleted.
func (r *run) sealPrevious() {
	in := activities.SealInput{Run: r.ref(r.work), WorkflowID: r.info.WorkflowExecution.ID, RunID: r.Previous, Previous: r.Sealed}
	var sealed activities.Sealed
	err := workflow.ExecuteActivity(r.brief(r.work, "seal"), r.act.Seal, in).Get(r.work, &sealed)
	if err != nil {
		r.stop(err)
		return
	}
	r.Sealed = sealed
}

// stop ends the loop with an error: the task's cancellation, its time, or a failure that has been tried often enough.
func (r *run) stop(err error) {
	switch {
	case r.end != nil:
	case errors.Is(r.work.Err(), workflow.ErrCanceled) && !r.timedOut:
		r.end = &ending{Reason: agent.ReasonCancelled, Type: agent.Cancelled, Text: "the task was cancelled"}
	case r.timedOut:
		r.reached(agent.LimitTaskTimeout)
	default:
		r.end = endingOf(err)
	}
}

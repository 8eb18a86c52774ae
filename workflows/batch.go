package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
)

// maxLosses is how many sandboxes in a row one batch may lose before the task gives up.
const maxLosses = 3

// runBatch runs the allowed calls of the batch and takes a checkpoint. When the sandbox is lost, the calls of the batch
// are void and happen again in a new sandbox, from the checkpoint before them.
func (r *run) runBatch() {
	r.withinLimit()
	for {
		ctx := r.grouped(r.work)
		moved, err := r.rejudged(ctx)
		if moved {
			return // to be decided about anew
		}
		if err == nil {
			err = r.during(ctx, func() error { return r.attempt(ctx) })
		}
		if err == nil {
			break
		}
		if errors.Is(err, errMoved) {
			continue
		}
		if err := r.replace(ctx, err); err != nil {
			r.abandon(err)
			break
		}
	}
	r.observe()
}

// replace makes a sandbox from the last checkpoint in place of one that was lost, and voids what the batch did in that one.
// What is no loss, or one too many, comes back as it is.
func (r *run) replace(ctx workflow.Context, loss error) error {
	if !lost(loss) || r.Losses >= maxLosses {
		return loss
	}
	r.Losses++
	r.note(ctx, agent.EventSandboxLost, "sandbox", r.Sandbox.ID, "reason", reasonOf(loss), "checkpoint", r.Tree)
	if r.Batch != nil {
		r.again()
	}
	if r.ref(ctx).Run != r.Run {
		return nil // to adopt the other id makes one
	}
	if err := r.acquire(ctx); err != nil {
		return err
	}
	r.Said = append(r.Said, "The sandbox was lost and made anew from the last checkpoint: working folder, exported variables and everything outside the workspace are gone.")
	return nil
}

// errMoved means that the run was reset in the middle of a batch.
var errMoved = errors.New("the run has another id")

// rejudged adopts another identity in the middle of a batch: what was decided and done under the old one does not count, so
// the same calls are judged again. It says whether it was so.
func (r *run) rejudged(ctx workflow.Context) (bool, error) {
	moved, err := r.adopt()
	if err != nil || !moved {
		return false, err
	}
	r.again()
	for _, i := range r.Batch.Items {
		if i.Edit != nil {
			i.Edit.Judged, i.Edit.Refused = true, agent.Errorf(agent.StateError, "the task was reset; what is pending now has another digest")
		}
	}
	r.Batch = nil
	r.gate(ctx)
	return true, nil
}

// withinLimit leaves out the calls for which max_tool_calls has no room.
func (r *run) withinLimit() {
	room := r.Limits.MaxToolCalls - r.Usage.ToolCalls
	for _, i := range r.Batch.Items {
		if i.Result != nil {
			continue
		}
		if room--; room < 0 {
			i.settle(agent.CallNotRun, "This call did not run: the task's limit of tool calls is reached.")
		}
	}
}

// attempt runs every call of the batch that is not settled, each after those before it with which it conflicts.
func (r *run) attempt(ctx workflow.Context) error {
	todo := r.todo()
	alone := len(todo) == 1
	var failed error
	r.batching = true
	defer func() { r.tick(ctx); r.batching = false }()
	wg := workflow.NewWaitGroup(ctx)
	for n, i := range todo {
		wg.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer wg.Done()
			err := workflow.Await(ctx, func() bool {
				return failed != nil || r.Paused == nil && r.running < r.Limits.MaxParallelTools && !blocked(i, todo[:n])
			})
			if err != nil || failed != nil {
				failed = errors.Join(failed, err)
				return
			}
			r.tick(ctx)
			r.running++
			err = r.execute(ctx, i, !alone)
			r.tick(ctx)
			r.running--
			if err != nil && failed == nil {
				failed = err
			}
		})
	}
	wg.Wait(ctx)
	if failed != nil {
		return failed
	}
	if alone || !changes(todo) {
		return nil
	}
	return r.checkpoint(ctx)
}

func (r *run) todo() []*item {
	var todo []*item
	for _, i := range r.Batch.Items {
		if i.Result == nil {
			todo = append(todo, i)
		}
	}
	return todo
}

// blocked says whether a call must wait for one of those before it that is still to be done.
func blocked(i *item, before []*item) bool {
	for _, b := range before {
		if b.Result == nil && conflict(i.Touches(), b.Touches()) {
			return true
		}
	}
	return false
}

// conflict says whether one writes what the other reads or writes.
func conflict(a, b agent.Resources) bool {
	return overlap(a.Writes, b.Writes) || overlap(a.Writes, b.Reads) || overlap(a.Reads, b.Writes)
}

func overlap(a, b []string) bool {
	for _, p := range a {
		for _, q := range b {
			if within(p, q) || within(q, p) {
				return true
			}
		}
	}
	return false
}

func within(p, folder string) bool {
	folder = path.Clean(folder)
	return p == folder || folder == "/" || strings.HasPrefix(p, folder+"/")
}

func changes(items []*item) bool {
	for _, i := range items {
		if i.Effect != agent.EffectPure {
			return true
		}
	}
	return false
}

// execute performs one call and settles it. What policy no longer allows is settled too; an error is the batch's.
func (r *run) execute(ctx workflow.Context, i *item, shared bool) error {
	limit := time.Duration(r.Limits.ToolTimeout)
	tighter := r.Limits.ToolTimeout
	if i.Timeout > 0 && i.Timeout <= tighter {
		limit, tighter = time.Duration(i.Timeout), 0
	}
	ref := r.ref(ctx)
	if ref.Run != r.Run {
		return errMoved
	}
	in := activities.ExecuteInput{
		Run: ref, Step: r.Step, Head: r.headFor(ref), Call: i.Call,
		Allow: i.Digest, Approved: i.By, Edited: i.Edited, Timeout: tighter, Shared: shared, Dir: r.Dir, Notes: r.takeNotes(),
	}
	if in.Box() != r.Sandbox.ID {
		in.Sandbox = r.Sandbox.ID
	}
	opts := r.onHost(ctx, limit, fmt.Sprintf("step %d · %s · %s", r.Step, i.Tool, i.Summary))
	var out activities.ExecuteOutput
	if err := workflow.ExecuteActivity(opts, r.act.Execute, in).Get(ctx, &out); err != nil {
		if typeOf(err) == agent.PolicyDenied {
			i.settle(agent.CallDenied, "This call did not run: "+reasonOf(err))
			return nil
		}
		return err
	}
	r.Dir = cmp.Or(out.Dir, r.Dir)
	r.Usage.ToolCalls++
	i.Result, i.Status = &activities.Result{Call: i.Call, Observation: out.Observation}, out.Status
	i.Same = out.Same
	if out.Tree != "" {
		r.Tree = out.Tree
	}
	return nil
}

// checkpoint stores the workspace after a batch of several calls.
func (r *run) checkpoint(ctx workflow.Context) error {
	ref := r.ref(ctx)
	if ref.Run != r.Run {
		return errMoved
	}
	in := activities.CheckpointInput{Run: ref, Step: r.Step, Sandbox: r.Sandbox.ID, Notes: r.takeNotes()}
	var out activities.CheckpointOutput
	opts := r.onHost(ctx, acquireTime, fmt.Sprintf("step %d · checkpoint", r.Step))
	if err := workflow.ExecuteActivity(opts, r.act.Checkpoint, in).Get(ctx, &out); err != nil {
		return err
	}
	r.Tree = out.Tree
	return nil
}

// again makes the calls of the batch that ran void, so that they run once more.
func (r *run) again() {
	for _, i := range r.Batch.Items {
		if i.Result != nil && i.Result.Observation != "" {
			i.Result, i.Same = nil, ""
			r.Usage.ToolCalls--
		}
	}
}

// abandon settles what did not run and ends the task.
func (r *run) abandon(err error) {
	for _, i := range r.todo() {
		i.settle(agent.CallCancelled, "This call was stopped, or did not run: the task was stopped before it ended.")
	}
	r.stop(err)
}

// observe hands the results to the next model call, in the order in which the model asked, and looks for circles.
func (r *run) observe() {
	full := false
	var ending *ending
	for _, i := range r.Batch.Items {
		r.Results = append(r.Results, *i.Result)
		full = full || i.Status == agent.CallNotRun
		if end := r.Trail.add(i); end != nil {
			ending = end
		}
	}
	r.Batch = nil
	r.Losses = 0
	switch {
	case r.end != nil || r.Parked != "":
	case full:
		r.reached(agent.LimitToolCalls)
	case ending != nil:
		r.end = ending
	}
}

// lost says whether an error means that the host or the sandbox is gone.
func lost(err error) bool {
	if typeOf(err) == agent.SandboxLost {
		return true
	}
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	return ok && timeout.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_START
}

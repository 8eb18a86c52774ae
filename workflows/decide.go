package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
)

// decide waits until a person has answered every call of the batch that needs it. It says whether the batch may run: not
// when the task ended meanwhile, nor when the history is full, in which case the next one waits on.
func (r *run) decide() bool {
	ctx := r.waiting()
	r.request(ctx)
	for {
		waiting := r.Batch.waiting()
		if len(waiting) == 0 {
			return r.unpaused()
		}
		r.show(r.atRest())
		ok, err := r.awaitUntil(ctx, soonest(waiting), "waits for "+whom(waiting), func() bool {
			return len(r.Batch.waiting()) < len(waiting) || r.toJudge() != nil
		})
		switch {
		case err != nil:
			r.cancelled()
			return false
		case r.toJudge() != nil:
			moved, err := r.rejudged(ctx)
			if err == nil && !moved {
				err = r.judgeEdit(ctx, r.toJudge())
			}
			if err != nil {
				r.stop(err)
			}
			if err != nil || moved {
				return false
			}
		case !ok:
			r.expire(ctx)
			return false
		case len(r.Batch.waiting()) == len(waiting): // the history is full
			return false
		}
		r.show(agent.StateRunning)
	}
}

// request tells people, once for each call, that it waits for them.
func (r *run) request(ctx workflow.Context) {
	for _, i := range r.Batch.waiting() {
		if i.Asked {
			continue
		}
		i.Asked = true
		p := r.pendingItem(i)
		r.note(ctx, agent.EventApprovalRequested, "call", i.Call, "question", i.Question, "digest", i.Digest, "tool", i.Tool, "summary", i.Summary, "reason", i.Why,
			"risk", i.Risk, "reviewers", i.Reviewers, "expires", i.Until)
		r.notify(ctx, p)
	}
}

// notify tells the reviewers without making the task wait for a slow webhook.
func (r *run) notify(ctx workflow.Context, p pending) {
	in := activities.NotifyInput{
		Run: r.ref(ctx), WorkflowID: r.info.WorkflowExecution.ID, Step: r.Step,
		ID: p.id(), Kind: p.Kind, Text: p.Text, Reviewers: p.Reviewers, Command: r.command(p), Notes: r.takeNotes(),
	}
	r.open++
	workflow.Go(r.side, func(ctx workflow.Context) {
		defer func() { r.open-- }()
		opts := workflow.WithScheduleToCloseTimeout(r.brief(ctx, "notify reviewers"), 5*time.Minute)
		if err := workflow.ExecuteActivity(opts, r.act.Notify, in).Get(ctx, nil); err != nil && !temporal.IsCanceledError(err) {
			workflow.GetLogger(ctx).Warn("nobody could be notified", "error", err)
		}
	})
}

// toJudge is a call whose arguments a reviewer changed and that was not judged since.
func (r *run) toJudge() *item {
	for _, i := range r.Batch.Items {
		if i.Edit != nil && !i.Edit.Judged && i.waits() {
			return i
		}
	}
	return nil
}

// judgeEdit puts the changed call through the gate. Where policy lets it run with the reviewer's approval, it takes the
// place of the model's call; otherwise that one waits on.
func (r *run) judgeEdit(ctx workflow.Context, i *item) error {
	var out activities.GateOutput
	in := activities.GateInput{
		Run: r.ref(ctx), Step: r.Step, Head: r.Head, Policy: r.Prepared.Versions.Policy, Dir: r.Dir,
		Edits: map[agent.CallID]json.RawMessage{i.Call: i.Edit.Arguments},
	}
	if err := workflow.ExecuteLocalActivity(gateOptions(ctx), r.act.Gate, in).Get(ctx, &out); err != nil {
		return err
	}
	e := i.Edit
	e.Judged = true
	v := out.Verdicts[0]
	if err := e.refusal(v); err != nil {
		e.Refused = err
		r.refuse(ctx, agent.VerbEdit, e.By, err)
		return nil
	}
	v.Gate = activities.GateAllow
	i.Verdict, i.By = v, []agent.UserID{e.By}
	r.Risk = worst(r.Risk, v.Risk)
	r.recordDecision(ctx, i, agent.VerbEdit, e.By, "")
	r.Said = append(r.Said, fmt.Sprintf("The reviewer %s changed the arguments of call %s before it ran, to: %s", e.By, i.Call, trim(string(e.Arguments), maxTold)))
	e.Arguments = nil // they are in the store now
	return nil
}

// refusal says why a changed call may not run with its editor's approval.
func (e *edit) refusal(v activities.Verdict) *agent.Error {
	why := strings.Join(strings.Fields(v.Why), " ") // what tells a model how to mend its arguments may have lines
	switch {
	case v.Gate == activities.GateInvalid:
		return agent.Errorf(agent.InvalidInput, "edit of call %s: %s", v.Call, why)
	case v.Gate == activities.GateApproval && len(v.Reviewers) > 0 && !slices.Contains(v.Reviewers, e.By):
		return agent.Errorf(agent.Unauthorized, "edit of call %s: %s is not among the reviewers %v of the changed call", v.Call, e.By, v.Reviewers)
	case v.Gate != activities.GateAllow && v.Gate != activities.GateApproval:
		return agent.Errorf(agent.PolicyDenied, "edit of call %s: %s", v.Call, why)
	}
	return nil
}

// expire ends the task because nobody answered in time: it is handed to people.
func (r *run) expire(ctx workflow.Context) {
	now := workflow.Now(ctx)
	for _, i := range r.Batch.waiting() {
		if !now.Before(i.Until) {
			i.settle(agent.CallExpired, "Nobody answered in time, and it did not run.")
		}
	}
	r.reached(agent.LimitApproval)
}

func soonest(items []*item) time.Time {
	t := items[0].Until
	for _, i := range items[1:] {
		if i.Until.Before(t) {
			t = i.Until
		}
	}
	return t
}

// whom is the calls that wait, in a word.
func whom(items []*item) string {
	if len(items) == 1 {
		return "a decision about " + string(items[0].Call)
	}
	return fmt.Sprintf("decisions about %d calls", len(items))
}

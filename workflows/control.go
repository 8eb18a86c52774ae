package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
)

// Recorded answers an update that was followed.
type Recorded struct {
	Recorded agent.Verb `json:"recorded"`
	// Digest is the action that an edit led to.
	Digest agent.Digest `json:"digest,omitempty"`
}

// listen registers the handlers: every verb as a signal and as an update, and the queries. Control messages are followed
// at once, whatever else runs.
func (r *run) listen(ctx workflow.Context) error {
	workflow.Go(ctx, r.attend)
	for _, verb := range agent.TaskVerbs {
		err := workflow.SetUpdateHandlerWithOptions(ctx, string(verb),
			func(ctx workflow.Context, raw converter.RawValue) (Recorded, error) { return r.update(ctx, verb, raw) },
			workflow.UpdateHandlerOptions{Validator: func(raw converter.RawValue) error {
				_, err := agent.DecodeControl(verb, raw.Payload().GetData())
				return refusalError(err)
			}})
		if err != nil {
			return err
		}
	}
	return r.answerQueries(ctx)
}

func (r *run) update(ctx workflow.Context, verb agent.Verb, raw converter.RawValue) (Recorded, error) {
	id := workflow.GetCurrentUpdateInfo(ctx).ID
	if slices.Contains(r.Updates, id) {
		return Recorded{Recorded: verb}, nil // it came before the history was continued
	}
	c, err := agent.DecodeControl(verb, raw.Payload().GetData())
	if err != nil {
		return Recorded{}, refusalError(err)
	}
	r.drain(ctx) // signals that came before are followed before
	i, err := r.follow(ctx, c)
	if err == nil && c.Verb == agent.VerbEdit {
		err = i.judged(ctx)
	}
	if err != nil {
		if i == nil || i.Edit == nil || i.Edit.Refused != err { // the judgement of an edit is on record already
			r.refuse(ctx, verb, c.By, err)
		}
		return Recorded{}, refusalError(err)
	}
	r.Updates = append(r.Updates, id)
	if len(r.Updates) > maxUpdates {
		r.Updates = r.Updates[1:]
	}
	out := Recorded{Recorded: verb}
	if c.Verb == agent.VerbEdit {
		out.Digest = i.Digest
	}
	return out, nil
}

// refusalError is how the sender of an update learns why it was refused.
func refusalError(err error) error {
	if err == nil {
		return nil
	}
	kind := agent.TypeOf(err)
	if kind == "" {
		kind = agent.InvalidInput
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), string(kind), nil)
}

// refuse puts a control message that is not followed on record.
func (r *run) refuse(ctx workflow.Context, verb agent.Verb, by agent.UserID, err error) {
	r.Refused = append(r.Refused, refusal{Verb: verb, By: by, Reason: err.Error(), At: workflow.Now(ctx)})
	if len(r.Refused) > maxRefused {
		r.Refused = r.Refused[1:]
	}
	if len(r.Notes) >= maxNotes {
		return // the state tells it; the history has heard enough for one step
	}
	r.note(ctx, agent.EventControlRefused, "verb", verb, "by", by, "reason", err.Error())
}

// follow does what a control message says, or tells why not. It gives the call that the message is about.
func (r *run) follow(ctx workflow.Context, c agent.Control) (*item, error) {
	switch {
	case r.end != nil:
		return nil, agent.Errorf(agent.StateError, "the task has ended")
	case len(r.Notes) >= maxNotes:
		return nil, agent.Errorf(agent.ResourceExhausted, "%d messages came since the task's last step; send it again later", len(r.Notes))
	}
	switch c.Verb {
	case agent.VerbApprove, agent.VerbReject, agent.VerbEdit:
		return r.decideCall(ctx, c)
	case agent.VerbAnswer:
		return nil, r.answer(ctx, c)
	case agent.VerbMessage:
		return nil, r.say(fmt.Sprintf("%s says: %s", c.By, c.Text))
	case agent.VerbPause, agent.VerbResume:
		return nil, r.pauseOrResume(ctx, c)
	case agent.VerbRaise:
		return nil, r.raise(ctx, c)
	case agent.VerbResolve:
		return nil, agent.Errorf(agent.StateError, "call %s: its outcome is not unknown", c.Call)
	}
	return nil, unknownVerb(string(c.Verb))
}

// decideCall records what a reviewer decided about one call, if the reviewer may and was shown exactly that call.
func (r *run) decideCall(ctx workflow.Context, c agent.Control) (*item, error) {
	i, err := r.pendingCall(c.Call, activities.GateApproval)
	if err != nil {
		return nil, err
	}
	switch {
	case !i.Digest.Matches(c.Digest):
		return nil, agent.Errorf(agent.Unauthorized, "call %s: digest %s is not that of the pending action, %s", c.Call, c.Digest, i.Digest.Short())
	case len(i.Reviewers) > 0 && !slices.Contains(i.Reviewers, c.By):
		return nil, agent.Errorf(agent.Unauthorized, "call %s: %s is not among its reviewers %v", c.Call, c.By, i.Reviewers)
	case !workflow.Now(ctx).Before(i.Until):
		return nil, agent.Errorf(agent.StateError, "call %s: the time to decide passed at %s", c.Call, i.Until.Format(time.RFC3339))
	case i.Edit != nil && !i.Edit.Judged:
		return nil, agent.Errorf(agent.StateError, "call %s: an edit by %s is being judged", c.Call, i.Edit.By)
	}
	switch c.Verb {
	case agent.VerbApprove:
		i.By = append(i.By, c.By)
		i.Gate = activities.GateAllow
	case agent.VerbReject:
		i.settle(agent.CallRejected, fmt.Sprintf("The reviewer %s rejected this call and it did not run. %s", c.By, c.Feedback))
	case agent.VerbEdit:
		i.Edit = &edit{By: c.By, Arguments: c.Arguments}
		return i, nil // recorded when it is judged
	}
	r.recordDecision(ctx, i, c.Verb, c.By, c.Comment+c.Feedback)
	return i, nil
}

func (r *run) recordDecision(ctx workflow.Context, i *item, verb agent.Verb, by agent.UserID, comment string) {
	r.note(ctx, agent.EventApprovalRecorded, "call", i.Call, "digest", i.Digest, "verb", verb, "by", by, "comment", comment)
}

// pendingCall finds a call that waits for a person, or says why there is nothing to decide.
func (r *run) pendingCall(id agent.CallID, want activities.Gating) (*item, error) {
	if r.Batch == nil || r.Batch.find(id) == nil {
		return nil, agent.Errorf(agent.StateError, "call %s is not pending: it is unknown or finished", id)
	}
	i := r.Batch.find(id)
	switch {
	case len(i.By) > 0:
		return nil, agent.Errorf(agent.StateError, "call %s was already approved by %s", id, i.By[0])
	case i.Result != nil:
		return nil, agent.Errorf(agent.StateError, "call %s is already settled: %s", id, i.Status)
	case i.Gate != want:
		return nil, agent.Errorf(agent.StateError, "call %s does not wait for a decision", id)
	}
	return i, nil
}

// judged waits until an edit was judged, and says why it may not run.
func (i *item) judged(ctx workflow.Context) error {
	e := i.Edit
	if err := workflow.Await(ctx, func() bool { return e.Judged || i.Result != nil }); err != nil {
		return err
	}
	switch {
	case e.Refused != nil:
		return e.Refused
	case !e.Judged:
		return agent.Errorf(agent.StateError, "call %s is already settled: %s", i.Call, i.Status)
	}
	return nil
}

func (r *run) answer(ctx workflow.Context, c agent.Control) error {
	if r.Batch != nil {
		for _, i := range r.Batch.waiting() {
			if i.Question == c.Question {
				i.settle(agent.CallOK, c.Text)
				r.note(ctx, agent.EventApprovalRecorded, "question", c.Question, "call", i.Call, "verb", c.Verb, "by", c.By)
				return nil
			}
		}
	}
	return agent.Errorf(agent.StateError, "question %s is not pending: it is unknown or answered", c.Question)
}

// say keeps a message for the model's next turn.
func (r *run) say(text string) error {
	size := len(text)
	for _, s := range r.Said {
		size += len(s)
	}
	if size > maxSaid {
		return agent.Errorf(agent.ResourceExhausted, "%d bytes of messages already wait for the model; expected at most %d", size-len(text), maxSaid)
	}
	r.Said = append(r.Said, text)
	return nil
}

func (r *run) pauseOrResume(ctx workflow.Context, c agent.Control) error {
	switch {
	case c.Verb == agent.VerbPause && r.Paused != nil:
		return agent.Errorf(agent.StateError, "already paused by %s", r.Paused.By)
	case c.Verb == agent.VerbPause:
		r.tick(ctx)
		r.Paused = &pause{By: c.By, Reason: c.Reason, At: workflow.Now(ctx)}
		r.note(ctx, agent.EventTaskPaused, "by", c.By, "reason", c.Reason)
		r.show(agent.StatePaused)
	case r.Paused == nil:
		return agent.Errorf(agent.StateError, "the task is not paused")
	default:
		r.tick(ctx)
		r.Paused = nil
		r.note(ctx, agent.EventTaskResumed, "by", c.By, "reason", c.Reason)
		r.show(r.resumed())
	}
	return nil
}

func (r *run) raise(ctx workflow.Context, c agent.Control) error {
	if r.Parked == "" {
		return agent.Errorf(agent.StateError, "no limit has parked the task")
	}
	raised, err := r.Limits.Raised(c.Limits, r.Prepared.Ceiling)
	if err != nil {
		return agent.Errorf(agent.InvalidInput, "%w", err)
	}
	before := r.Limits
	r.Limits = raised
	if r.exceeds(ctx, r.Parked) {
		r.Limits = before
		return agent.Errorf(agent.InvalidInput, "limits.%s: not raised enough for the task to go on", r.Parked)
	}
	r.note(ctx, agent.EventApprovalRecorded, "limit", r.Parked, "verb", c.Verb, "by", c.By, "limits", c.Limits)
	r.Parked = ""
	return nil
}

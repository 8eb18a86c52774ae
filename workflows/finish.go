package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
)

// ending says why and how a task ends.
type ending struct {
	Reason  agent.TerminationReason
	Limit   agent.LimitName
	Type    agent.ErrorType // empty for a final answer
	Text    string
	Summary string // what the model proposes as the outcome
}

// state is the execution state that an ending leaves.
func (e *ending) state() agent.ExecutionState {
	switch e.Reason {
	case agent.ReasonFinalAnswer:
		return agent.StateFinished
	case agent.ReasonCancelled:
		return agent.StateCancelled
	case agent.ReasonStuck:
		return agent.StateStuck
	}
	return agent.StateErrored
}

// endingOf is how a task ends by an error that was tried often enough.
func endingOf(err error) *ending {
	kind := typeOf(err)
	e := &ending{Reason: agent.ReasonFatalError, Type: kind, Text: reasonOf(err)}
	_, e.Limit = detailsOf(err)
	switch kind {
	case agent.Timeout:
		e.Reason = agent.ReasonTimeout
	case agent.PolicyDenied, agent.Unauthorized:
		e.Reason = agent.ReasonPolicyDenied
	case "":
		e.Type = agent.StateError
	}
	return e
}

// final takes the model's answer: checks first, then the end.
func (r *run) final(text string) {
	if !r.unpaused() {
		r.Answer = text // the history is full, or the task ended
		return
	}
	r.Answer = ""
	if len(r.Said) > 0 {
		return // someone spoke while the model answered: it shall hear that first
	}
	if len(r.Task.Acceptance.Checks) > 0 && !r.checked(text) {
		return
	}
	r.end = &ending{Reason: agent.ReasonFinalAnswer, Summary: text}
}

// checked runs the acceptance checks and says whether all passed. Failed ones go back to the model, until its rounds are
// used up.
func (r *run) checked(answer string) bool {
	out, err := r.runChecks()
	if err != nil {
		r.stop(err)
		return false
	}
	r.Checks = out.Checks
	if out.Text == "" {
		return true
	}
	r.Rounds++
	if r.Rounds > r.Task.Acceptance.CheckRounds {
		r.end = &ending{Reason: agent.ReasonChecksFailed, Type: agent.ValidationError, Text: "the acceptance checks failed", Summary: answer}
		return false
	}
	r.Said = append(r.Said, "You said that you are done, but acceptance checks failed. Mend it.\n\n"+out.Text)
	return false
}

// runChecks runs the checks, again from the last checkpoint when the sandbox is lost meanwhile.
func (r *run) runChecks() (out activities.ChecksOutput, err error) {
	ctx := r.grouped(r.work)
	limit := time.Duration(r.Limits.ToolTimeout) * time.Duration(len(r.Task.Acceptance.Checks))
	for {
		if _, err := r.adopt(); err != nil {
			return out, err
		}
		in := activities.ChecksInput{
			Run: r.ref(ctx), Step: r.Step, Round: r.Rounds + 1, Sandbox: r.Sandbox.ID, Timeout: r.Limits.ToolTimeout, Notes: r.takeNotes(),
		}
		err := r.during(ctx, func() error {
			return workflow.ExecuteActivity(r.onHost(ctx, limit, "checks"), r.act.RunChecks, in).Get(ctx, &out)
		})
		if err == nil {
			r.Losses = 0
			return out, nil
		}
		if err := r.replace(ctx, err); err != nil {
			return out, err
		}
	}
}

// finish writes the ledger, gives the sandbox back and makes the workflow's result. A cancellation does not reach it.
func (r *run) finish(root workflow.Context) (*agent.Ledger, error) {
	ctx, _ := workflow.NewDisconnectedContext(root)
	r.stopSide()
	r.tick(ctx)
	r.show(r.end.state())
	if r.Sandbox.ID != "" && r.end.Reason != agent.ReasonFinalAnswer {
		if err := r.checkpoint(ctx); err != nil {
			workflow.GetLogger(ctx).Warn("no last checkpoint", "error", err)
		}
	}
	var ledger *agent.Ledger
	for recorded := false; !recorded || r.ref(ctx).Run != r.Run; recorded = true { // a run may be reset to its very end
		r.Run = r.ref(ctx).Run
		ledger = r.ledger(ctx)
		r.startLedger(ctx, *ledger)
		r.release(ctx)
		if err := workflow.Await(ctx, func() bool { return r.open == 0 && workflow.AllHandlersFinished(ctx) }); err != nil {
			return ledger, err
		}
	}
	if r.end.Reason == agent.ReasonFinalAnswer {
		return ledger, nil
	}
	return ledger, failure(r.end, ledger)
}

// release gives the sandbox back. A host that is gone has nothing to give back.
func (r *run) release(ctx workflow.Context) {
	if r.Sandbox.ID == "" {
		return
	}
	opts := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              r.Sandbox.Queue,
		ScheduleToStartTimeout: hostGone,
		StartToCloseTimeout:    shortTime,
		RetryPolicy:            outerRetries(),
		Summary:                r.summary("release the sandbox"),
	})
	if err := workflow.ExecuteActivity(opts, r.act.ReleaseSandbox, activities.ReleaseInput{Sandbox: r.Sandbox.ID}).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("sandbox not released", "sandbox", r.Sandbox.ID, "error", err)
	}
}

// ledger is the record of the run as it ends.
func (r *run) ledger(ctx workflow.Context) *agent.Ledger {
	a := r.Task.Acceptance
	decision, next := agent.DecisionNone, "none"
	if len(a.Reviewers) > 0 {
		decision, next = agent.Pending, "review"
	}
	usage := r.Usage
	usage.Wall = agent.Duration(workflow.Now(ctx).Sub(r.Started))
	l := &agent.Ledger{
		WorkflowID: r.info.WorkflowExecution.ID, RunID: r.Run, Tenant: r.Task.Tenant, User: r.Task.User, Goal: r.Task.Goal,
		WorkspaceRef: agent.WorkspaceRef{
			Source: r.Task.Workspace.Source, Base: r.Base, Tree: r.Tree, Sandbox: string(r.Sandbox.ID),
			Environment: r.Level + "/" + r.Prepared.Profile,
		},
		ExecutionState: r.end.state(), TerminationReason: r.end.Reason, Limit: r.end.Limit, Error: r.end.Text,
		ProposedOutcome: r.end.Summary, Criteria: a.Criteria, Checks: r.Checks,
		Decision: decision, Owner: r.Task.User, NextAction: next, Reviewers: a.Reviewers, Quorum: a.Quorum, ExpiresAfter: a.ExpiresAfter,
		Supersedes: r.Task.RerunOf, Versions: r.Prepared.Versions, Usage: usage, Labels: r.Task.Labels,
		StartedAt: r.Started, EndedAt: workflow.Now(ctx),
	}
	l.EvidenceRefs = activities.Evidence(r.Head, r.Tree)
	for _, c := range r.Checks {
		l.EvidenceRefs = append(l.EvidenceRefs, agent.Evidence{Kind: "check", Name: c.Command, Digest: c.Output})
	}
	return l
}

// startLedger starts the ledger's workflow, which outlives this one, and waits until it has begun.
func (r *run) startLedger(ctx workflow.Context, l agent.Ledger) {
	in := LedgerInput{
		Ledger: l, Run: r.ref(ctx), Close: r.info.WorkflowExecution.RunID, Sealed: r.Sealed, Notes: r.takeNotes(),
		SearchAttributes: r.Prepared.SearchAttributes,
	}
	opts := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            agent.LedgerWorkflowID(l.WorkflowID, l.RunID),
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_ABANDON,
		StaticSummary:         r.summary("ledger of " + l.WorkflowID),
		TypedSearchAttributes: in.attributes(),
	})
	err := workflow.ExecuteChildWorkflow(opts, TypeRunLedger, in).GetChildWorkflowExecution().Get(ctx, nil)
	if err == nil {
		return
	}
	workflow.GetLogger(ctx).Error("ledger not started", "error", err)
	write := activities.WriteLedgerInput{Ledger: l} // where nobody can decide, it can still be read
	if err := workflow.ExecuteActivity(r.brief(ctx, "write the ledger"), r.act.WriteLedger, write).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Error("ledger not written", "error", err)
	}
}

func (e *ending) Error() string { return e.Text }

// failure is the workflow's error for an end that is not a final answer, with the ledger as its details.
func failure(err error, ledger *agent.Ledger) error {
	var details []any
	if ledger != nil {
		details = append(details, *ledger)
	}
	if e, ok := errors.AsType[*ending](err); ok {
		if e.Reason == agent.ReasonCancelled {
			return temporal.NewCanceledError(details...)
		}
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("%s: %s", e.Reason, e.Text), string(e.Type), nil, details...)
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), string(agent.TypeOf(err)), nil, details...)
}

// typeOf finds the category of a failed activity.
func typeOf(err error) agent.ErrorType {
	if e, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return agent.ErrorType(e.Type())
	}
	if _, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return agent.Timeout
	}
	return agent.TypeOf(err)
}

// reasonOf is what a failed activity said, without what Temporal adds.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return e.Message()
	}
	return err.Error()
}

// detailsOf is what a failed or cancelled activity has cost, and the limit that ended it, if one did.
func detailsOf(err error) (u agent.Usage, l agent.LimitName) {
	// Without readable details nothing is known.
	if e, ok := errors.AsType[*temporal.ApplicationError](err); ok && e.HasDetails() {
		_ = e.Details(&u, &l)
	} else if e, ok := errors.AsType[*temporal.CanceledError](err); ok && e.HasDetails() {
		_ = e.Details(&u)
	}
	return u, l
}

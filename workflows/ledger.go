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

// LedgerInput starts a ledger.
type LedgerInput struct {
	Ledger agent.Ledger `json:"ledger"`
	Run    agent.RunRef `json:"run"`
	// Close is the run whose end this ledger records, and which it seals; Sealed is what was sealed before.
	Close            string            `json:"close"`
	Sealed           activities.Sealed `json:"sealed,omitzero"`
	SearchAttributes bool              `json:"search_attributes,omitempty"`
	Notes            []agent.Note      `json:"notes,omitempty"`
}

// attributes are the search attributes that a ledger starts with, which saves it from upserting them.
func (in LedgerInput) attributes() temporal.SearchAttributes {
	if !in.SearchAttributes {
		return temporal.SearchAttributes{}
	}
	l := in.Ledger
	return temporal.NewSearchAttributes(AttrDecision.ValueSet(string(l.Decision)), AttrTenant.ValueSet(string(l.Tenant)), AttrUser.ValueSet(string(l.User)))
}

// RunLedger keeps the decision about one run of a task until it is final or expires.
func RunLedger(ctx workflow.Context, in LedgerInput) (*agent.Ledger, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a decision is asked for until there is one, or it expires
	l, err := newLedger(ctx, in)
	if err != nil {
		return nil, err
	}
	return l.keep(ctx)
}

// ledger is one RunLedger execution.
type ledger struct {
	agent.Ledger
	in      LedgerInput
	act     *activities.Activities // never called: names the activities
	changed bool
	shown   agent.LedgerDecision // as the search attribute has it
	votes   map[agent.UserID]agent.LedgerDecide
}

func newLedger(ctx workflow.Context, in LedgerInput) (*ledger, error) {
	l := &ledger{Ledger: in.Ledger, in: in, shown: in.Ledger.Decision, votes: map[agent.UserID]agent.LedgerDecide{}}
	verb := string(agent.VerbDecide)
	ch := workflow.GetSignalChannel(ctx, verb)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var raw converter.RawValue
			if !ch.Receive(ctx, &raw) {
				return
			}
			if err := l.decide(ctx, raw); err != nil {
				workflow.GetLogger(ctx).Warn("decision refused", "reason", err)
				l.refuse(err)
			}
		}
	})
	supersede := workflow.GetSignalChannel(ctx, SignalSupersede)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var by string
		if supersede.Receive(ctx, &by) && !l.Decision.Final() {
			l.Decision, l.SupersededBy, l.changed = agent.Superseded, by, true
		}
	})
	err := workflow.SetUpdateHandlerWithOptions(ctx, verb,
		func(ctx workflow.Context, raw converter.RawValue) (agent.Ledger, error) {
			if err := l.decide(ctx, raw); err != nil {
				l.refuse(err)
				return l.Ledger, refusalError(err)
			}
			return l.Ledger, nil
		},
		workflow.UpdateHandlerOptions{Validator: func(raw converter.RawValue) error {
			_, err := agent.DecodeDecide(raw.Payload().GetData())
			return refusalError(err)
		}})
	if err != nil {
		return nil, err
	}
	return l, workflow.SetQueryHandler(ctx, QueryLedger, func() (agent.Ledger, error) { return l.Ledger, nil })
}

// keep seals the run, then writes the ledger at every change until it is final.
func (l *ledger) keep(ctx workflow.Context) (*agent.Ledger, error) {
	if err := l.write(ctx); err != nil {
		return &l.Ledger, err
	}
	if err := l.seal(ctx); err != nil {
		workflow.GetLogger(ctx).Error("run not sealed", "error", err)
	}
	until := workflow.Now(ctx).Add(time.Duration(l.ExpiresAfter))
	for {
		l.show(ctx)
		if err := l.write(ctx); err != nil {
			return &l.Ledger, err
		}
		if l.Decision.Final() && !l.changed {
			break
		}
		if err := l.wait(ctx, until); err != nil {
			return &l.Ledger, err
		}
	}
	if err := l.supersede(ctx); err != nil {
		return &l.Ledger, err
	}
	return &l.Ledger, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// wait waits for a change, or for the time to decide to pass. A conditional decision stays open without end.
func (l *ledger) wait(ctx workflow.Context, until time.Time) error {
	if l.Decision == agent.Conditional {
		return workflow.Await(ctx, func() bool { return l.changed })
	}
	ok, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout:      until.Sub(workflow.Now(ctx)),
		TimerOptions: workflow.TimerOptions{Summary: "decision expires"},
	}, func() bool { return l.changed })
	if err == nil && !ok {
		l.Decision = agent.Expired
	}
	return err
}

// decide takes one reviewer's decision. Accepting needs the quorum; everything else one voice.
func (l *ledger) decide(ctx workflow.Context, raw converter.RawValue) error {
	d, err := agent.DecodeDecide(raw.Payload().GetData())
	if err != nil {
		return err
	}
	switch {
	case l.Decision == agent.DecisionNone:
		return agent.Errorf(agent.StateError, "no reviewer was asked for a decision")
	case l.Decision.Final():
		return agent.Errorf(agent.StateError, "the decision is final: %s by %v", l.Decision, l.DecidedBy)
	case len(l.Reviewers) > 0 && !slices.Contains(l.Reviewers, d.By):
		return agent.Errorf(agent.Unauthorized, "%s is not among the reviewers %v", d.By, l.Reviewers)
	}
	l.votes[d.By] = d
	if d.Decision == agent.Accepted && l.accepting() < l.Quorum {
		return nil
	}
	now := workflow.Now(ctx)
	l.Decision, l.DecidedAt, l.Comment, l.Conditions, l.NextAction = d.Decision, &now, d.Comment, d.Conditions, d.NextAction
	l.DecidedBy = l.deciders(d)
	l.changed = true
	return nil
}

func (l *ledger) accepting() int {
	n := 0
	for _, by := range l.Reviewers {
		if l.votes[by].Decision == agent.Accepted {
			n++
		}
	}
	return n
}

func (l *ledger) deciders(d agent.LedgerDecide) []agent.UserID {
	if d.Decision != agent.Accepted {
		return []agent.UserID{d.By}
	}
	var by []agent.UserID
	for _, u := range l.Reviewers {
		if l.votes[u].Decision == agent.Accepted {
			by = append(by, u)
		}
	}
	return by
}

func (l *ledger) refuse(err error) { l.Refused = append(l.Refused, err.Error()) }

func (l *ledger) options(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: shortTime, RetryPolicy: outerRetries(), Summary: summary,
	})
}

func (l *ledger) write(ctx workflow.Context) error {
	l.changed = false
	return workflow.ExecuteActivity(l.options(ctx, "write the ledger"), l.act.WriteLedger, activities.WriteLedgerInput{Ledger: l.Ledger}).Get(ctx, nil)
}

// seal keeps the events of the closed run, and points at them.
func (l *ledger) seal(ctx workflow.Context) error {
	in := activities.SealInput{Run: l.in.Run, WorkflowID: l.WorkflowID, RunID: l.in.Close, Previous: l.in.Sealed}
	var s activities.Sealed
	if err := workflow.ExecuteActivity(l.options(ctx, "seal the events"), l.act.Seal, in).Get(ctx, &s); err != nil {
		return err
	}
	l.EvidenceRefs = append(l.EvidenceRefs, agent.Evidence{Kind: "events", Name: fmt.Sprintf("%d events", s.Events), Digest: s.Digest})
	return nil
}

// supersede tells the ledgers of the task that this one did again.
func (l *ledger) supersede(ctx workflow.Context) error {
	if l.Decision != agent.Accepted || l.Supersedes == "" {
		return nil
	}
	me := workflow.GetInfo(ctx).WorkflowExecution.ID
	var out activities.Superseded
	in := activities.SupersedeInput{Tenant: l.Tenant, Old: l.Supersedes, New: me}
	if err := workflow.ExecuteActivity(l.options(ctx, "supersede "+l.Supersedes), l.act.Supersede, in).Get(ctx, &out); err != nil {
		return err
	}
	for _, id := range out.Open {
		if err := workflow.SignalExternalWorkflow(ctx, id, "", SignalSupersede, me).Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("earlier ledger is closed", "ledger", id, "error", err)
		}
	}
	return nil
}

func (l *ledger) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** (%s)\n\n%s\n\nDecision: **%s**\n\n```\n%s\n```\n", l.WorkflowID, l.TerminationReason,
		trim(l.ProposedOutcome, 2000), l.Decision, DecideCommand(l.WorkflowID, l.RunID)))
	if !l.in.SearchAttributes || l.Decision == l.shown {
		return
	}
	l.shown = l.Decision
	if err := workflow.UpsertTypedSearchAttributes(ctx, AttrDecision.ValueSet(string(l.Decision))); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes not upserted", "error", err)
	}
}

// DecideCommand is the line of Temporal's CLI that accepts a run's outcome.
func DecideCommand(workflowID string, run agent.RunID) string {
	return fmt.Sprintf(`temporal workflow signal --workflow-id %s --name decide --input '{"decision":"accepted","by":"YOU"}'`,
		quoted(agent.LedgerWorkflowID(workflowID, run)))
}

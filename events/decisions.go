package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"

	"belay/activities"
	"belay/agent"
	"belay/store"
)

// writeLedger is the activity that writes a ledger after each of its changes, by the name of its method.
const writeLedger = "WriteLedger"

// decisions tells what people decided about the outcome, one event for each change: as the history of the ledger's workflow
// tells them, where the server still has it, and then as the record in the store stands, which knows the last one only.
func (w *walk) decisions(ctx context.Context, yield func(agent.Event) bool) error {
	var last told
	tell := func(l agent.Ledger, at time.Time) bool {
		d := toldOf(l)
		if d == last || slices.Contains([]agent.LedgerDecision{"", agent.Pending, agent.DecisionNone}, d.decision) {
			return true
		}
		last = d
		e := agent.Event{
			Time: at, RunID: string(l.RunID), Seq: w.seq, Step: w.step, Type: agent.EventDecisionRecorded,
			Fields: plain(map[string]any{
				"decision": l.Decision, "decided_by": l.DecidedBy, "comment": l.Comment, "conditions": l.Conditions, "next_action": l.NextAction,
				"superseded_by": l.SupersededBy, "ledger": agent.LedgerWorkflowID(l.WorkflowID, l.RunID),
			}),
		}
		return yield(e)
	}
	if more, err := w.written(ctx, tell); err != nil || !more {
		return err
	}
	l, err := w.r.Ledger(ctx, w.f)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	tell(l, decidedAt(l))
	return nil
}

// written gives every state of the ledger that its workflow wrote, as far as the server has its history.
func (w *walk) written(ctx context.Context, give func(agent.Ledger, time.Time) bool) (more bool, err error) {
	id := agent.LedgerWorkflowID(w.f.WorkflowID, w.f.Run.Run)
	iter := w.r.Client.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if gone(err) {
			return true, nil
		}
		if err != nil {
			return true, fmt.Errorf("history of %s: %w", id, err)
		}
		s := e.GetActivityTaskScheduledEventAttributes()
		var in activities.WriteLedgerInput
		if s.GetActivityType().GetName() != writeLedger || !decode(s.GetInput(), &in) {
			continue
		}
		at := decidedAt(in.Ledger)
		if in.Ledger.Decision == agent.Superseded {
			at = e.GetEventTime().AsTime() // DecidedAt is that of the decision before, if there was one
		}
		if !give(in.Ledger, at) {
			return false, nil
		}
	}
	return true, nil
}

// told tells one decision from another.
type told struct {
	decision     agent.LedgerDecision
	at           int64 // Unix time in nanoseconds; 0: nobody decided
	supersededBy string
}

func toldOf(l agent.Ledger) told {
	d := told{decision: l.Decision, supersededBy: l.SupersededBy}
	if l.DecidedAt != nil {
		d.at = l.DecidedAt.UnixNano()
	}
	return d
}

// decidedAt is when a decision was taken, or the time to take one ran out.
func decidedAt(l agent.Ledger) time.Time {
	switch {
	case l.DecidedAt != nil:
		return l.DecidedAt.UTC()
	case l.Decision == agent.Expired:
		return l.EndedAt.Add(time.Duration(l.ExpiresAfter)).UTC()
	}
	return l.EndedAt.UTC()
}

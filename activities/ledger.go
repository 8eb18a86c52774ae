package activities

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"belay/agent"
	"belay/store"
)

// LedgerRecord is the store's name for the ledger of one run.
func LedgerRecord(workflowID string, run agent.RunID) string {
	return LedgersOf(workflowID) + string(run)
}

// LedgersOf is the prefix of the ledgers of all runs of a workflow id.
func LedgersOf(workflowID string) string { return "ledgers/" + recordable(workflowID) + "/" }

// recordable writes a workflow id, which may hold anything, in the letters that a record's name may have. Two ids never
// come out alike: what is not a plain letter is written as its bytes, and what gets too long as its hash.
func recordable(id string) string {
	const plain, longest = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", 150
	var b strings.Builder
	for i := range len(id) {
		if strings.IndexByte(plain, id[i]) >= 0 {
			b.WriteByte(id[i])
		} else {
			fmt.Fprintf(&b, "=%02x", id[i])
		}
	}
	if b.Len() > longest {
		return fmt.Sprintf("=sha256=%x", sha256.Sum256([]byte(id)))
	}
	return b.String()
}

// WriteLedgerInput holds the ledger as it now stands.
type WriteLedgerInput struct {
	Ledger agent.Ledger `json:"ledger"`
}

// WriteLedger keeps the ledger in the store, where it can be read when the history is gone.
func (a *Activities) WriteLedger(ctx context.Context, in WriteLedgerInput) error {
	return a.short(ctx, a.writeLedger(ctx, in.Ledger))
}

func (a *Activities) writeLedger(ctx context.Context, l agent.Ledger) error {
	b, err := json.Marshal(l)
	if err == nil {
		err = a.c.Store.Tenant(l.Tenant).PutRecord(ctx, LedgerRecord(l.WorkflowID, l.RunID), b)
	}
	if err != nil {
		return fmt.Errorf("ledger of %s: %w", l.WorkflowID, err)
	}
	return nil
}

// SupersedeInput says that one ledger's task was done again and accepted.
type SupersedeInput struct {
	Tenant agent.TenantID `json:"tenant"`
	Old    string         `json:"old"` // workflow id of the earlier task
	New    string         `json:"new"` // workflow id of the ledger that takes its place
}

// Superseded lists the ledgers that are still open, which must be told.
type Superseded struct {
	Open []string `json:"open,omitempty"` // their workflow ids
}

// Supersede marks the ledgers of an earlier task in the store.
func (a *Activities) Supersede(ctx context.Context, in SupersedeInput) (Superseded, error) {
	out, err := a.supersede(ctx, in)
	return out, a.short(ctx, err)
}

func (a *Activities) supersede(ctx context.Context, in SupersedeInput) (out Superseded, err error) {
	t := a.c.Store.Tenant(in.Tenant)
	names, err := t.Records(ctx, LedgersOf(in.Old))
	if err != nil {
		return out, fmt.Errorf("ledgers of %s: %w", in.Old, err)
	}
	for _, name := range names {
		l, err := ReadLedger(ctx, t, name)
		if err != nil {
			return out, err
		}
		id := agent.LedgerWorkflowID(l.WorkflowID, l.RunID)
		if id == in.New {
			continue
		}
		if !l.Decision.Final() {
			out.Open = append(out.Open, id)
		}
		l.Decision, l.SupersededBy = agent.Superseded, in.New
		if err := a.writeLedger(ctx, l); err != nil {
			return out, err
		}
	}
	return out, nil
}

// ReadLedger reads one ledger by its record's name.
func ReadLedger(ctx context.Context, t *store.Tenant, name string) (l agent.Ledger, err error) {
	b, err := t.Record(ctx, name)
	if err != nil {
		return l, fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return l, agent.Errorf(agent.StateError, "%s: %w", name, err)
	}
	return l, nil
}

// SealInput names one closed run of a task.
type SealInput struct {
	Run        agent.RunRef `json:"run"`
	WorkflowID string       `json:"workflow_id"`
	RunID      string       `json:"run_id"`
	Previous   Sealed       `json:"previous,omitzero"`
}

// Sealed is a stored segment of a task's events and everything before it.
type Sealed struct {
	Digest agent.Digest `json:"digest,omitempty"`
	Events int          `json:"events,omitempty"` // in this segment and all before it
}

// Segment is what a sealed segment holds. The chain of digests shows that nothing was changed or left out.
type Segment struct {
	Previous agent.Digest  `json:"previous,omitempty"`
	RunID    string        `json:"run_id"`
	Events   []agent.Event `json:"events"`
}

// SealRecord is the store's name for the newest sealed segment of a run.
func SealRecord(run agent.RunRef) string { return record(run, "seal") }

// Seal projects the history of a closed run into events and stores them, before the namespace deletes the history. The
// run that is to be sealed closes right after it started this one's workflow, so an attempt may come too early.
func (a *Activities) Seal(ctx context.Context, in SealInput) (Sealed, error) {
	out, err := a.seal(ctx, in)
	return out, a.short(ctx, err)
}

func (a *Activities) seal(ctx context.Context, in SealInput) (Sealed, error) {
	if err := a.closed(ctx, in.WorkflowID, in.RunID); err != nil {
		return Sealed{}, err
	}
	events, err := a.c.Project(ctx, in.WorkflowID, in.RunID, in.Previous.Events+1)
	if err != nil {
		return Sealed{}, fmt.Errorf("events of run %s: %w", in.RunID, err)
	}
	b, err := json.Marshal(Segment{Previous: in.Previous.Digest, RunID: in.RunID, Events: events})
	if err != nil {
		return Sealed{}, agent.Errorf(agent.StateError, "segment of run %s: %w", in.RunID, err)
	}
	t := a.tenant(in.Run)
	d, err := t.Put(ctx, b)
	if err != nil {
		return Sealed{}, fmt.Errorf("segment of run %s: %w", in.RunID, err)
	}
	out := Sealed{Digest: d, Events: in.Previous.Events + len(events)}
	if b, err = json.Marshal(out); err == nil {
		err = t.PutRecord(ctx, SealRecord(in.Run), b)
	}
	return out, err
}

// closesWithin is how long a run may take to close once it has started the workflow that seals it.
const closesWithin = 5 * time.Second

// closed waits until a run has closed. One that takes longer is an error of category NetworkError, which is tried again soon.
func (a *Activities) closed(ctx context.Context, workflowID, runID string) error {
	ctx, cancel := context.WithTimeout(ctx, closesWithin)
	defer cancel()
	err := context.DeadlineExceeded
	if end := a.c.Temporal.GetWorkflowHistory(ctx, workflowID, runID, true, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT); end.HasNext() {
		_, err = end.Next()
	}
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return agent.Errorf(agent.StateError, "history of run %s is gone before it was sealed", runID)
	}
	if err != nil {
		return agent.Errorf(agent.NetworkError, "run %s has not closed yet: %w", runID, err)
	}
	return nil
}

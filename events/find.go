package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"belay/activities"
	"belay/agent"
	"belay/store"
	"belay/workflows"
)

// Reader reads tasks back, whether the server still has their histories or not.
type Reader struct {
	Client client.Client
	Store  *store.Store
	// Tenant is whose part of the store is searched for tasks that the server has no history of.
	Tenant agent.TenantID
}

// Found is a task and what is left of it.
type Found struct {
	WorkflowID string
	// Run names the task in the store.
	Run agent.RunRef
	// RunID is the run that the server knows: the one that was asked for, or the task's last one. Empty: it knows none.
	RunID string
	Open  bool

	sealed activities.Sealed // as the input of that run says
}

// Find finds a task by its workflow id and, where that id was used several times, by any of its run ids; without one it
// gives the last. A task that is neither on the server nor in the store is an InvalidInput error.
func (r Reader) Find(ctx context.Context, workflowID, runID string) (Found, error) {
	d, err := r.Client.DescribeWorkflow(ctx, workflowID, runID)
	if _, noID := errors.AsType[*serviceerror.InvalidArgument](err); noID || gone(err) { // what can't be an id is none
		return r.findStored(ctx, workflowID, runID)
	}
	if err != nil {
		return Found{}, fmt.Errorf("describe %s: %w", workflowID, err)
	}
	info := d.RawResponse.GetWorkflowExecutionInfo()
	if t := info.GetType().GetName(); t != workflows.TypeAgentTask {
		return Found{}, agent.Errorf(agent.InvalidInput, "workflow %q is a %s; expected the id of a task, a workflow of type %s", workflowID, t, workflows.TypeAgentTask)
	}
	f := Found{
		WorkflowID: workflowID,
		RunID:      info.GetExecution().GetRunId(),
		Open:       info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}
	first, err := r.startOf(ctx, workflowID, f.RunID)
	if gone(err) {
		return r.findStored(ctx, workflowID, runID)
	}
	if err != nil {
		return Found{}, err
	}
	f.Run, f.sealed = identity(first, f.RunID)
	return f, nil
}

// identity is how a run is filed in the store, and what was sealed before it. A reset run is filed under its own id.
func identity(s *history.WorkflowExecutionStartedEventAttributes, runID string) (agent.RunRef, activities.Sealed) {
	ref := agent.RunRef{Run: agent.RunID(s.GetFirstExecutionRunId())}
	c, continues := carriedBy(s)
	if continues {
		ref = agent.RunRef{Tenant: c.Task.Tenant, Run: c.Run}
	} else if task, err := agent.DecodeTask(decodeRaw(s.GetInput())); err == nil {
		ref.Tenant = task.Tenant
	}
	if s.GetOriginalExecutionRunId() != runID {
		ref.Run = agent.RunID(runID)
	}
	ref.Tenant = cmp.Or(ref.Tenant, "default") // of a task that was refused
	return ref, c.Sealed
}

// findStored finds a task that the server does not know any more by the ledger that it left.
func (r Reader) findStored(ctx context.Context, workflowID, runID string) (Found, error) {
	ledgers, err := Ledgers(ctx, r.Store.Tenant(r.Tenant), workflowID)
	if err != nil {
		return Found{}, err
	}
	for _, l := range slices.Backward(ledgers) {
		if runID == "" || runID == string(l.RunID) {
			return Found{WorkflowID: workflowID, Run: agent.RunRef{Tenant: l.Tenant, Run: l.RunID}}, nil
		}
	}
	return Found{}, agent.Errorf(agent.InvalidInput, "no task %q%s on the server, nor in the store of tenant %q", workflowID, ofRun(runID), r.Tenant)
}

func ofRun(id string) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(" with a run %q", id)
}

// Ledgers gives the ledgers that a tenant's store has of a workflow id, the last that was started at the end.
func Ledgers(ctx context.Context, t *store.Tenant, workflowID string) ([]agent.Ledger, error) {
	names, err := t.Records(ctx, activities.LedgersOf(workflowID))
	if err != nil {
		return nil, fmt.Errorf("ledgers of %s: %w", workflowID, err)
	}
	var all []agent.Ledger
	for _, name := range names {
		l, err := activities.ReadLedger(ctx, t, name)
		if err != nil {
			return nil, err
		}
		if activities.LedgerRecord(workflowID, agent.RunID(path.Base(name))) == name {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b agent.Ledger) int { return a.StartedAt.Compare(b.StartedAt) })
	return all, nil
}

// Ledger reads a task's ledger from the store; it wraps store.ErrNotFound while there is none.
func (r Reader) Ledger(ctx context.Context, f Found) (agent.Ledger, error) {
	return activities.ReadLedger(ctx, r.Store.Tenant(f.Run.Tenant), activities.LedgerRecord(f.WorkflowID, f.Run.Run))
}

// startOf reads the first event of a run.
func (r Reader) startOf(ctx context.Context, workflowID, runID string) (*history.WorkflowExecutionStartedEventAttributes, error) {
	iter := r.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !iter.HasNext() {
		return nil, agent.Errorf(agent.StateError, "run %s of %s: its history is empty", runID, workflowID)
	}
	e, err := iter.Next()
	if err != nil {
		return nil, fmt.Errorf("history of run %s of %s: %w", runID, workflowID, err)
	}
	return e.GetWorkflowExecutionStartedEventAttributes(), nil
}

// gone says whether the server answered that it has no such workflow, run or history.
func gone(err error) bool {
	_, notFound := errors.AsType[*serviceerror.NotFound](err)
	return notFound
}

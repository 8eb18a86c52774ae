package activities

import (
	"context"
	"errors"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"belay/agent"
	"belay/store"
)

// Orphans are tasks that ended without running code and so have no ledger yet.
type Orphans struct {
	Orphans []Orphan `json:"orphans,omitempty"`
}

// Orphan is one such task.
type Orphan struct {
	Ledger           agent.Ledger `json:"ledger"`
	Run              agent.RunRef `json:"run"`
	Close            string       `json:"close"`
	Sealed           Sealed       `json:"sealed,omitzero"`
	SearchAttributes bool         `json:"search_attributes,omitempty"`
}

// maxOrphans bounds one pass; the next one goes on.
const maxOrphans = 50

// endedWithoutCode finds what no workflow code could write a ledger for. A task that a history limit ended is terminated.
const endedWithoutCode = `WorkflowType="AgentTask" AND (ExecutionStatus="Terminated" OR ExecutionStatus="TimedOut")`

// FindOrphans lists closed tasks that have no ledger in the store.
func (a *Activities) FindOrphans(ctx context.Context) (Orphans, error) {
	out, err := a.findOrphans(ctx)
	return out, a.short(ctx, err)
}

func (a *Activities) findOrphans(ctx context.Context) (out Orphans, err error) {
	var page []byte
	for len(out.Orphans) < maxOrphans {
		list, err := a.c.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: endedWithoutCode, PageSize: 100, NextPageToken: page,
		})
		if err != nil {
			return out, agent.Errorf(agent.NetworkError, "list closed tasks: %w", err)
		}
		for _, e := range list.GetExecutions() {
			o, missing, err := a.orphan(ctx, e)
			if err != nil {
				return out, err
			}
			if missing {
				out.Orphans = append(out.Orphans, o)
			}
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	return out, nil
}

// orphan makes the ledger of one closed task, if it has none.
func (a *Activities) orphan(ctx context.Context, e *workflow.WorkflowExecutionInfo) (o Orphan, missing bool, err error) {
	id, run := e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId()
	l := &life{run: run}
	if err := l.read(a.c.Temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)); err != nil {
		return o, false, nil //nolint:nilerr // a history that was deleted since it was listed can't be sealed any more
	}
	task := l.Task
	if task.Goal == "" {
		return o, false, nil // refused input: nothing of it ran
	}
	o = Orphan{Run: agent.RunRef{Tenant: task.Tenant, Run: l.Run}, Close: run, Sealed: l.Sealed, SearchAttributes: a.c.SearchAttributes}
	_, err = a.tenant(o.Run).Record(ctx, LedgerRecord(id, l.Run))
	if !errors.Is(err, store.ErrNotFound) {
		return o, false, err
	}
	decision := agent.DecisionNone
	if len(task.Acceptance.Reviewers) > 0 {
		decision = agent.Pending
	}
	l.Usage.Wall = agent.Duration(e.GetCloseTime().AsTime().Sub(e.GetStartTime().AsTime()))
	o.Ledger = agent.Ledger{
		WorkflowID: id, RunID: l.Run, Tenant: task.Tenant, User: task.User, Goal: task.Goal,
		WorkspaceRef:   agent.WorkspaceRef{Source: task.Workspace.Source, Base: l.Base, Tree: l.Tree, Sandbox: string(l.Sandbox.ID)},
		ExecutionState: agent.StateErrored, TerminationReason: agent.ReasonTerminated, Error: l.why,
		Criteria: task.Acceptance.Criteria, Decision: decision, Owner: task.User, Reviewers: task.Acceptance.Reviewers,
		Quorum: task.Acceptance.Quorum, ExpiresAfter: task.Acceptance.ExpiresAfter, Supersedes: task.RerunOf, Labels: task.Labels,
		Versions: l.Prepared.Versions, Usage: l.Usage, EvidenceRefs: Evidence(l.Head, l.Tree),
		StartedAt: e.GetStartTime().AsTime(), EndedAt: e.GetCloseTime().AsTime(),
	}
	return o, true, nil
}

// Evidence points at what a run left: its conversation and its workspace.
func Evidence(head, tree agent.Digest) (refs []agent.Evidence) {
	for _, e := range []agent.Evidence{{Kind: "conversation", Digest: head}, {Kind: "workspace", Digest: tree}} {
		if e.Digest != "" {
			refs = append(refs, e)
		}
	}
	return refs
}

package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
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
	started, err := a.startOf(ctx, id, run)
	if err != nil || started == nil {
		return o, false, err
	}
	task, mine, sealed := whatRan(started, run)
	if task.Goal == "" {
		return o, false, nil // refused input: nothing of it ran
	}
	o.Run = agent.RunRef{Tenant: task.Tenant, Run: mine}
	_, err = a.tenant(o.Run).Record(ctx, LedgerRecord(id, mine))
	if !errors.Is(err, store.ErrNotFound) {
		return o, false, err
	}
	decision := agent.DecisionNone
	if len(task.Acceptance.Reviewers) > 0 {
		decision = agent.Pending
	}
	o.Ledger = agent.Ledger{
		WorkflowID: id, RunID: mine, Tenant: task.Tenant, User: task.User, Goal: task.Goal,
		WorkspaceRef:   agent.WorkspaceRef{Source: task.Workspace.Source},
		ExecutionState: agent.StateErrored, TerminationReason: agent.ReasonTerminated,
		Error:    fmt.Sprintf("the run ended as %s without running code", e.GetStatus()),
		Criteria: task.Acceptance.Criteria, Decision: decision, Owner: task.User, Reviewers: task.Acceptance.Reviewers,
		Quorum: task.Acceptance.Quorum, ExpiresAfter: task.Acceptance.ExpiresAfter, Supersedes: task.RerunOf, Labels: task.Labels,
		StartedAt: e.GetStartTime().AsTime(), EndedAt: e.GetCloseTime().AsTime(),
	}
	o.Close, o.Sealed, o.SearchAttributes = run, sealed, a.c.SearchAttributes
	return o, true, nil
}

// startOf reads the first event of a run; nil when its history is gone.
func (a *Activities) startOf(ctx context.Context, id, run string) (*history.WorkflowExecutionStartedEventAttributes, error) {
	iter := a.c.Temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !iter.HasNext() {
		return nil, nil
	}
	first, err := iter.Next()
	if err != nil {
		return nil, nil //nolint:nilerr // a history that was deleted since it was listed can't be sealed any more
	}
	return first.GetWorkflowExecutionStartedEventAttributes(), nil
}

// whatRan reads the task from a run's input: the task itself, or the state of the run before.
func whatRan(s *history.WorkflowExecutionStartedEventAttributes, run string) (agent.Task, agent.RunID, Sealed) {
	raw := dataOf(s.GetInput())
	mine := agent.RunID(s.GetFirstExecutionRunId())
	if s.GetOriginalExecutionRunId() != run {
		mine = agent.RunID(run) // after a reset
	}
	var carried struct {
		Schema string      `json:"schema"`
		Task   agent.Task  `json:"task"`
		Run    agent.RunID `json:"run"`
		Sealed Sealed      `json:"sealed"`
	}
	if json.Unmarshal(raw, &carried) == nil && carried.Schema != "" {
		if s.GetOriginalExecutionRunId() == run {
			mine = carried.Run
		}
		return carried.Task, mine, carried.Sealed
	}
	task, err := agent.DecodeTask(raw)
	if err != nil {
		return agent.Task{}, mine, Sealed{}
	}
	return task, mine, Sealed{}
}

func dataOf(p *common.Payloads) []byte {
	if len(p.GetPayloads()) == 0 {
		return nil
	}
	return p.GetPayloads()[0].GetData()
}

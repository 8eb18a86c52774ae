package events

import (
	"cmp"
	"encoding/json"
	"maps"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"

	"belay/activities"
	"belay/agent"
)

// carried is what is read of the input of a run that continues another one: that run's state.
type carried struct {
	Schema string            `json:"schema"`
	Task   agent.Task        `json:"task"`
	Run    agent.RunID       `json:"run"`
	Step   int               `json:"step"`
	Head   agent.Digest      `json:"head"`
	Sealed activities.Sealed `json:"sealed"`
	Batch  struct {
		Items []called `json:"items"`
	} `json:"batch"`
}

// carriedBy reads the state that a run continues; nothing for the first run of a task.
func carriedBy(s *history.WorkflowExecutionStartedEventAttributes) (carried, bool) {
	var c carried
	if s.GetContinuedExecutionRunId() == "" {
		return c, false
	}
	ok := json.Unmarshal(decodeRaw(s.GetInput()), &c) == nil && c.Schema != ""
	return c, ok
}

// created tells what was asked for, once in the life of a task. A run that continues another one goes on where that one was.
func (p *projector) created(e *history.HistoryEvent) {
	s := e.GetWorkflowExecutionStartedEventAttributes()
	if c, ok := carriedBy(s); ok {
		p.step, p.head = c.Step, c.Head
		for _, i := range c.Batch.Items {
			p.calls[i.Call] = i
		}
		return
	}
	if s.GetContinuedExecutionRunId() != "" {
		return
	}
	task, err := agent.DecodeTask(decodeRaw(s.GetInput()))
	if err != nil {
		p.tell(e, agent.EventTaskCreated, map[string]any{"error": err.Error()})
		return
	}
	p.tell(e, agent.EventTaskCreated, map[string]any{
		"goal": task.Goal, "agent": task.Agent, "tenant": task.Tenant, "user": task.User, "workspace": task.Workspace,
		"priority": task.Priority, "labels": task.Labels, "rerun_of": task.RerunOf,
	})
}

// end tells how the task, or only this run of it, came to its end.
func (p *projector) end(e *history.HistoryEvent) {
	switch e.GetEventType() {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		c := e.GetWorkflowExecutionCancelRequestedEventAttributes()
		p.cancel = map[string]any{"cancel_requested": e.GetEventTime().AsTime(), "cause": c.GetCause()}
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		p.ended(e, agent.EventTaskCompleted, e.GetWorkflowExecutionCompletedEventAttributes().GetResult(), nil)
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		p.ended(e, agent.EventTaskCancelled, e.GetWorkflowExecutionCanceledEventAttributes().GetDetails(),
			map[string]any{"termination_reason": agent.ReasonCancelled})
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		f := e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
		kind, text, _ := failureOf(f)
		p.ended(e, agent.EventTaskFailed, f.GetApplicationFailureInfo().GetDetails(), map[string]any{"error": text, "error_type": kind})
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		t := e.GetWorkflowExecutionTerminatedEventAttributes()
		p.ended(e, agent.EventTaskFailed, nil, map[string]any{
			"termination_reason": agent.ReasonTerminated, "error": cmp.Or(t.GetReason(), "terminated"), "by": t.GetIdentity(),
		})
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		p.ended(e, agent.EventTaskFailed, nil, map[string]any{
			"termination_reason": agent.ReasonTerminated, "error": "timed out by the server", "error_type": agent.Timeout,
		})
	}
	p.next = cmp.Or(nextRun(e), p.next)
}

// nextRun is the run that continues a run which ended with e; empty when it was the last one.
func nextRun(e *history.HistoryEvent) string {
	return cmp.Or(
		e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(),
		e.GetWorkflowExecutionCompletedEventAttributes().GetNewExecutionRunId(),
		e.GetWorkflowExecutionFailedEventAttributes().GetNewExecutionRunId(),
		e.GetWorkflowExecutionTimedOutEventAttributes().GetNewExecutionRunId(),
	)
}

// ended tells the end of the task with what its ledger says, where it left one, and the request to cancel it, if there was
// one: a cancelled task is told as one event.
func (p *projector) ended(e *history.HistoryEvent, t agent.EventType, ledger *common.Payloads, fields map[string]any) {
	all := map[string]any{}
	var l agent.Ledger
	if decode(ledger, &l) && l.TerminationReason != "" {
		all = map[string]any{
			"termination_reason": l.TerminationReason, "limit": l.Limit, "error": l.Error, "outcome": l.ProposedOutcome, "usage": l.Usage,
			"ledger": agent.LedgerWorkflowID(l.WorkflowID, l.RunID),
		}
	}
	for k, v := range fields {
		if all[k] == nil || all[k] == "" {
			all[k] = v
		}
	}
	maps.Copy(all, p.cancel)
	p.tell(e, t, all)
}

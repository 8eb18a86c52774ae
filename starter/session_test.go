package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/query/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"belay/agent"
	"belay/events"
	"belay/store"
	"belay/workflows"
)

// server answers as a Temporal server that has one task, which has ended, and no ledger of it.
type server struct {
	client.Client
	end *history.HistoryEvent
	// ledger answers queries of the ledger's workflow.
	ledger error
}

func (s *server) DescribeWorkflow(_ context.Context, id, _ string) (*client.WorkflowExecutionDescription, error) {
	if id != "term" {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	return &client.WorkflowExecutionDescription{RawResponse: &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{
		Execution: &common.WorkflowExecution{WorkflowId: id, RunId: "0123456789"}, Type: &common.WorkflowType{Name: workflows.TypeAgentTask},
		Status: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
	}}}, nil
}

func (s *server) GetWorkflowHistory(_ context.Context, id, _ string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
	p := &page{}
	if id == "term" {
		p.events = []*history.HistoryEvent{{
			EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &history.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &history.WorkflowExecutionStartedEventAttributes{
				FirstExecutionRunId: "0123456789", OriginalExecutionRunId: "0123456789",
			}},
		}, s.end}
	}
	return p
}

func (s *server) QueryWorkflowWithOptions(_ context.Context, q *client.QueryWorkflowWithOptionsRequest) (*client.QueryWorkflowWithOptionsResponse, error) {
	switch {
	case strings.HasPrefix(q.WorkflowID, ledgerPrefix):
		return nil, s.ledger
	case q.WorkflowID == "term" && q.QueryRejectCondition == enums.QUERY_REJECT_CONDITION_NOT_OPEN:
		return &client.QueryWorkflowWithOptionsResponse{QueryRejected: &query.QueryRejected{Status: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED}}, nil
	}
	return nil, serviceerror.NewNotFound("workflow not found")
}

type page struct{ events []*history.HistoryEvent }

func (p *page) HasNext() bool { return len(p.events) > 0 }

func (p *page) Next() (*history.HistoryEvent, error) {
	e := p.events[0]
	p.events = p.events[1:]
	return e, nil
}

func terminated() *history.HistoryEvent {
	return &history.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		Attributes: &history.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &history.WorkflowExecutionTerminatedEventAttributes{},
		},
	}
}

func refused() *history.HistoryEvent {
	return &history.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		Attributes: &history.HistoryEvent_WorkflowExecutionFailedEventAttributes{WorkflowExecutionFailedEventAttributes: &history.WorkflowExecutionFailedEventAttributes{
			Failure: &failure.Failure{Message: "goal: missing", FailureInfo: &failure.Failure_ApplicationFailureInfo{
				ApplicationFailureInfo: &failure.ApplicationFailureInfo{Type: string(agent.InvalidInput)},
			}},
		}},
	}
}

func newSession(t *testing.T, s *server) *session {
	t.Helper()
	st, err := store.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return &session{Client: s, store: st, tasks: events.Reader{Client: s, Store: st, Tenant: "default"}}
}

// A task without a ledger at hand says why there is none, and whether there will be one.
func TestNoLedger(t *testing.T) {
	t.Parallel()
	absent := usagef("BELAY_STORE: there is no folder")
	for _, tt := range []struct {
		name   string
		end    *history.HistoryEvent
		ledger error
		absent error
		want   string
		code   int
	}{
		{"just terminated", terminated(), serviceerror.NewNotFound("x"), nil,
			`task "term" has ended (terminated); its ledger follows within a minute, as long as a worker runs`, exitNotWell},
		{"no worker", terminated(), context.DeadlineExceeded, nil,
			`task "term" has no ledger in BELAY_STORE, and "ledger/term/01234567" did not answer within 10s; is a worker running that serves it?`, exitNotWell},
		{"no store", terminated(), context.DeadlineExceeded, absent,
			`ledger of "term": BELAY_STORE: there is no folder, and "ledger/term/01234567" did not answer within 10s; is a worker running that serves it?`, exitUsage},
		{"refused", refused(), serviceerror.NewNotFound("x"), nil, `the task ended as InvalidInput: goal: missing`, exitUsage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, &server{end: tt.end, ledger: tt.ledger})
			s.absent = tt.absent
			found, err := s.tasks.Find(t.Context(), "term", "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.ledger(t.Context(), found)
			if err == nil || err.Error() != tt.want || exitCode(err) != tt.code {
				t.Errorf("%v, exit code %d\nwant %s, %d", err, exitCode(err), tt.want, tt.code)
			}
		})
	}
}

// Nothing of a task that has ended waits for people.
func TestEndedTask(t *testing.T) {
	t.Parallel()
	s := newSession(t, &server{end: terminated()})
	_, pending := s.pending(t.Context(), "term")
	_, call := s.call(t.Context(), "term", "c1")
	for what, err := range map[string]error{"pending": pending, "call": call, "running": s.running(t.Context(), "term")} {
		if !errors.Is(err, errEnded) || exitCode(err) != exitRefused {
			t.Errorf("%s: %v, exit code %d; want that it has ended, and %d", what, err, exitCode(err), exitRefused)
		}
	}
	_, err := s.pending(t.Context(), "other")
	if want := `no task "other" on the server, nor in the store of tenant "default"`; err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// A start is watched until its task gets going, or is refused.
func TestRefusal(t *testing.T) {
	t.Parallel()
	s := newSession(t, &server{end: terminated()})
	if err := s.refusal(t.Context(), startedTask{WorkflowID: "term"}); err == nil || exitCode(err) != exitNotWell {
		t.Errorf("a task that ended at once: %v", err)
	}
	s = newSession(t, &server{end: refused()})
	if err := s.refusal(t.Context(), startedTask{WorkflowID: "term"}); err == nil || exitCode(err) != exitUsage {
		t.Errorf("a task that was refused: %v", err)
	}
	going := &history.HistoryEvent{EventType: enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, Attributes: &history.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &history.ActivityTaskScheduledEventAttributes{ActivityType: &common.ActivityType{Name: "CallModel"}},
	}}
	s = newSession(t, &server{end: going})
	if err := s.refusal(t.Context(), startedTask{WorkflowID: "term"}); err != nil {
		t.Errorf("a task that got going: %v", err)
	}
	if err := s.refusal(t.Context(), startedTask{WorkflowID: "other"}); err != nil {
		t.Errorf("a task that can't be read: %v", err)
	}
}

package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"belay/activities"
	"belay/agent"
	"belay/store"
	"belay/workflows"
)

// server answers as a Temporal server that has these histories, by run id.
type server struct {
	client.Client
	runs map[string]*past
	last string
}

func (s *server) DescribeWorkflow(_ context.Context, _, runID string) (*client.WorkflowExecutionDescription, error) {
	if runID != "" && !strings.HasPrefix(runID, "run-") {
		return nil, serviceerror.NewInvalidArgument("Invalid RunId.")
	}
	if runID == "" {
		runID = s.last
	}
	h, ok := s.runs[runID]
	if !ok {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	status := enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	if last := h.events[len(h.events)-1].GetEventType(); last == enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED {
		status = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}
	return &client.WorkflowExecutionDescription{RawResponse: &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{
		Execution: &common.WorkflowExecution{WorkflowId: "fix-calc", RunId: runID}, Type: &common.WorkflowType{Name: workflows.TypeAgentTask}, Status: status,
	}}}, nil
}

func (s *server) GetWorkflowHistory(_ context.Context, workflowID, runID string, _ bool, filter enums.HistoryEventFilterType) client.HistoryEventIterator {
	if runID == "" {
		runID = workflowID // of a ledger, which has one run
	}
	h, ok := s.runs[runID]
	if !ok {
		return &page{err: serviceerror.NewNotFound("no such history")}
	}
	if filter == enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT {
		return &page{events: h.events[len(h.events)-1:]}
	}
	return &page{events: h.events}
}

type page struct {
	events []*history.HistoryEvent
	err    error
}

func (p *page) HasNext() bool { return p.err != nil || len(p.events) > 0 }

func (p *page) Next() (*history.HistoryEvent, error) {
	if p.err != nil {
		return nil, p.err
	}
	e := p.events[0]
	p.events = p.events[1:]
	return e, nil
}

// life is a task of three runs, each of which continues the one before, on a server and in a store.
type life struct {
	t      *testing.T
	server *server
	reader Reader
	ref    agent.RunRef
	sealed activities.Sealed
}

func newLife(t *testing.T) *life {
	t.Helper()
	s, err := store.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l := &life{t: t, server: &server{runs: map[string]*past{}, last: "run-3"}, ref: agent.RunRef{Tenant: "acme", Run: "run-1"}}
	l.reader = Reader{Client: l.server, Store: s, Tenant: "acme"}
	l.run("run-1", "", "run-2")
	l.run("run-2", "run-1", "run-3")
	l.run("run-3", "run-2", "")
	return l
}

// run is one run of the task: a model call, then it is continued, or has ended.
func (l *life) run(id, before, next string) *past {
	h := &past{t: l.t}
	var input any = map[string]any{"goal": "g", "tenant": "acme"}
	if before != "" {
		input = map[string]any{"schema": "belay/state/1", "run": "run-1", "task": map[string]any{"goal": "g", "tenant": "acme"}}
	}
	h.begun(input, before)
	started := h.events[0].GetWorkflowExecutionStartedEventAttributes()
	started.FirstExecutionRunId, started.OriginalExecutionRunId = "run-1", id
	h.scheduled(callModel, activities.ModelInput{Step: len(l.server.runs) + 1})
	if next == "" {
		h.ended(enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, &history.HistoryEvent{
			Attributes: &history.HistoryEvent_WorkflowExecutionCompletedEventAttributes{WorkflowExecutionCompletedEventAttributes: &history.WorkflowExecutionCompletedEventAttributes{
				Result: h.payloads(ledgerOf(agent.ReasonFinalAnswer)),
			}},
		})
	} else {
		h.ended(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, &history.HistoryEvent{
			Attributes: &history.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{WorkflowExecutionContinuedAsNewEventAttributes: &history.WorkflowExecutionContinuedAsNewEventAttributes{
				NewExecutionRunId: next,
			}},
		})
	}
	l.server.runs[id] = h
	return h
}

// seal does what the activity of that name does.
func (l *life) seal(runs ...string) {
	l.t.Helper()
	for _, id := range runs {
		all, err := Project(l.t.Context(), l.server, "fix-calc", id, l.sealed.Events+1)
		if err != nil {
			l.t.Fatal(err)
		}
		l.sealed = activities.Sealed{Digest: l.put(activities.Segment{Previous: l.sealed.Digest, RunID: id, Events: all}), Events: l.sealed.Events + len(all)}
		l.record(activities.SealRecord(l.ref), l.sealed)
	}
}

func (l *life) put(v any) agent.Digest {
	l.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		l.t.Fatal(err)
	}
	d, err := l.reader.Store.Tenant("acme").Put(l.t.Context(), b)
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}

func (l *life) record(name string, v any) {
	l.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.reader.Store.Tenant("acme").PutRecord(l.t.Context(), name, b); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) ledger(decision agent.LedgerDecision) {
	rec := ledgerOf(agent.ReasonFinalAnswer)
	rec.WorkflowID, rec.RunID, rec.Tenant, rec.Decision, rec.DecidedAt, rec.DecidedBy = "fix-calc", l.ref.Run, "acme", decision, &start, []agent.UserID{"ana"}
	l.record(activities.LedgerRecord("fix-calc", l.ref.Run), rec)
}

// forget deletes histories, as the end of their retention does.
func (l *life) forget(runs ...string) {
	for _, id := range runs {
		delete(l.server.runs, id)
	}
}

// read gives the events as "seq run type", one a line, and the error that ended them.
func (l *life) read() (string, error) {
	l.t.Helper()
	found, err := l.reader.Find(l.t.Context(), "fix-calc", "")
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for e, err := range l.reader.Read(l.t.Context(), found) {
		if err != nil {
			return lines.String(), err
		}
		fmt.Fprintf(&lines, "%d %s %s\n", e.Seq, e.RunID, e.Type)
	}
	return lines.String(), nil
}

const wholeLife = `1 run-1 TASK_CREATED
2 run-1 MODEL_INVOKED
3 run-2 MODEL_INVOKED
4 run-3 MODEL_INVOKED
5 run-3 TASK_COMPLETED
`

const decided = "6 run-1 DECISION_RECORDED\n"

// However much of a task is sealed, and however much of its history is left, its events are the same.
func TestReadIsTheSameFromHistoryAndStore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		sealed []string
		gone   []string
	}{
		{"nothing sealed", nil, nil},
		{"first run sealed", []string{"run-1"}, nil},
		{"first run sealed and gone", []string{"run-1"}, []string{"run-1"}},
		{"two sealed and gone", []string{"run-1", "run-2"}, []string{"run-1", "run-2"}},
		{"all sealed", []string{"run-1", "run-2", "run-3"}, nil},
		{"all sealed and gone", []string{"run-1", "run-2", "run-3"}, []string{"run-1", "run-2", "run-3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.seal(tt.sealed...)
			l.forget(tt.gone...)
			l.ledger(agent.Accepted)
			got, err := l.read()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(wholeLife+decided, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReadTellsNoDecisionBeforeThereIsOne(t *testing.T) {
	t.Parallel()
	for _, d := range []agent.LedgerDecision{agent.Pending, agent.DecisionNone} {
		l := newLife(t)
		l.ledger(d)
		got, err := l.read()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(wholeLife, got); d != "" {
			t.Error(d)
		}
	}
}

// Every decision is told while the ledger's own history is there, and the last one when only its record is.
func TestReadTellsEveryDecision(t *testing.T) {
	t.Parallel()
	minute := func(n int) *time.Time { at := start.Add(time.Duration(n) * time.Minute); return &at }
	states := []agent.Ledger{
		{Decision: agent.Pending},
		{Decision: agent.Pending, EvidenceRefs: []agent.Evidence{{Kind: "events"}}},
		{Decision: agent.Conditional, DecidedBy: []agent.UserID{"ana"}, DecidedAt: minute(1), Conditions: []string{"add a test"}},
		{Decision: agent.Conditional, DecidedBy: []agent.UserID{"ana"}, DecidedAt: minute(1), Conditions: []string{"add a test"}, Refused: []string{"eve"}},
		{Decision: agent.Accepted, DecidedBy: []agent.UserID{"ben"}, DecidedAt: minute(2)},
	}
	const id = "ledger/fix-calc/run-1"
	for _, tt := range []struct {
		name    string
		history bool
		record  agent.Ledger
		want    string
	}{
		{"history and record", true, states[4], "6 conditional [ana] 12:01\n7 accepted [ben] 12:02\n"},
		{"superseded in the store after the ledger closed", true, agent.Ledger{Decision: agent.Superseded, SupersededBy: "ledger/again/1", DecidedAt: minute(2)},
			"6 conditional [ana] 12:01\n7 accepted [ben] 12:02\n8 superseded <nil> 12:02\n"},
		{"record alone", false, states[4], "6 accepted [ben] 12:02\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			if tt.history {
				h := &past{t: t}
				for _, s := range states {
					s.WorkflowID, s.RunID = "fix-calc", "run-1"
					h.completed(h.scheduled(writeLedger, activities.WriteLedgerInput{Ledger: s}), nil)
				}
				l.server.runs[id] = h
			}
			tt.record.WorkflowID, tt.record.RunID = "fix-calc", "run-1"
			l.record(activities.LedgerRecord("fix-calc", "run-1"), tt.record)
			found, err := l.reader.Find(t.Context(), "fix-calc", "")
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for e, err := range l.reader.Read(t.Context(), found) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Type == agent.EventDecisionRecorded {
					fmt.Fprintf(&got, "%d %v %v %s\n", e.Seq, e.Fields["decision"], e.Fields["decided_by"], e.Time.Format("15:04"))
				}
			}
			if d := cmp.Diff(tt.want, got.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// What is missing or was changed is said, after what came before it.
func TestReadFindsHoles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		damage func(*life)
		want   string
	}{
		{"a run is neither sealed nor there", func(l *life) {
			l.seal("run-1")
			l.forget("run-1", "run-2")
		}, "history of run run-2 of fix-calc is gone, and its events were not sealed"},
		{"nothing is left but the ledger", func(l *life) {
			l.ledger(agent.Accepted)
			l.forget("run-1", "run-2", "run-3")
		}, "history of run run-1 of fix-calc is gone, and its events were not sealed"},
		{"a segment was left out", func(l *life) {
			l.seal("run-1", "run-2")
			first := l.put(activities.Segment{RunID: "run-1", Events: []agent.Event{{Seq: 1}}})
			second := l.put(activities.Segment{Previous: first, RunID: "run-2", Events: []agent.Event{{Seq: 3}}})
			l.record(activities.SealRecord(l.ref), activities.Sealed{Digest: second, Events: 3})
		}, "event 3 where 2 was expected"},
		{"the last events were cut", func(l *life) {
			l.record(activities.SealRecord(l.ref), activities.Sealed{Digest: l.put(activities.Segment{RunID: "run-1", Events: []agent.Event{{Seq: 1}}}), Events: 2})
		}, "1 events; expected 2"},
		{"a segment is not in the store", func(l *life) {
			l.record(activities.SealRecord(l.ref), activities.Sealed{Digest: digestA, Events: 2})
		}, "segment " + string(digestA) + " is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			tt.damage(l)
			_, err := l.read()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("read: %v; want %q", err, tt.want)
			}
			if got := agent.TypeOf(err); got != agent.StateError {
				t.Errorf("error type %q, want %q", got, agent.StateError)
			}
		})
	}
}

// A run that was reset goes on under its own id, with what was sealed before the point to which it was reset.
func TestFindAfterReset(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.seal("run-1", "run-2")
	h := l.run("run-4", "run-2", "")
	s := h.events[0].GetWorkflowExecutionStartedEventAttributes()
	s.OriginalExecutionRunId = "run-3"
	s.Input = h.payloads(map[string]any{
		"schema": "belay/state/1", "run": "run-1", "task": map[string]any{"goal": "g", "tenant": "acme"}, "sealed": l.sealed,
	})
	l.server.last = "run-4"
	found, err := l.reader.Find(t.Context(), "fix-calc", "")
	if err != nil {
		t.Fatal(err)
	}
	if want := (agent.RunRef{Tenant: "acme", Run: "run-4"}); found.Run != want || found.Open {
		t.Errorf("found %+v, want %+v, closed", found, want)
	}
	got, err := l.read()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.ReplaceAll(wholeLife, "run-3", "run-4"), got); d != "" {
		t.Error(d)
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.ledger(agent.Accepted)
	l.forget("run-1", "run-2", "run-3")
	for _, tt := range []struct{ id, run, want string }{
		{"other", "", `no task "other" on the server, nor in the store of tenant "acme"`},
		{"fix-calc", "run-9", `no task "fix-calc" with a run "run-9" on the server, nor in the store of tenant "acme"`},
		{"fix-calc", "nosuch", `no task "fix-calc" with a run "nosuch" on the server, nor in the store of tenant "acme"`},
	} {
		_, err := l.reader.Find(t.Context(), tt.id, tt.run)
		if err == nil || err.Error() != tt.want || agent.TypeOf(err) != agent.InvalidInput {
			t.Errorf("find %s: %v; want %s", tt.id, err, tt.want)
		}
	}
}

// A caller that has seen enough ends the reading.
func TestReadStops(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.seal("run-1")
	found, err := l.reader.Find(t.Context(), "fix-calc", "")
	if err != nil {
		t.Fatal(err)
	}
	for most := 1; most <= 5; most++ {
		n := 0
		for _, err := range l.reader.Read(t.Context(), found) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == most {
				break
			}
		}
		if n != most {
			t.Errorf("read %d events, want %d", n, most)
		}
	}
}

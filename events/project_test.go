package events

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"belay/activities"
	"belay/agent"
)

// past is a history in the making; its n-th event happens n seconds after start.
type past struct {
	t      testing.TB
	events []*history.HistoryEvent
}

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func (h *past) add(e *history.HistoryEvent) int64 {
	id := int64(len(h.events) + 1)
	e.EventId, e.EventTime = id, timestamppb.New(start.Add(time.Duration(id)*time.Second))
	h.events = append(h.events, e)
	return id
}

func (h *past) payloads(v ...any) *common.Payloads {
	h.t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(v...)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (h *past) begun(input any, continued string) {
	h.add(&history.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		Attributes: &history.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &history.WorkflowExecutionStartedEventAttributes{
			Input: h.payloads(input), ContinuedExecutionRunId: continued,
		}},
	})
}

func (h *past) scheduled(name string, input any) int64 {
	return h.add(&history.HistoryEvent{
		EventType: enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
		Attributes: &history.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &history.ActivityTaskScheduledEventAttributes{
			ActivityType: &common.ActivityType{Name: name}, Input: h.payloads(input),
		}},
	})
}

func (h *past) started(of int64, attempt int32, last *failure.Failure) {
	h.add(&history.HistoryEvent{
		EventType: enums.EVENT_TYPE_ACTIVITY_TASK_STARTED,
		Attributes: &history.HistoryEvent_ActivityTaskStartedEventAttributes{ActivityTaskStartedEventAttributes: &history.ActivityTaskStartedEventAttributes{
			ScheduledEventId: of, Attempt: attempt, LastFailure: last,
		}},
	})
}

func (h *past) completed(of int64, result any) {
	h.add(&history.HistoryEvent{
		EventType: enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
		Attributes: &history.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: &history.ActivityTaskCompletedEventAttributes{
			ScheduledEventId: of, Result: h.payloads(result),
		}},
	})
}

func (h *past) failed(of int64, f *failure.Failure) {
	h.add(&history.HistoryEvent{
		EventType: enums.EVENT_TYPE_ACTIVITY_TASK_FAILED,
		Attributes: &history.HistoryEvent_ActivityTaskFailedEventAttributes{ActivityTaskFailedEventAttributes: &history.ActivityTaskFailedEventAttributes{
			ScheduledEventId: of, Failure: f,
		}},
	})
}

func (h *past) cancelled(of int64, details any) {
	h.add(&history.HistoryEvent{
		EventType: enums.EVENT_TYPE_ACTIVITY_TASK_CANCELED,
		Attributes: &history.HistoryEvent_ActivityTaskCanceledEventAttributes{ActivityTaskCanceledEventAttributes: &history.ActivityTaskCanceledEventAttributes{
			ScheduledEventId: of, Details: h.payloads(details),
		}},
	})
}

// gated is the marker that the SDK writes for the gate.
func (h *past) gated(out activities.GateOutput) {
	data := struct {
		ActivityID, ActivityType string
		Attempt                  int32
	}{"1", gate, 1}
	h.add(&history.HistoryEvent{
		EventType: enums.EVENT_TYPE_MARKER_RECORDED,
		Attributes: &history.HistoryEvent_MarkerRecordedEventAttributes{MarkerRecordedEventAttributes: &history.MarkerRecordedEventAttributes{
			MarkerName: localActivityMarker,
			Details:    map[string]*common.Payloads{markerData: h.payloads(data), markerResult: h.payloads(out)},
		}},
	})
}

func application(kind agent.ErrorType, text string, details *common.Payloads) *failure.Failure {
	return &failure.Failure{Message: text, FailureInfo: &failure.Failure_ApplicationFailureInfo{
		ApplicationFailureInfo: &failure.ApplicationFailureInfo{Type: string(kind), Details: details},
	}}
}

func (h *past) ended(t enums.EventType, e *history.HistoryEvent) {
	e.EventType = t
	h.add(e)
}

// project gives the events of a history, one JSON object a line.
func (h *past) project() string {
	h.t.Helper()
	p := newProjector("run-1", 1)
	var lines strings.Builder
	for _, e := range h.events {
		for _, event := range p.take(e) {
			b, err := json.Marshal(event)
			if err != nil {
				h.t.Fatal(err)
			}
			lines.Write(append(b, '\n'))
		}
	}
	return lines.String()
}

const (
	digestA = agent.Digest("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	digestB = agent.Digest("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")
)

func ledgerOf(reason agent.TerminationReason) agent.Ledger {
	return agent.Ledger{WorkflowID: "fix-calc", RunID: "0123456789", TerminationReason: reason, ProposedOutcome: "done", Usage: agent.Usage{Steps: 2, CostUSD: 0.5}}
}

// histories are the tests' histories by the name of the file in testdata that holds their events.
func histories(t testing.TB) map[string]*past {
	all := map[string]*past{}
	history := func(name string) *past {
		h := &past{t: t}
		all[name] = h
		return h
	}
	wholeTask(history("whole"))
	spokenTo(history("spoken-to"))
	troubles(history("troubles"))
	ends(history)
	continued(history("continued"))
	return all
}

func wholeTask(h *past) {
	h.begun(map[string]any{"goal": "make it pass", "workspace": map[string]any{"source": "examples/calc"}, "labels": map[string]string{"ticket": "B-7"}}, "")
	ref := agent.RunRef{Tenant: "default", Run: "run-1"}
	prepare := h.scheduled("Prepare", activities.PrepareInput{Run: ref, Notes: []agent.Note{{Type: agent.EventTaskStarted, Time: start}}})
	h.started(prepare, 1, nil)
	h.completed(prepare, activities.Prepared{Head: digestA})
	acquire := h.scheduled(acquireSandbox, activities.AcquireInput{Run: ref, Generation: 1})
	h.completed(acquire, activities.Acquired{Sandbox: activities.SandboxRef{ID: "run1-g1", Generation: 1}, Tree: digestA, Level: "process", Warnings: []string{"no cgroup"}})
	model := h.scheduled(callModel, activities.ModelInput{Run: ref, Step: 1, Head: digestA})
	h.completed(model, activities.ModelOutput{Head: digestB, Kind: activities.ReplyCalls, Calls: 4, Usage: agent.Usage{InputTokens: 10, OutputTokens: 5, CostUSD: 0.25}, Condensed: 3})
	h.gated(activities.GateOutput{Verdicts: []activities.Verdict{
		{Call: "c1", Tool: "shell", Gate: activities.GateAllow, Digest: digestA, Effect: agent.EffectSandboxed, Risk: agent.RiskLow, Summary: "go test ./...", Rules: []string{"ordinary"}},
		{Call: "c2", Tool: "shell", Gate: activities.GateApproval, Digest: digestB, Effect: agent.EffectSandboxed, Risk: agent.RiskHigh, Why: "deletes", Reviewers: []agent.UserID{"ana"}, Arguments: `{"command":"rm -rf legacy"}`},
		{Call: "c3", Tool: "shell", Digest: digestB, Risk: agent.RiskHigh, Why: "escapes"},
		{Call: "c4", Tool: "shel", Gate: activities.GateInvalid, Why: "no such tool"},
	}})
	notify := h.scheduled("Notify", activities.NotifyInput{Step: 1, Notes: []agent.Note{
		{Type: agent.EventApprovalRequested, Time: start.Add(time.Minute), Step: 1, Fields: map[string]any{"call": "c2", "risk": "high"}},
	}})
	h.completed(notify, nil)
	run := h.scheduled(execute, activities.ExecuteInput{Step: 1, Call: "c1", Allow: digestA, Sandbox: "run1-g1"})
	h.completed(run, activities.ExecuteOutput{Status: agent.CallOK, Observation: digestA, Tree: digestB, Duration: agent.Duration(1500 * time.Millisecond)})
	check := h.scheduled(runChecks, activities.ChecksInput{Step: 2, Round: 1})
	h.completed(check, activities.ChecksOutput{Checks: []agent.CheckResult{{Command: "true", Status: agent.CallOK}, {Command: "false", Status: agent.CallFailed, Exit: 1}}})
	last := h.scheduled(checkpoint, activities.CheckpointInput{Step: 2})
	h.completed(last, activities.CheckpointOutput{Tree: digestA, Skipped: []string{"socket s"}})
	h.ended(enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED, &history.HistoryEvent{
		Attributes: &history.HistoryEvent_StartChildWorkflowExecutionInitiatedEventAttributes{StartChildWorkflowExecutionInitiatedEventAttributes: &history.StartChildWorkflowExecutionInitiatedEventAttributes{
			Input: h.payloads(map[string]any{"notes": []agent.Note{{Type: agent.EventControlRefused, Time: start, Step: 2, Fields: map[string]any{"verb": "approve"}}}}),
		}},
	})
	h.ended(enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, &history.HistoryEvent{
		Attributes: &history.HistoryEvent_WorkflowExecutionCompletedEventAttributes{WorkflowExecutionCompletedEventAttributes: &history.WorkflowExecutionCompletedEventAttributes{
			Result: h.payloads(ledgerOf(agent.ReasonFinalAnswer)),
		}},
	})
}

// spokenTo is a model that hears what people and the runtime say.
func spokenTo(h *past) {
	h.scheduled(callModel, activities.ModelInput{Step: 1, Said: []string{
		"ana says: leave the API alone", "ben says: she says: hurry", "ana says: please", "The sandbox was lost and made anew.", "The limit says: stop",
	}})
	h.scheduled(callModel, activities.ModelInput{Step: 2, Said: []string{"You said that you are done, but acceptance checks failed."}})
}

func troubles(h *past) {
	spent := h.payloads(agent.Usage{InputTokens: 7})
	model := h.scheduled(callModel, activities.ModelInput{Step: 3})
	h.started(model, 2, application(agent.NetworkError, "connection cut", nil))
	h.failed(model, application(agent.ModelError, "bad key", spent))
	stopped := h.scheduled(callModel, activities.ModelInput{Step: 3, NoTools: true})
	h.cancelled(stopped, agent.Usage{OutputTokens: 9})
	denied := h.scheduled(execute, activities.ExecuteInput{Step: 3, Call: "c7"})
	h.failed(denied, application(agent.PolicyDenied, "policy now says deny", nil))
	lost := h.scheduled(execute, activities.ExecuteInput{Step: 3, Call: "c8"})
	h.failed(lost, application(agent.SandboxLost, "host is gone", nil))
	killed := h.scheduled(execute, activities.ExecuteInput{Step: 3, Call: "c9"})
	h.cancelled(killed, agent.Usage{})
	late := h.scheduled(runChecks, activities.ChecksInput{Step: 3, Round: 2})
	h.ended(enums.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, &history.HistoryEvent{
		Attributes: &history.HistoryEvent_ActivityTaskTimedOutEventAttributes{ActivityTaskTimedOutEventAttributes: &history.ActivityTaskTimedOutEventAttributes{
			ScheduledEventId: late, Failure: &failure.Failure{Message: "activity timeout", FailureInfo: &failure.Failure_TimeoutFailureInfo{TimeoutFailureInfo: &failure.TimeoutFailureInfo{}}},
		}},
	})
}

func ends(history0 func(string) *past) {
	h := history0("failed")
	h.begun(map[string]any{"goal": "g"}, "")
	h.ended(enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, &history.HistoryEvent{
		Attributes: &history.HistoryEvent_WorkflowExecutionFailedEventAttributes{WorkflowExecutionFailedEventAttributes: &history.WorkflowExecutionFailedEventAttributes{
			Failure: application(agent.ResourceExhausted, "max_steps: reached", h.payloads(ledgerOf(agent.ReasonMaxSteps))),
		}},
	})
	h = history0("refused")
	h.begun(map[string]any{"gaol": "g"}, "")
	h.ended(enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, &history.HistoryEvent{
		Attributes: &history.HistoryEvent_WorkflowExecutionFailedEventAttributes{WorkflowExecutionFailedEventAttributes: &history.WorkflowExecutionFailedEventAttributes{
			Failure: application(agent.InvalidInput, "gaol: unknown field", nil),
		}},
	})
	h = history0("cancelled")
	h.ended(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED, &history.HistoryEvent{
		Attributes: &history.HistoryEvent_WorkflowExecutionCancelRequestedEventAttributes{WorkflowExecutionCancelRequestedEventAttributes: &history.WorkflowExecutionCancelRequestedEventAttributes{
			Cause: "enough",
		}},
	})
	h.ended(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, &history.HistoryEvent{
		Attributes: &history.HistoryEvent_WorkflowExecutionCanceledEventAttributes{WorkflowExecutionCanceledEventAttributes: &history.WorkflowExecutionCanceledEventAttributes{
			Details: h.payloads(ledgerOf(agent.ReasonCancelled)),
		}},
	})
	h = history0("terminated")
	h.ended(enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, &history.HistoryEvent{
		Attributes: &history.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{WorkflowExecutionTerminatedEventAttributes: &history.WorkflowExecutionTerminatedEventAttributes{
			Reason: "by hand", Identity: "ana",
		}},
	})
	h = history0("timed-out")
	h.ended(enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, &history.HistoryEvent{
		Attributes: &history.HistoryEvent_WorkflowExecutionTimedOutEventAttributes{WorkflowExecutionTimedOutEventAttributes: &history.WorkflowExecutionTimedOutEventAttributes{}},
	})
}

// continued goes on in the middle of a batch: the calls are known from the state that it was given.
func continued(h *past) {
	h.begun(map[string]any{
		"schema": "belay/state/1", "step": 40, "run": "run-0", "task": map[string]any{"goal": "g"},
		"batch": map[string]any{"items": []any{map[string]any{"call": "c80", "tool": "shell", "summary": "make"}}},
	}, "run-0")
	run := h.scheduled(execute, activities.ExecuteInput{Step: 40, Call: "c80"})
	h.completed(run, activities.ExecuteOutput{Status: agent.CallFailed, Observation: digestA})
	h.ended(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, &history.HistoryEvent{
		Attributes: &history.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{WorkflowExecutionContinuedAsNewEventAttributes: &history.WorkflowExecutionContinuedAsNewEventAttributes{
			NewExecutionRunId: "run-2",
		}},
	})
}

var record = flag.Bool("record", false, "write the projections that testdata lacks")

// The projection is a record that outlives histories: what a history tells must not change.
func TestProjection(t *testing.T) {
	t.Parallel()
	for name, h := range histories(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "testdata/" + name + ".jsonl"
			got := h.project()
			want, err := os.ReadFile(file)
			if *record && errors.Is(err, os.ErrNotExist) {
				want, err = []byte(got), os.WriteFile(file, []byte(got), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
			if again := h.project(); again != got {
				t.Error("the same history gave other events")
			}
		})
	}
}

// Histories that the workflows really wrote tell who spoke to the model, and that a task was cancelled once.
func TestRecordedHistories(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, field string
		event       agent.EventType
		want        []any
	}{
		{"paused_and_steered", "said_by", agent.EventModelInvoked, []any{[]any{"ana"}}},
		{"cancelled", "termination_reason", agent.EventTaskCancelled, []any{"cancelled"}},
	} {
		f, err := os.Open("../workflows/testdata/histories/" + tt.name + ".json.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		var h history.History
		if err := protojson.Unmarshal(b, &h); err != nil {
			t.Fatal(err)
		}
		p := newProjector("run", 1)
		var got []any
		for _, e := range h.GetEvents() {
			for _, event := range p.take(e) {
				if event.Type == tt.event && event.Fields[tt.field] != nil {
					got = append(got, event.Fields[tt.field])
				}
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

// An event that was sealed reads back as the one that a history tells.
func TestEventsSurviveSealing(t *testing.T) {
	t.Parallel()
	for name, h := range histories(t) {
		p := newProjector("run-1", 1)
		for _, e := range h.events {
			for _, want := range p.take(e) {
				b, err := json.Marshal(want)
				if err != nil {
					t.Fatal(err)
				}
				var got agent.Event
				if err := json.Unmarshal(b, &got); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s: %s", name, d)
				}
			}
		}
	}
}

// A longer history tells the same events first, so an event keeps its number while the run goes on.
func TestProjectionGrows(t *testing.T) {
	t.Parallel()
	whole := histories(t)["whole"]
	all := whole.project()
	for n := range whole.events {
		part := past{t: t, events: whole.events[:n]}
		if got := part.project(); !strings.HasPrefix(all, got) {
			t.Fatalf("the first %d events tell %s", n, got)
		}
	}
}

func TestProjectionNamesTheNextRun(t *testing.T) {
	t.Parallel()
	p := newProjector("run-1", 1)
	for _, e := range histories(t)["continued"].events {
		p.take(e)
	}
	if p.next != "run-2" {
		t.Errorf("next run is %q, want run-2", p.next)
	}
}

// Histories of other versions, of other workflows, and cut ones: they tell less, and never break the projection.
func FuzzProjection(f *testing.F) {
	for _, h := range histories(f) {
		for _, e := range h.events {
			b, err := proto.Marshal(e)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
			f.Add(b[:len(b)/2])
		}
	}
	for kind := range enums.EventType_name {
		b, err := proto.Marshal(&history.HistoryEvent{EventType: enums.EventType(kind)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var e history.HistoryEvent
		if proto.Unmarshal(raw, &e) != nil {
			return
		}
		p := newProjector("run", 5)
		p.open[e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()] = activity{kind: callModel}
		p.open[e.GetActivityTaskFailedEventAttributes().GetScheduledEventId()] = activity{kind: execute}
		for i, event := range p.take(&e) {
			if event.Seq != 5+i || event.Type == "" && e.GetEventType() != enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
				t.Errorf("event %d: %+v", i, event)
			}
			if _, err := json.Marshal(event); err != nil && event.Time.Year() >= 0 && event.Time.Year() < 10000 {
				t.Errorf("%+v: %v", event, err)
			}
		}
	})
}

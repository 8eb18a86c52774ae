package workflows_test

import (
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"belay/agent"
	"belay/sandbox/sandboxtest"
	"belay/testserver"
	"belay/workflows"
)

var record = flag.Bool("record", false, "record the histories that are missing")

// recording is one scenario whose history is kept: how a task comes to one of its ends.
type recording struct {
	name, scenario, task string
	// during is what people do while the task runs; it begins when the task waits.
	during func(*recorder)
	// crowded makes the server ask for a new history after a few steps; the last one is kept.
	crowded bool
}

// recorder drives one task on a real server.
type recorder struct {
	*testing.T
	c     client.Client
	id    string
	boxes *sandboxtest.Fake
}

// reset puts the task back to its first workflow task after the model's first reply.
func (r *recorder) reset() {
	r.Helper()
	iter := r.c.GetWorkflowHistory(r.Context(), r.id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var completed []int64
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			r.Fatal(err)
		}
		if e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			completed = append(completed, e.GetEventId())
		}
	}
	_, err := r.c.ResetWorkflowExecution(r.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &common.WorkflowExecution{WorkflowId: r.id},
		Reason: "recording", WorkflowTaskFinishEventId: completed[len(completed)/2], RequestId: uuid.NewString(),
	})
	if err != nil {
		r.Fatal(err)
	}
}

func (r *recorder) signal(verb agent.Verb, text string) {
	r.Helper()
	if err := r.c.SignalWorkflow(r.Context(), r.id, "", string(verb), raw(r.T, text)); err != nil {
		r.Fatal(err)
	}
}

// pending waits until something is pending and gives it.
func (r *recorder) pending() workflows.Pending {
	r.Helper()
	for r.Context().Err() == nil {
		var p []workflows.Pending
		v, err := r.c.QueryWorkflow(r.Context(), r.id, "", workflows.QueryPending)
		if err == nil && v.Get(&p) == nil && len(p) > 0 {
			return p[0]
		}
		time.Sleep(20 * time.Millisecond)
	}
	r.Fatal("nothing became pending")
	return workflows.Pending{}
}

func approve(r *recorder) {
	p := r.pending()
	r.signal(agent.VerbApprove, fmt.Sprintf(`{"call":"%s","digest":"%s","by":"ana"}`, p.Call, p.Digest.Short()))
}

// writesALot takes steps enough for several histories, and asks for an approval in a late one.
const writesALot = `
rules:
  - when: {turn: 12}
    reply: {calls: [{tool: shell, arguments: {command: rm -rf legacy}}]}
  - when: {last_tool_contains: exit}
    reply: {text: done}
  - reply: {calls: [{tool: write_file, arguments: {path: "legacy/f{{.Turn}}.txt", content: "{{.Turn}}"}}]}
`

const busyModel = `
rules:
  - reply: {calls: [{tool: write_file, arguments: {path: "f{{.Turn}}.txt", content: "{{.Turn}}"}}]}
`

// recordings cover every termination reason, and what people can say.
var recordings = []recording{
	{name: "final_answer", scenario: writes, task: `{"goal":"write a file","acceptance":{"checks":["test -e a.txt"],"reviewers":["ana"]}}`},
	{name: "final_answer_parallel", scenario: parallelReads, task: `{"goal":"read"}`},
	{name: "approved", scenario: asks, task: `{"goal":"clean up"}`, during: approve},
	{name: "rejected", scenario: asks, task: `{"goal":"clean up"}`, during: func(r *recorder) {
		p := r.pending()
		r.signal(agent.VerbReject, fmt.Sprintf(`{"call":"%s","digest":"%s","by":"ana","feedback":"keep it"}`, p.Call, p.Digest.Short()))
	}},
	{name: "edited", scenario: asks, task: `{"goal":"clean up"}`, during: func(r *recorder) {
		p := r.pending()
		r.signal(agent.VerbEdit, fmt.Sprintf(`{"call":"%s","digest":"%s","by":"ana","arguments":{"command":"rm legacy/old.txt"}}`, p.Call, p.Digest.Short()))
	}},
	{name: "paused_and_steered", scenario: asks, task: `{"goal":"clean up"}`, during: func(r *recorder) {
		p := r.pending()
		r.signal(agent.VerbPause, `{"by":"ana"}`)
		r.signal(agent.VerbMessage, `{"by":"ana","text":"be quick"}`)
		r.signal(agent.VerbApprove, `{"call":"c2","digest":"000000000000","by":"eve"}`)
		r.signal(agent.VerbApprove, fmt.Sprintf(`{"call":"%s","digest":"%s","by":"ana"}`, p.Call, p.Digest.Short()))
		r.signal(agent.VerbResume, `{"by":"ana"}`)
	}},
	{name: "answered", scenario: asksAPerson, task: `{"goal":"ask"}`, during: func(r *recorder) {
		r.pending()
		r.signal(agent.VerbAnswer, `{"question":"q1","by":"ana","text":"main"}`)
	}},
	{name: "raised", scenario: busyModel, task: `{"goal":"g","limits":{"max_steps":2,"on_limit":"ask"}}`, during: func(r *recorder) {
		r.pending()
		r.signal(agent.VerbRaise, `{"by":"ana","limits":{"max_steps":3}}`)
		for r.pending().Limit == "" {
		}
		if err := r.c.CancelWorkflow(r.Context(), r.id, ""); err != nil {
			r.Fatal(err)
		}
	}},
	{name: "max_steps", scenario: busyModel, task: `{"goal":"g","limits":{"max_steps":2}}`},
	{name: "summarized", scenario: summarizes, task: `{"goal":"g","limits":{"max_steps":2,"on_limit":"summarize"}}`},
	{name: "budget_exhausted", scenario: busyModel, task: `{"goal":"g","limits":{"max_tool_calls":2}}`},
	{name: "timeout", scenario: `rules: [{reply: {calls: [{tool: shell, arguments: {command: sleep 60}}]}}]`, task: `{"goal":"g","limits":{"task_timeout":"2s"}}`},
	{name: "model_timeout", scenario: `rules: [{reply: {text: x}, fault: {stall_after: 0}}]`, task: `{"goal":"g","limits":{"model_timeout":"50ms"}}`},
	{name: "checks_failed", scenario: `rules: [{reply: {text: done}}]`, task: `{"goal":"g","acceptance":{"checks":["test -e missing"]}}`},
	{name: "cancelled", scenario: asks, task: `{"goal":"clean up"}`, during: func(r *recorder) {
		r.pending()
		if err := r.c.CancelWorkflow(r.Context(), r.id, ""); err != nil {
			r.Fatal(err)
		}
	}},
	{name: "policy_denied", scenario: deniedModel, task: `{"goal":"g"}`},
	{name: "fatal_error", scenario: `rules: [{fault: {status: 500}}]`, task: `{"goal":"g"}`},
	{name: "stuck", scenario: `rules: [{reply: {calls: [{tool: list_files, arguments: {path: .}}]}}]`, task: `{"goal":"g"}`},
	{name: "escalated", scenario: asks, task: `{"goal":"clean up","limits":{"approval_timeout":"2s"}}`},
	{name: "terminated", scenario: asks, task: `{"goal":"clean up"}`, during: func(r *recorder) {
		r.pending()
		if err := r.c.TerminateWorkflow(r.Context(), r.id, "", "recording"); err != nil {
			r.Fatal(err)
		}
	}},
	{name: "sandbox_lost", scenario: asks, task: `{"goal":"clean up"}`, during: func(r *recorder) {
		p := r.pending()
		ids, err := r.boxes.List(r.Context())
		if err != nil || len(ids) != 1 {
			r.Fatalf("sandboxes: %v, %v; want one", ids, err)
		}
		r.boxes.Lose(ids[0])
		r.signal(agent.VerbApprove, fmt.Sprintf(`{"call":"%s","digest":"%s","by":"ana"}`, p.Call, p.Digest.Short()))
	}},
	{name: "continued", crowded: true, scenario: writesALot, task: `{"goal":"write and clean up"}`, during: approve},
	{name: "reset", scenario: asks, task: `{"goal":"clean up"}`, during: func(r *recorder) {
		r.pending()
		r.reset()
		approve(r)
	}},
	{name: "bad_input", scenario: writes, task: `{"gaol":"x"}`},
}

// retired names histories whose scenario is recorded anew under another name: they stay, and are still replayed.
var retired []string

// TestRecord records the histories that are missing, on a real server with the real activities.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("records histories; make record runs it")
	}
	plain, crowded := dial(t), dial(t, "--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60")
	for _, s := range recordings {
		file := filepath.Join(histories, s.name+".json.gz")
		if _, err := os.Stat(file); err == nil {
			continue
		}
		c := plain
		if s.crowded {
			c = crowded
		}
		t.Run(s.name, func(t *testing.T) { writeHistory(t, file, s.play(t, c)) })
	}
}

// dial starts a server and connects to it.
func dial(t *testing.T, args ...string) client.Client {
	t.Helper()
	server, err := testserver.Start(t.Context(), t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	c, err := server.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// play runs the scenario and gives the history of the task.
func (s recording) play(t *testing.T, c client.Client) *history.History {
	t.Helper()
	w := newWorld(t, s.scenario)
	act := w.activities(c)
	for _, queue := range []string{s.name, hostQueue} {
		wk := worker.New(c, queue, worker.Options{MaxHeartbeatThrottleInterval: time.Second, StickyScheduleToStartTimeout: time.Second})
		wk.RegisterActivity(act)
		wk.RegisterWorkflowWithOptions(workflows.AgentTask, workflow.RegisterOptions{Name: workflows.TypeAgentTask})
		wk.RegisterWorkflowWithOptions(workflows.RunLedger, workflow.RegisterOptions{Name: workflows.TypeRunLedger})
		if err := wk.Start(); err != nil {
			t.Fatal(err)
		}
		defer wk.Stop()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: s.name, TaskQueue: s.name}, workflows.TypeAgentTask, raw(t, s.task))
	if err != nil {
		t.Fatal(err)
	}
	if s.during != nil {
		s.during(&recorder{T: t, c: c, id: s.name, boxes: w.boxes})
	}
	_ = c.GetWorkflow(ctx, run.GetID(), "").Get(ctx, nil) // most scenarios end as failures
	if ctx.Err() != nil {
		t.Fatal("the task did not end")
	}
	return lastHistory(ctx, t, c, run.GetID())
}

// lastHistory is that of the last run of a workflow id.
func lastHistory(ctx context.Context, t *testing.T, c client.Client, id string) *history.History {
	t.Helper()
	var h history.History
	iter := c.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	return &h
}

func writeHistory(t *testing.T, file string, h *history.History) {
	t.Helper()
	b, err := protojson.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

package endtoend_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"belay/agent"
	"belay/testserver"
)

// soak is how long sixteen tasks keep this machine busy; make soak takes longer than make test.
var soak = flag.Duration("soak", 20*time.Second, "how long TestBusy keeps the machine busy")

// TestBusy keeps more tasks at work than this machine has processors, one step after the other without a pause. No
// heartbeat lapses, and no model call is bought twice. Nothing else runs meanwhile.
func TestBusy(t *testing.T) {
	const tasks = 16
	w := newWorld(t, newServer(t), "default", play, "BELAY_CONFIG="+generous(t))
	var all []task
	for i := range tasks {
		all = append(all, w.start(t, fmt.Sprintf("busy %d.", i), `"agent":"busy"`))
	}
	select {
	case <-time.After(*soak):
	case <-w.worker.Done():
		t.Fatal("the worker ended by itself")
	}
	for _, k := range all {
		k.signal(t, agent.VerbMessage, `{"by":"ana","text":"stop"}`)
	}
	steps := 0
	for _, k := range all {
		e := k.wait(t)
		if e.TerminationReason != agent.ReasonFinalAnswer || e.Usage.Steps != e.Usage.ModelCalls {
			t.Errorf("%s ended with %s after %d steps and %d model calls: %s", k.goal, e.TerminationReason, e.Usage.Steps, e.Usage.ModelCalls, e.Error)
		}
		if asked := len(k.requests(t, k.goal)); asked != e.Usage.Steps {
			t.Errorf("%s: %d turns were asked for in %d steps", k.goal, asked, e.Usage.Steps)
		}
		k.boughtOnce(t)
		undisturbed(t, k)
		steps += e.Usage.Steps
	}
	if steps < tasks*int(*soak/(4*time.Second)) {
		t.Errorf("%d steps in %s are not busy", steps, *soak)
	}
	t.Logf("%d steps in %s", steps, *soak)
}

// undisturbed holds a task to having had every activity of it done at the first attempt.
func undisturbed(t *testing.T, k task) {
	t.Helper()
	for run := k.run; run != ""; {
		next := ""
		for _, e := range k.history(t, run) {
			if a := e.GetActivityTaskStartedEventAttributes(); a.GetAttempt() > 1 {
				t.Errorf("%s: event %d: attempt %d after: %s", k.goal, e.GetEventId(), a.GetAttempt(), a.GetLastFailure().GetMessage())
			}
			switch e.GetEventType() {
			case enums.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
				t.Errorf("%s: event %d: %s", k.goal, e.GetEventId(), e.GetEventType())
			}
			next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		}
		run = next
	}
}

// generous is the configuration that is shipped, with an agent that may take as many steps as the tenant allows.
func generous(t *testing.T) string {
	t.Helper()
	root, err := testserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "deploy", "config"))); err != nil {
		t.Fatal(err)
	}
	const busy = "model: default\nprompt_file: default.md\ntools: [shell]\nconfirmation: never\nsandbox: default\n" +
		"limits: {max_steps: 10000, max_tool_calls: 20000, max_tokens: 20000000, max_cost_usd: 50, max_output_tokens: 8192,\n" +
		"  max_parallel_tools: 4, max_retries: 8, task_timeout: 1h, model_timeout: 5m, tool_timeout: 10m, approval_timeout: 1h}\n"
	if err := os.WriteFile(filepath.Join(dir, "agents", "busy.yaml"), []byte(busy), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

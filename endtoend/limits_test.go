package endtoend_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"belay/agent"
)

// testLimits shows that each limit stops the task at that limit, with its own reason, and as Failed in the Web UI.
func testLimits(t *testing.T, w *world) {
	for _, c := range []struct {
		goal, limits string
		reason       agent.TerminationReason
		limit        agent.LimitName
		steps, calls int
		asked        int // how often the model was asked
	}{
		{"go on to max_steps", `"max_steps":3`, agent.ReasonMaxSteps, agent.LimitSteps, 3, 3, 3},
		{"go on to max_tool_calls", `"max_tool_calls":2`, agent.ReasonBudgetExhausted, agent.LimitToolCalls, 3, 2, 3},
		// Each reply costs 5,100 tokens, 0.00725 dollars: a third one would have to be paid from 1,800 tokens, or 0.0005.
		{"go on to max_tokens", `"max_tokens":12000`, agent.ReasonBudgetExhausted, agent.LimitTokens, 2, 2, 2},
		{"go on to max_cost_usd", `"max_cost_usd":0.015`, agent.ReasonBudgetExhausted, agent.LimitCost, 2, 2, 2},
		{"ask for leave in vain", `"approval_timeout":"2s"`, agent.ReasonEscalated, agent.LimitApproval, 1, 0, 1},
		{"say nothing in time", `"model_timeout":"1s"`, agent.ReasonTimeout, agent.LimitModelTimeout, 0, 0, 2},
		{"go on and sum up", `"max_steps":2,"on_limit":"summarize"`, agent.ReasonMaxSteps, agent.LimitSteps, 3, 2, 3},
	} {
		t.Run(c.goal, func(t *testing.T) {
			t.Parallel()
			k := w.start(t, c.goal, `"limits":{`+c.limits+`}`)
			e := k.wait(t)
			if e.Status != enums.WORKFLOW_EXECUTION_STATUS_FAILED || e.TerminationReason != c.reason || e.Limit != c.limit {
				t.Errorf("%s: %s at %q, want Failed: %s at %q; %s", e.Status, e.TerminationReason, e.Limit, c.reason, c.limit, e.Error)
			}
			if e.Usage.Steps != c.steps || e.Usage.ToolCalls != c.calls {
				t.Errorf("%d steps and %d calls, want %d and %d", e.Usage.Steps, e.Usage.ToolCalls, c.steps, c.calls)
			}
			asked := 0
			for _, r := range k.requests(t, k.goal) {
				asked += r.Requests
			}
			if asked != c.asked {
				t.Errorf("the model was asked %d times, want %d", asked, c.asked)
			}
			if n := strings.Count(w.patch(t, e.Ledger), "new file mode"); n != c.calls {
				t.Errorf("%d files written, want %d", n, c.calls)
			}
			reached := ofType(k.events(t, ""), agent.EventLimitReached)
			if c.limit != agent.LimitModelTimeout && (len(reached) != 1 || reached[0].Fields["limit"] != string(c.limit)) {
				t.Errorf("events LIMIT_REACHED = %v", reached)
			}
		})
	}
}

// testTaskTimeout shows that the time of a task ends a running command.
func testTaskTimeout(t *testing.T, w *world) {
	const word = "3611.25" // seconds, and in no other process's command line
	k := w.start(t, "run long "+word, `"limits":{"task_timeout":"6s"}`)
	k.file(t, "begun")
	if len(running(t, word)) == 0 {
		t.Error("the command does not run")
	}
	e := k.wait(t)
	if e.Status != enums.WORKFLOW_EXECUTION_STATUS_FAILED || e.TerminationReason != agent.ReasonTimeout || e.Limit != agent.LimitTaskTimeout {
		t.Errorf("%s: %s at %q", e.Status, e.TerminationReason, e.Limit)
	}
	if pids := running(t, word); len(pids) > 0 {
		t.Errorf("the command still runs: %v", pids)
	}
	if p := w.patch(t, e.Ledger); !strings.Contains(p, "b/begun") {
		t.Errorf("what the command did before it was killed is lost:\n%s", p)
	}
}

// testCancel shows that a cancellation ends a running command at once.
func testCancel(t *testing.T, w *world) {
	const word = "3612.25"
	k := w.start(t, "run long "+word)
	k.file(t, "begun")
	w.temporal(t, "workflow", "cancel", "--workflow-id", k.id).must(t)
	within(t, 10*time.Second, "the end of the command", func() error {
		if pids := running(t, word); len(pids) > 0 {
			return errors.New("runs as " + strings.Join(pids, ", "))
		}
		return nil
	})
	e := k.wait(t)
	if e.Status != enums.WORKFLOW_EXECUTION_STATUS_CANCELED || e.TerminationReason != agent.ReasonCancelled || e.ExecutionState != agent.StateCancelled {
		t.Errorf("%s: %s (%s)", e.Status, e.TerminationReason, e.ExecutionState)
	}
	if l := k.stored(t, e.RunID); l.TerminationReason != agent.ReasonCancelled {
		t.Errorf("the ledger says %s", l.TerminationReason)
	}
	eventually(t, "the end of the sandbox", func() error { return absent(w.workspace(e.WorkspaceRef.Sandbox, "")) })
}

// testCancelModelCall shows that a cancellation closes a running request to the model.
func testCancelModelCall(t *testing.T, w *world) {
	k := w.start(t, "say nothing until cancelled")
	k.asked(t, 1)
	w.temporal(t, "workflow", "cancel", "--workflow-id", k.id).must(t)
	within(t, 10*time.Second, "the end of the request", func() error {
		if c := k.requests(t, k.goal)[0]; c.Requests != 1 || c.Gone != 1 {
			return errors.New("it is still open")
		}
		return nil
	})
	if e := k.wait(t); e.Status != enums.WORKFLOW_EXECUTION_STATUS_CANCELED || e.TerminationReason != agent.ReasonCancelled {
		t.Errorf("%s: %s", e.Status, e.TerminationReason)
	}
}

// testRaise parks a task at a limit, and lets it go on with the temporal command.
func testRaise(t *testing.T, w *world) {
	k := w.start(t, "go on until turn 4", `"limits":{"max_steps":2,"on_limit":"ask"}`)
	if p := k.pending(t, 1)[0]; p.Kind != "limit" || p.Limit != agent.LimitSteps {
		t.Errorf("pending = %+v", p)
	}
	raise := func(limits string) said {
		return w.temporal(t, "workflow", "update", "execute", "--workflow-id", k.id, "--name", "raise", "--input", `{"by":"ana","limits":{`+limits+`}}`)
	}
	for limits, want := range map[string]string{
		`"max_steps":2`:      "limits.max_steps: not raised enough",
		`"max_steps":100000`: "max_steps: 100000; expected at most 10000",
		`"max_stesp":4`:      `max_stesp: unknown field; did you mean "max_steps"?`,
		`"max_cost_usd":50`:  "limits.max_steps: not raised enough",
	} {
		if got := raise(limits); got.err == nil || !strings.Contains(got.reason(), want) {
			t.Errorf("raise %s: %v, %s; want it refused with %q", limits, got.err, got.stderr, want)
		}
	}
	raise(`"max_steps":9`).must(t)
	e := k.wait(t)
	if e.Status != enums.WORKFLOW_EXECUTION_STATUS_COMPLETED || e.TerminationReason != agent.ReasonFinalAnswer || e.Usage.Steps != 4 {
		t.Errorf("%s: %s after %d steps", e.Status, e.TerminationReason, e.Usage.Steps)
	}
	k.boughtOnce(t)
}

package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"belay/agent"
	"belay/sandbox"
	"belay/sandbox/sandboxtest"
)

func TestALostSandboxIsMadeAnewFromTheCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asks)
	w.whenWaiting(time.Minute, func() {
		w.boxes.Lose(sandbox.ID(w.status().Sandbox))
		w.signal(agent.VerbApprove, fmt.Sprintf(`{"call":"c2","digest":"%s","by":"ana"}`, w.pending()[0].Digest))
	})
	l := w.run(`{"goal":"clean up"}`)
	if l.TerminationReason != agent.ReasonFinalAnswer {
		t.Fatalf("ended with %s: %s", l.TerminationReason, l.Error)
	}
	if !strings.HasSuffix(l.WorkspaceRef.Sandbox, "-g2") {
		t.Errorf("sandbox %s, want the second generation", l.WorkspaceRef.Sandbox)
	}
	if n := w.runs("c2"); n != 1 || l.Usage.ToolCalls != 2 {
		t.Errorf("the call ran %d times in the new sandbox and %d calls count, want 1 and 2", n, l.Usage.ToolCalls)
	}
	if !strings.Contains(w.conversation(l), "The sandbox was lost") {
		t.Error("the model was not told that shell state is gone")
	}
	if _, err := w.store.Tenant("default").ReadTreeFile(t.Context(), l.WorkspaceRef.Tree, "legacy/old.txt"); err == nil {
		t.Error("legacy/old.txt is still there: the deletion got lost with the sandbox")
	}
}

func TestResultsReturnInTheOrderOfTheCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, parallelReads)
	l := w.run(`{"goal":"read"}`)
	rest := w.conversation(l)
	for _, want := range []string{"tool: 1\n", "tool: 2\n", "tool: wrote a.txt", "tool: a.txt: lines 1-1"} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no result %q after the one before it:\n%s", want, rest)
		}
		rest = after
	}
}

func TestAPauseHoldsTheRestOfABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
rules:
  - when: {turn: 1}
    reply:
      calls:
        - {tool: shell, arguments: {command: echo first}}
        - {tool: shell, arguments: {command: echo second}}
  - reply: {text: done}
`)
	w.boxes.Handle = func(c sandbox.Command) (sandbox.Result, error) {
		if strings.Contains(c.Script, "first") {
			w.signal(agent.VerbPause, `{"by":"ana"}`)
		}
		return sandbox.Result{}, sandboxtest.ErrPass
	}
	w.whenWaiting(time.Hour, func() {
		if w.runs("c1") != 1 || w.runs("c2") != 0 {
			t.Errorf("while paused c1 ran %d times and c2 %d, want 1 and 0", w.runs("c1"), w.runs("c2"))
		}
		w.signal(agent.VerbResume, `{"by":"ana"}`)
	})
	l := w.run(`{"goal":"two calls","limits":{"task_timeout":"10m"}}`)
	if l.TerminationReason != agent.ReasonFinalAnswer || w.runs("c2") != 1 {
		t.Errorf("ended with %s, c2 ran %d times: %s", l.TerminationReason, w.runs("c2"), l.Error)
	}
}

func TestAPauseHoldsTheFinalAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `rules: [{reply: {text: done}}]`)
	w.env.RegisterDelayedCallback(func() { w.signal(agent.VerbPause, `{"by":"ana"}`) }, 0)
	w.whenWaiting(time.Hour, func() {
		if s := w.status(); s.State != agent.StatePaused {
			t.Errorf("state %s, want paused", s.State)
		}
		w.signal(agent.VerbResume, `{"by":"ana"}`)
	})
	if l := w.run(`{"goal":"g"}`); l.TerminationReason != agent.ReasonFinalAnswer || l.Usage.Wall < agent.Duration(30*time.Minute) {
		t.Errorf("ended with %s after %s, want the answer to count only after the resume", l.TerminationReason, l.Usage.Wall)
	}
}

package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"belay/agent"
	"belay/sandbox"
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

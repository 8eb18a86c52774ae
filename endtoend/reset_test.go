package endtoend_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"

	"belay/agent"
	"belay/workflows"
)

// testSecondTask starts a second task with the same id: it does everything itself, and has a ledger of its own.
func testSecondTask(t *testing.T, w *world) {
	one := w.start(t, "run again in a second task")
	first := one.wait(t)
	kept := one.stored(t, first.RunID)
	two := w.start(t, "run again in a second task")
	second := two.wait(t)
	alike(t, two, first.Ledger, second)
	if diff := cmp.Diff(kept, one.stored(t, first.RunID)); diff != "" {
		t.Errorf("the second task changed the first one's ledger:\n%s", diff)
	}
}

// alike holds a run to having done once more what an earlier one did, by itself.
func alike(t *testing.T, k task, first agent.Ledger, again ended) {
	t.Helper()
	if again.TerminationReason != agent.ReasonFinalAnswer || again.RunID == first.RunID || again.WorkspaceRef.Sandbox == first.WorkspaceRef.Sandbox {
		t.Errorf("ended with %s as run %s in sandbox %s; the first was %s in %s: %s", again.TerminationReason, again.RunID,
			again.WorkspaceRef.Sandbox, first.RunID, first.WorkspaceRef.Sandbox, again.Error)
	}
	if again.WorkspaceRef.Tree != first.WorkspaceRef.Tree {
		t.Errorf("left another workspace:\n%s", k.patch(t, again.Ledger))
	}
	k.stored(t, again.RunID)
	if runs := k.ledgers(t); !slices.Equal(runs, []agent.RunID{first.RunID, again.RunID}) {
		t.Errorf("the store has the ledgers of %v, want those of %s and %s", runs, first.RunID, again.RunID)
	}
	for _, run := range []agent.RunID{first.RunID, again.RunID} {
		id := agent.LedgerWorkflowID(k.id, run)
		eventually(t, "the end of "+id, func() error {
			if got := (task{world: k.world, id: id}).described(t, "").GetStatus(); got != enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
				return errors.New(got.String())
			}
			return nil
		})
	}
}

// testReset resets a finished task to its beginning.
func testReset(t *testing.T, w *world) {
	k := w.start(t, "run again after a reset")
	first := k.wait(t)
	k.stored(t, first.RunID)
	again := reset(t, k, "--type", "FirstWorkflowTask")
	alike(t, again, first.Ledger, again.wait(t))
	for _, call := range []agent.CallID{"c1", "c2"} {
		if n := again.executions(t, again.run, call); n != 1 {
			t.Errorf("call %s was executed %d times in the reset run, want once", call, n)
		}
	}
}

// testResetInTheMiddle resets a finished task to where its second call was about to run: what was done before stays done,
// and the second call runs again, in a sandbox that holds what the first one left.
func testResetInTheMiddle(t *testing.T, w *world) {
	k := w.start(t, "run again from the middle")
	first := k.wait(t)
	k.stored(t, first.RunID)
	at := int64(0)
	for _, e := range k.history(t, k.run) {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == "Execute" {
			at = a.GetWorkflowTaskCompletedEventId() // of the last call
		}
	}
	again := reset(t, k, "--event-id", fmt.Sprint(at))
	alike(t, again, first.Ledger, again.wait(t))
	if n := again.executions(t, again.run, "c2"); n != 1 {
		t.Errorf("call c2 was executed %d times in the reset run, want once", n)
	}
}

// testResetAtTheEnd resets a finished task to its last decision: nothing runs again, and yet the new run has a ledger of its
// own beside the old one's.
func testResetAtTheEnd(t *testing.T, w *world) {
	k := w.start(t, "run again at the very end")
	first := k.wait(t)
	kept := k.stored(t, first.RunID)
	again := reset(t, k, "--type", "LastWorkflowTask")
	if e := again.wait(t); e.RunID == first.RunID || e.TerminationReason != agent.ReasonFinalAnswer {
		t.Errorf("ended with %s as run %s: %s", e.TerminationReason, e.RunID, e.Error)
	}
	again.stored(t, agent.RunID(again.run))
	if diff := cmp.Diff(kept, k.stored(t, first.RunID)); diff != "" {
		t.Errorf("the reset changed the first run's ledger:\n%s", diff)
	}
}

// testResetWhileAnApprovalWaits resets a task that waits: an approval of what the old run wanted lets the new one do
// nothing, and what the new run wants is asked for with another digest.
func testResetWhileAnApprovalWaits(t *testing.T, w *world) {
	k := w.start(t, "wait and listen, then reset")
	old := k.pending(t, 1)[0]
	again := reset(t, k, "--type", "LastWorkflowTask")
	again.signal(t, agent.VerbApprove, `{"call":%q,"digest":%q,"by":"ana"}`, old.Call, old.Digest)
	var asked workflows.Pending
	eventually(t, "a question with another digest", func() error {
		if asked = again.pending(t, 1)[0]; asked.Digest == old.Digest {
			return errors.New("the old one is pending")
		}
		return nil
	})
	if n := again.executions(t, again.run, old.Call); n != 0 {
		t.Errorf("the old run's approval let the call run %d times", n)
	}
	again.signal(t, agent.VerbApprove, `{"call":%q,"digest":%q,"by":"ana"}`, asked.Call, asked.Digest)
	if e := again.wait(t); e.TerminationReason != agent.ReasonFinalAnswer || string(e.RunID) != again.run {
		t.Errorf("ended with %s as run %s: %s", e.TerminationReason, e.RunID, e.Error)
	}
	if n := again.executions(t, again.run, old.Call); n != 1 {
		t.Errorf("the approved call ran %d times, want once", n)
	}
}

// reset resets a task's last run with the real command and gives the task as the new run.
func reset(t *testing.T, k task, to ...string) task {
	t.Helper()
	out := k.temporal(t, append([]string{"workflow", "reset", "--workflow-id", k.id, "--reason", "a test", "--output", "json"}, to...)...).must(t)
	var made struct{ RunId string }
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.RunId == "" || made.RunId == k.run {
		t.Fatalf("reset said %q: %v", out, err)
	}
	k.run = made.RunId
	eventually(t, "an answer of the reset run", func() error {
		var s workflows.Status
		return k.query(workflows.QueryState, &s)
	})
	return k
}

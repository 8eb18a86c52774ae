package endtoend_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"belay/agent"
)

// TestHistories shows what becomes of tasks when their histories are continued, deleted, or begun anew. Its server asks for
// continue-as-new every few steps.
func TestHistories(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newServer(t,
		"--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60",
		// A history is deleted after everything else about its end has been done, which the server notes every 30 seconds.
		"--dynamic-config-value", `history.transferProcessorUpdateAckInterval="1s"`,
		"--dynamic-config-value", `history.visibilityProcessorUpdateAckInterval="1s"`,
	), "default", play)
	for _, c := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"Sealed", testSealed},
		{"Continued", testContinued},
		{"Paused", testPaused},
		{"SecondTask", testSecondTask},
		{"Reset", testReset},
		{"ResetInTheMiddle", testResetInTheMiddle},
		{"ResetAtTheEnd", testResetAtTheEnd},
		{"ResetWhileAnApprovalWaits", testResetWhileAnApprovalWaits},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, w)
		})
	}
}

// testSealed deletes every history of a task, after which its events, its patch and its ledger are what they were.
func testSealed(t *testing.T, w *world) {
	k := w.start(t, "many steps", `"acceptance":{"reviewers":["demo"]}`)
	e := k.wait(t)
	if e.Usage.Steps != 13 || e.ProposedOutcome != "12 steps are done." {
		t.Fatalf("ended after %d steps: %s %s", e.Usage.Steps, e.ProposedOutcome, e.Error)
	}
	ledger := k.stored(t, e.RunID)
	all := k.events(t, "")
	runs := runsOf(all)
	if len(runs) < 3 {
		t.Fatalf("the task had %d histories, want at least 3", len(runs))
	}
	k.boughtOnce(t)
	views := [][]string{{"events", k.id, "--json"}, {"show", k.id, "--json"}, {"diff", k.id}, {"export", k.id}}
	var before []string
	for _, v := range views {
		before = append(before, w.belay(t, v...).must(t))
	}

	forget(t, k, runs...)
	forget(t, task{world: w, id: agent.LedgerWorkflowID(k.id, e.RunID)}, "")

	if diff := cmp.Diff(all, k.events(t, "")); diff != "" {
		t.Errorf("events (-before +after the histories were deleted):\n%s", diff)
	}
	if diff := cmp.Diff(ledger, k.stored(t, e.RunID)); diff != "" {
		t.Errorf("ledger (-before +after):\n%s", diff)
	}
	for i, v := range views {
		if diff := cmp.Diff(before[i], w.belay(t, v...).must(t)); diff != "" {
			t.Errorf("belay %s (-before +after):\n%s", strings.Join(v, " "), diff)
		}
	}
	applies(t, before[2], map[string]string{"log.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"})
}

// runsOf gives the runs that events tell of, in order.
func runsOf(all []agent.Event) (runs []string) {
	for _, e := range all {
		if !slices.Contains(runs, e.RunID) {
			runs = append(runs, e.RunID)
		}
	}
	return runs
}

// forget deletes runs of a workflow, as the end of the namespace's retention would, and waits until they are gone.
func forget(t *testing.T, k task, runs ...string) {
	t.Helper()
	for _, run := range runs {
		k.temporal(t, "workflow", "delete", "--workflow-id", k.id, "--run-id", run).must(t)
	}
	for _, run := range runs {
		eventually(t, "the end of the history "+k.id+" "+run, func() error {
			_, err := k.client.DescribeWorkflow(t.Context(), k.id, run)
			if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
				return nil
			}
			return fmt.Errorf("it is there: %v", err)
		})
	}
}

// applies gives a patch to git, in an empty folder, and looks at what comes of it.
func applies(t *testing.T, patch string, want map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "--quiet"}, {"apply", "--check", "-"}, {"apply", "-"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(patch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s%s", args, err, out, patch)
		}
	}
	for name, content := range want {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != content {
			t.Errorf("%s = %q, %v; want %q", name, b, err, content)
		}
	}
}

// testContinued fills the history of a task that waits for an approval, so that it is continued as a new one: the approval
// waits on, and no message that was sent meanwhile is lost, repeated or overtaken.
func testContinued(t *testing.T, w *world) {
	k := w.start(t, "wait and listen")
	first := k.pending(t, 1)[0]
	const messages = 60
	for i := range messages {
		k.say(t, i, fmt.Sprintf(`{"by":"ana","text":"message %d."}`, i))
	}
	eventually(t, "a new history", func() error {
		if k.described(t, "").GetExecution().GetRunId() == k.run {
			return errors.New("it is still the first one")
		}
		return nil
	})
	again := k.pending(t, 1)[0]
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("what is pending changed with the history (-before +after):\n%s", diff)
	}
	if s := k.state(t); s.State != agent.StateWaiting || string(s.RunID) != k.run {
		t.Errorf("state = %+v", s)
	}
	// The digest that was shown before the switch is good after it.
	k.signal(t, agent.VerbApprove, `{"call":%q,"digest":%q,"by":"ana"}`, first.Call, first.Digest)
	e := k.wait(t)
	if e.TerminationReason != agent.ReasonFinalAnswer {
		t.Fatalf("ended with %s: %s", e.TerminationReason, e.Error)
	}
	var heard []string
	c, err := w.tenant().Conversation(t.Context(), head(e.Ledger))
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range c.Turns {
		for _, m := range turn.Messages {
			if m.Role == agent.RoleUser {
				heard = append(heard, m.Text)
			}
		}
	}
	want := []string{k.goal}
	for i := range messages {
		want = append(want, fmt.Sprintf("ana says: message %d.", i))
	}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("what the model heard (-want +got):\n%s", diff)
	}
	k.boughtOnce(t)
}

// testPaused continues the history of a task that is paused while an approval waits: people see no other state, and after
// the resume it is found among what waits for them.
func testPaused(t *testing.T, w *world) {
	k := w.start(t, "wait and listen, paused")
	k.pending(t, 1)
	k.signal(t, agent.VerbPause, `{"by":"ana","reason":"lunch"}`)
	for i := range 30 {
		k.say(t, i, `{"by":"ana","text":"still at lunch"}`)
	}
	eventually(t, "a new history", func() error {
		if k.described(t, "").GetExecution().GetRunId() == k.run {
			return errors.New("it is still the first one")
		}
		return nil
	})
	k.pending(t, 1)
	if s := k.state(t); s.State != agent.StatePaused || s.Paused == nil || s.Paused.By != "ana" {
		t.Errorf("state %s, paused %+v; want it paused by ana", s.State, s.Paused)
	}
	k.signal(t, agent.VerbResume, `{"by":"ana"}`)
	eventually(t, "the task among what waits", func() error {
		if out := w.belay(t, "pending").must(t); !strings.Contains(out, k.id) {
			return errors.New(out)
		}
		return nil
	})
	if s := k.state(t); s.State != agent.StateWaiting {
		t.Errorf("state %s, want waiting", s.State)
	}
	k.approve(t)
	if e := k.wait(t); e.TerminationReason != agent.ReasonFinalAnswer {
		t.Errorf("ended with %s: %s", e.TerminationReason, e.Error)
	}
}

// say sends a message: by signal, or every third time as an update, which is sent again when the history that it met came
// to its end.
func (k task) say(t *testing.T, n int, message string) {
	t.Helper()
	if n%3 > 0 {
		k.signal(t, agent.VerbMessage, "%s", message)
		return
	}
	h, err := k.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: k.id, UpdateID: fmt.Sprint("update-", n), UpdateName: string(agent.VerbMessage), Args: []any{json.RawMessage(message)},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(t.Context(), nil)
	}
	if err != nil {
		t.Fatalf("update %d: %v", n, err)
	}
}

func head(l agent.Ledger) agent.Digest {
	for _, e := range l.EvidenceRefs {
		if e.Kind == "conversation" {
			return e.Digest
		}
	}
	return ""
}

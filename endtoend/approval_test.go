package endtoend_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"

	"belay/agent"
	"belay/workflows"
)

// wrong are the things people say to a task with two pending calls, c3 and c4, that let nothing run. They are said in this
// order; %[1]s and %[2]s are the calls' digests. Refused is a part of the reason.
var wrong = []struct {
	verb    agent.Verb
	json    string
	refused string // empty: followed
}{
	{agent.VerbApprove, `{"call":"c3","digest":"000000000000","by":"ana"}`, "call c3: digest 000000000000 is not that of the pending action"},
	{agent.VerbApprove, `{"call":"c3","digest":"%[2]s","by":"ana"}`, "is not that of the pending action"},
	{agent.VerbApprove, `{"call":"c1","digest":"%[1]s","by":"ana"}`, "call c1 is not pending: it is unknown or finished"},
	{agent.VerbApprove, `{"call":"c9","digest":"%[1]s","by":"ana"}`, "call c9 is not pending: it is unknown or finished"},
	{agent.VerbApprove, `{"call":"c3","digest":"0123456789a","by":"ana"}`, "expected at least the first 12 hex digits"},
	{agent.VerbApprove, `{"call":"c3","digest":"%[1]s"}`, `by: ""; expected who says it`},
	{agent.VerbApprove, `{"call":"c3","digset":"%[1]s","by":"ana"}`, `digset: unknown field; did you mean "digest"?`},
	{agent.VerbApprove, `"c3"`, "approve: "},
	{agent.VerbAnswer, `{"question":"q1","by":"ana","text":"yes"}`, "question q1 is not pending"},
	{agent.VerbRaise, `{"by":"ana","limits":{"max_steps":500}}`, "no limit has parked the task"},
	{agent.VerbResolve, `{"call":"c3","by":"ana","outcome":"run_again"}`, "its outcome is not unknown"},
	{agent.VerbMessage, `{"by":"ana","text":"c3 and c4 are approved, go ahead"}`, ""},
	{agent.VerbEdit, `{"call":"c3","digest":"%[1]s","by":"ana","arguments":{"command":"echo x > /etc/passwd"}}`, "Only the workspace and /tmp may be written."},
	{agent.VerbEdit, `{"call":"c3","digest":"%[1]s","by":"ana","arguments":{"command":"rm one/a.txt"}}`, ""},
	{agent.VerbApprove, `{"call":"c3","digest":"%[1]s","by":"ana"}`, "call c3 was already approved by ana"},
	{agent.VerbEdit, `{"call":"c3","digest":"%[1]s","by":"eve","arguments":{"command":"rm two/b.txt"}}`, "call c3 was already approved by ana"},
	{agent.VerbReject, `{"call":"c3","digest":"%[1]s","by":"eve"}`, "call c3 was already approved by ana"},
	{"aprove", `{"call":"c4","digest":"%[2]s","by":"ana"}`, "nknown"},
}

// testRefusedSignals says everything that is wrong by signal: the refusals are in the state query and in the events.
func testRefusedSignals(t *testing.T, w *world) {
	k, digests := clearOut(t, w, "clear out by signal")
	var refused []string
	for _, x := range wrong {
		w.temporal(t, "workflow", "signal", "--workflow-id", k.id, "--name", string(x.verb), "--input", filled(x.json, digests)).must(t)
		if x.refused != "" {
			refused = append(refused, x.refused)
		}
		eventually(t, string(x.verb)+" "+x.json+" on record", func() error {
			if n := len(k.state(t).Refused); n != len(refused) {
				return fmt.Errorf("%d refusals, want %d", n, len(refused))
			}
			return nil
		})
	}
	var shown struct{ QueryResult []workflows.Status }
	out := w.temporal(t, "workflow", "query", "--workflow-id", k.id, "--type", workflows.QueryState, "--output", "json").must(t)
	if err := json.Unmarshal([]byte(out), &shown); err != nil || len(shown.QueryResult) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	for i, r := range shown.QueryResult[0].Refused {
		if !strings.Contains(r.Reason, refused[i]) {
			t.Errorf("refusal %d says %q, want %q in it", i, r.Reason, refused[i])
		}
	}
	cleared(t, k, digests)
	if n := len(ofType(k.events(t, ""), agent.EventControlRefused)); n != len(refused) {
		t.Errorf("%d events CONTROL_REFUSED, want %d", n, len(refused))
	}
}

// testRefusedUpdates says the same by update: each refusal is the sender's error.
func testRefusedUpdates(t *testing.T, w *world) {
	k, digests := clearOut(t, w, "clear out by update")
	for _, x := range wrong {
		got := w.temporal(t, "workflow", "update", "execute", "--workflow-id", k.id, "--name", string(x.verb), "--input", filled(x.json, digests))
		switch {
		case x.refused == "" && got.err != nil:
			t.Errorf("%s %s: refused: %s", x.verb, x.json, got.stderr)
		case x.refused != "" && got.err == nil:
			t.Errorf("%s %s: followed: %s", x.verb, x.json, got.stdout)
		case x.refused != "" && !strings.Contains(got.reason(), x.refused):
			t.Errorf("%s %s: stderr %s, want %q in it", x.verb, x.json, got.stderr, x.refused)
		}
	}
	cleared(t, k, digests)
}

// clearOut starts a task and waits until its two calls are pending, whose digests it gives.
func clearOut(t *testing.T, w *world, goal string) (task, []any) {
	t.Helper()
	k := w.start(t, goal)
	p := k.pending(t, 2)
	if p[0].Call != "c3" || p[1].Call != "c4" || p[0].Digest == p[1].Digest {
		t.Fatalf("pending = %+v", p)
	}
	return k, []any{p[0].Digest, p[1].Digest}
}

func filled(format string, digests []any) string {
	if !strings.Contains(format, "%") {
		return format
	}
	return strings.Split(fmt.Sprintf(format, digests...), "%!(EXTRA")[0]
}

// cleared holds the task to having run nothing so far; approves the second call, as it was shown; and holds it to having
// run both calls once, the first as it was edited.
func cleared(t *testing.T, k task, digests []any) {
	t.Helper()
	for _, name := range []string{"one/a.txt", "two/b.txt"} {
		if err := exists(k.workspace(k.state(t).Sandbox, name)); err != nil {
			t.Errorf("something ran: %v", err)
		}
	}
	for _, call := range []agent.CallID{"c3", "c4"} {
		if n := k.executions(t, "", call); n != 0 {
			t.Errorf("call %s was executed %d times before it was approved", call, n)
		}
	}
	approve := []string{"--workflow-id", k.id, "--name", "approve", "--input", fmt.Sprintf(`{"call":"c4","digest":"%.12s","by":"ana"}`, digests[1])}
	k.temporal(t, append([]string{"workflow", "update", "execute"}, approve...)...).must(t)
	e := k.wait(t)
	if e.Status != enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		t.Errorf("ended as %s: %s", e.Status, e.Error)
	}
	for _, call := range []agent.CallID{"c3", "c4"} {
		if n := k.executions(t, "", call); n != 1 {
			t.Errorf("call %s was executed %d times, want once", call, n)
		}
	}
	if p := k.patch(t, e.Ledger); p != "" {
		t.Errorf("both files shall be gone, and nothing else changed:\n%s", p)
	}
	if want := `changed the arguments of call c3 before it ran, to: {"command":"rm one/a.txt"}`; !strings.Contains(e.ProposedOutcome, want) {
		t.Errorf("the model heard %q last, want %q in it", e.ProposedOutcome, want)
	}
	for _, how := range []string{"signal", "update execute"} {
		if got := k.temporal(t, append(append([]string{"workflow"}, strings.Fields(how)...), approve...)...); got.err == nil {
			t.Errorf("%s: an approval of a finished task was taken: %s", how, got.stdout)
		}
	}
}

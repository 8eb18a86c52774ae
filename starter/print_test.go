package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"belay/agent"
	"belay/workflows"
)

// What a model writes can't steer the terminal of whoever looks at it, nor hide a part of an action.
func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"go test ./…\n\tok":      "go test ./…\n\tok",
		"\x1b[2Jrm -rf /":        `\x1b[2Jrm -rf /`,
		"safe\rrm":               `safe\rrm`,
		"a\u202egpj.exe":         `a\u202egpj.exe`,
		"a\u200bb":               `a\u200bb`,
		"bad \xff utf-8":         `bad \xff utf-8`,
		"really a \ufffd symbol": "really a \ufffd symbol",
		"":                       "",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	if got := line(" a\n\tb  c ", 10); got != "a b c" {
		t.Errorf("%q", got)
	}
	if got := line("äöüäöü", 4); got != "äöü…" {
		t.Errorf("%q", got)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	got := arguments(`{"timeout":5,"command":"cd x\nrm -rf y\u001b[A"}`)
	want := "  command:\n    cd x\n    rm -rf y\\x1b[A\n  timeout: 5"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := arguments("not JSON…"); got != "    not JSON…" {
		t.Errorf("%q", got)
	}
}

func TestShellQuoted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"fix-calc": "fix-calc", "": "''", "it's": `'it'\''s'`, "a b": "'a b'", "$x": "'$x'", "ä": "'ä'", "ledger/a/1": "ledger/a/1"} {
		if got := shellQuoted(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	patch := `diff --git a/dir/a b.txt b/dir/a b.txt
index 1..2 100644
--- a/dir/a b.txt
+++ b/dir/a b.txt
@@ -1,2 +1,3 @@
 same
-old
+new
+--- looks like a header
diff --git a/x.bin b/x.bin
GIT binary patch
literal 3
+++
`
	want := []fileStat{{File: "dir/a b.txt", Added: 2, Removed: 1}, {File: "x.bin", Binary: true}}
	if d := cmp.Diff(want, stats([]byte(patch))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]fileStat{}, stats(nil)); d != "" {
		t.Error(d)
	}
}

func TestEventText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		e    agent.Event
		want string
	}{
		{agent.Event{Type: agent.EventTaskCreated, Fields: map[string]any{"goal": "make it\npass"}}, "TASK_CREATED        · make it pass"},
		{agent.Event{Step: 3, Type: agent.EventToolCompleted, Fields: map[string]any{"call": "c7", "tool": "shell", "status": "failed", "exit": 1.0}},
			"s3   TOOL_COMPLETED      c7 shell failed exit=1"},
		{agent.Event{Step: 3, Type: agent.EventModelCompleted, Fields: map[string]any{"kind": "calls", "calls": 2.0, "usage": map[string]any{"input_tokens": 9.0, "output_tokens": 1.0, "cost_usd": 0.5}}},
			"s3   MODEL_COMPLETED     calls calls=2 (10 tokens, $0.5000)"},
		{agent.Event{Step: 3, Type: agent.EventApprovalRequested, Fields: map[string]any{"call": "c8", "reviewers": []any{"ana", "ben"}, "risk": "high"}},
			"s3   APPROVAL_REQUESTED  c8 risk=high reviewers=ana,ben"},
		{agent.Event{Step: 3, Type: agent.EventModelInvoked, Fields: map[string]any{"said": 2.0, "said_by": []any{"ana"}}}, "s3   MODEL_INVOKED       said_by=ana"},
	} {
		if d := cmp.Diff(tt.want, eventText(tt.e)); d != "" {
			t.Error(d)
		}
	}
}

func TestAnswering(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		e    agent.Event
		want string
	}{
		{agent.Event{Type: agent.EventApprovalRequested, Fields: map[string]any{"call": "c8"}}, "belay approve 'my task' c8"},
		{agent.Event{Type: agent.EventApprovalRequested, Fields: map[string]any{"call": "c8", "question": "q1"}}, `belay answer 'my task' q1 "…"`},
		{agent.Event{Type: agent.EventLimitReached, Fields: map[string]any{"limit": "max_steps", "on_limit": "ask"}}, "belay raise 'my task' --limit max_steps=…"},
		{agent.Event{Type: agent.EventLimitReached, Fields: map[string]any{"limit": "max_steps", "on_limit": "stop"}}, ""},
		{agent.Event{Type: agent.EventToolStarted}, ""},
	} {
		if got := answering("my task", tt.e); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.e, got, tt.want)
		}
	}
}

func TestWorkflowID(t *testing.T) {
	t.Parallel()
	for goal, want := range map[string]string{
		"Make the failing test pass!": "make-the-failing-test-pass-",
		"äöü":                         "task-",
		strings.Repeat("word ", 20):   "word-word-word-word-word-word-word-word-",
	} {
		got := (&taskFlags{}).workflowID(goal)
		if id, ok := strings.CutPrefix(got, want); !ok || len(id) != 8 {
			t.Errorf("%q: %q, want %q and 8 more", goal, got, want)
		}
	}
	if got := (&taskFlags{id: "fix"}).workflowID("goal"); got != "fix" {
		t.Errorf("%q, want fix", got)
	}
}

func TestTaskFlags(t *testing.T) {
	t.Parallel()
	var f taskFlags
	cmd := &cobra.Command{}
	f.register(cmd)
	if err := cmd.ParseFlags([]string{
		"--agent", "coder", "--workspace", "examples/calc", "--check", "go test ./...", "--reviewer", "lead,ana", "--priority", "1",
		"--quorum", "2", "--expires-after", "24h", "--check-rounds", "3",
		"--limit", "max_cost_usd=1.50", "--limit", "task_timeout=1h", "--limit", "on_limit=ask", "--label", "ticket=B=7",
	}); err != nil {
		t.Fatal(err)
	}
	raw, task, err := f.read([]string{"fix it"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"acceptance":{"check_rounds":3,"checks":["go test ./..."],"expires_after":"24h","quorum":2,"reviewers":["lead","ana"]},"agent":"coder","goal":"fix it","labels":{"ticket":"B=7"},` +
		`"limits":{"max_cost_usd":1.50,"on_limit":"ask","task_timeout":"1h"},"priority":1,"workspace":{"source":"examples/calc"}}`
	if d := cmp.Diff(want, string(raw)); d != "" {
		t.Error(d)
	}
	if task.Limits.MaxCostUSD != 1.5 || task.User != "anonymous" {
		t.Errorf("read as %+v", task)
	}
}

// watched is a task in the middle of something.
func watched() view {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	v := view{
		At: at,
		Status: workflows.Status{
			WorkflowID: "fix-calc", State: agent.StateWaiting, Step: 3, Goal: "make it pass", Usage: agent.Usage{InputTokens: 500, CostUSD: 0.25, ToolCalls: 2},
			Limits: agent.Limits{MaxSteps: 10, MaxTokens: 1000, MaxCostUSD: 1, MaxToolCalls: 4, TaskTimeout: agent.Duration(time.Hour)}, Worked: agent.Duration(90 * time.Second),
		},
		Running: []running{{What: "step 3 · shell · make", Since: at.Add(-5 * time.Second), Attempt: 2, Error: "host is gone"}},
	}
	p := workflows.Pending{Kind: "approval", Call: "c4", Text: "rm -rf legacy", Reviewers: []agent.UserID{"ana"}}
	v.Pending = append(v.Pending, p)
	return v
}

func TestPicture(t *testing.T) {
	t.Parallel()
	want := `task      fix-calc
goal      make it pass
state     waiting · step 3 of 10
tokens    ██████████░░░░░░░░░░ 500 of 1000
cost      █████░░░░░░░░░░░░░░░ $0.2500 of $1.00
calls     ██████████░░░░░░░░░░ 2 of 4
time      1m30s of 1h0m0s

now       step 3 · shell · make (attempt 2) · 5s
          the attempt before: host is gone
waits     for ana: rm -rf legacy
          belay approve fix-calc c4
`
	if d := cmp.Diff(want, watched().picture(100)); d != "" {
		t.Error(d)
	}
	for l := range strings.Lines(watched().picture(40)) {
		if n := len([]rune(strings.TrimRight(l, "\n"))); n > 40 {
			t.Errorf("%d wide: %q", n, l)
		}
	}
}

// A task that is paused or about to end says so, with the command that lets it go on.
func TestStateTexts(t *testing.T) {
	t.Parallel()
	var st workflows.Status
	raw := `{"workflow_id":"fix calc","state":"paused","paused":{"by":"ana","reason":"lunch\nbreak"}}`
	if err := json.Unmarshal([]byte(raw), &st); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("paused by ana: lunch break\n  belay resume 'fix calc'", pausedText(st)); d != "" {
		t.Error(d)
	}
	if got := (view{Status: st}).picture(80); !strings.Contains(got, "paused    by ana: lunch break\n          belay resume 'fix calc'\n") {
		t.Errorf("drawn as\n%s", got)
	}
	if got := stateText(st); got != "paused" {
		t.Errorf("%q", got)
	}
	st.State, st.Reason = agent.StateErrored, agent.ReasonMaxSteps
	if got := stateText(st); got != "error: max_steps" {
		t.Errorf("%q", got)
	}
}

// Costs are sums of floats; what is printed is no more exact than they are.
func TestObjectRoundsCosts(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	c := cli{stdout: &out}
	goal := `mind "cost_usd":0.009079499999999999`
	err := c.object(map[string]any{
		"cost_usd": 0.009079499999999999, "goal": goal, "usage": agent.Usage{CostUSD: 1.2e-7}, "limits": map[string]any{"max_cost_usd": 0.30000000000000004},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"cost_usd":0.0090795,"goal":"mind \"cost_usd\":0.009079499999999999","limits":{"max_cost_usd":0.30000000000000004},"usage":{"cost_usd":0.00000012}}` + "\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	want := "waiting · step 3 · step 3 · shell · make (attempt 2) · approval waits for ana: rm -rf legacy · 500 tokens · $0.2500"
	if d := cmp.Diff(want, watched().brief()); d != "" {
		t.Error(d)
	}
	silent := view{Silent: "no worker"}
	if got := silent.brief(); got != "no worker" {
		t.Errorf("%q", got)
	}
	if got := silent.after(watched()).brief(); !strings.HasPrefix(got, "waiting · step 3") {
		t.Errorf("a silent task forgot its state: %q", got)
	}
}

package agent_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
)

func TestDigestMatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		digest agent.Digest
		prefix string
		want   bool
	}{
		{digest, string(digest), true},
		{digest, string(digest[:12]), true},
		{digest, string(digest[:11]), false},
		{digest, "", false},
		{digest, "ab12cd34ef57", false},
		{digest, strings.ToUpper(string(digest)), false},
		{digest, string(digest) + "0", false},
		{"", "", false},
		{"ab12cd34ef56", "ab12cd34ef56", false}, // not a digest itself
	} {
		if got := tt.digest.Matches(tt.prefix); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.digest, tt.prefix, got, tt.want)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	got := []string{
		digest.Short(), agent.Digest("ab").Short(), agent.RunID("0123456789").Short(), agent.RunID("01").Short(),
		string(agent.NewCallID(3)), string(agent.NewQuestionID(1)), agent.LedgerWorkflowID("fix-calc", "0123456789"),
	}
	want := []string{"ab12cd34ef56", "ab", "01234567", "01", "c3", "q1", "ledger/fix-calc/01234567"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestEventRoundTrip(t *testing.T) {
	t.Parallel()
	want := agent.Event{
		Time: time.Date(2026, 11, 30, 12, 0, 0, 5, time.UTC), RunID: "run", Seq: 7, Step: 2, Type: agent.EventPolicyDecided,
		Fields: map[string]any{"call": "c3", "rules": []any{"a", "b"}, "cost": 0.5, "matched": true},
	}
	line, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	const wire = `{"call":"c3","cost":0.5,"matched":true,"rules":["a","b"],"run_id":"run","seq":7,"step":2,"time":"2026-11-30T12:00:00.000000005Z","type":"POLICY_DECIDED"}`
	if d := cmp.Diff(wire, string(line)); d != "" {
		t.Error(d)
	}
	var got agent.Event
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err := json.Unmarshal([]byte(`{"seq":"seven"}`), &got); err == nil {
		t.Error("read an event whose seq is a string")
	}
}

// An event's own fields can't pass for what every event has.
func TestEventFieldsDoNotOverrideTheHead(t *testing.T) {
	t.Parallel()
	line, err := json.Marshal(agent.Event{Type: agent.EventTaskStarted, Seq: 1, Fields: map[string]any{"type": "TASK_COMPLETED", "seq": 99}})
	if err != nil {
		t.Fatal(err)
	}
	var got agent.Event
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if got.Type != agent.EventTaskStarted || got.Seq != 1 {
		t.Errorf("read back %+v", got)
	}
}

func TestVerdictFailsClosed(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]agent.Verdict{
		"allow": agent.Allow, "require_approval": agent.RequireApproval, "deny": agent.Deny, "": agent.Deny, "Allow": agent.Deny, "ask": agent.Deny,
	} {
		d := agent.Decision{Verdict: agent.Allow}
		if err := json.Unmarshal([]byte(`{"effect":"`+in+`"}`), &d); err != nil {
			t.Fatal(err)
		}
		if d.Verdict != want {
			t.Errorf("%q reads as %s, want %s", in, d.Verdict, want)
		}
	}
	b, err := json.Marshal(agent.Decision{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(`{"effect":"deny","risk":""}`, string(b)); d != "" {
		t.Error(d)
	}
}

func TestRiskOfUnknownIsHigh(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b, want agent.Risk }{
		{agent.RiskLow, agent.RiskMedium, agent.RiskMedium},
		{agent.RiskHigh, agent.RiskLow, agent.RiskHigh},
		{agent.RiskMedium, "", ""},
		{agent.RiskMedium, "mild", "mild"},
	} {
		if got := tt.a.Worse(tt.b); got != tt.want {
			t.Errorf("%q worse %q: %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestErrorf(t *testing.T) {
	t.Parallel()
	err := error(agent.Errorf(agent.StateError, "blob %s: %w", "b1", io.ErrUnexpectedEOF))
	wrapped := errors.Join(errors.New("beside"), err)
	if agent.TypeOf(wrapped) != agent.StateError || !errors.Is(wrapped, io.ErrUnexpectedEOF) || err.Error() != "blob b1: unexpected EOF" {
		t.Errorf("%v of type %q", err, agent.TypeOf(wrapped))
	}
	if got := agent.TypeOf(io.EOF); got != "" {
		t.Errorf("type %q of an error without one", got)
	}
}

func TestUsageAdd(t *testing.T) {
	t.Parallel()
	one := agent.Usage{Steps: 1, ModelCalls: 2, ToolCalls: 3, InputTokens: 4, OutputTokens: 5, CachedTokens: 6, CostUSD: 7, Wall: 8}
	want := agent.Usage{Steps: 2, ModelCalls: 4, ToolCalls: 6, InputTokens: 8, OutputTokens: 10, CachedTokens: 12, CostUSD: 14, Wall: 16}
	if d := cmp.Diff(want, one.Add(one)); d != "" {
		t.Error(d)
	}
	if got := one.Tokens(); got != 9 {
		t.Errorf("%d tokens, want 9", got)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"max_steps", "max_tokens", "tool_timeout"}
	for word, want := range map[string]string{
		"max_step": "max_steps", "MAX_TOKENS": "max_tokens", "tooltimeout": "tool_timeout", "tool": "tool_timeout", "to": "", "priority": "", "": "",
	} {
		if got := agent.Nearest(word, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

func TestShortRunIDsTellRunsApart(t *testing.T) {
	t.Parallel()
	for id, want := range map[agent.RunID]string{
		"01a22eb4-285a-7cbc-88df-4b73bdd38854": "bdd38854", // version 7 begins with the time
		"01a22eb4-2b69-7000-88df-4b73bdd38855": "bdd38855",
		"9f8e7d6c-285a-4cbc-88df-4b73bdd38854": "9f8e7d6c",
		"short":                                "short",
	} {
		if got := id.Short(); got != want {
			t.Errorf("%s is shortened to %s, want %s", id, got, want)
		}
	}
}

package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
)

const digest = agent.Digest("ab12cd34ef5600112233445566778899aabbccddeeff00112233445566778899")

func TestDecodeControl(t *testing.T) {
	t.Parallel()
	short := digest.Short()
	for _, tt := range []struct {
		verb agent.Verb
		raw  string
		want agent.Control
	}{
		{agent.VerbApprove, `{"call":"c3","digest":"ab12cd34ef56","by":"ana","comment":"fine"}`,
			agent.Control{By: "ana", Call: "c3", Digest: short, Comment: "fine"}},
		{agent.VerbReject, `{"call":"c3","digest":"ab12cd34ef56","by":"ana","feedback":"use the staging DB"}`,
			agent.Control{By: "ana", Call: "c3", Digest: short, Feedback: "use the staging DB"}},
		{agent.VerbEdit, `{"call":"c3","digest":"ab12cd34ef56","by":"ana","arguments":{"n":12345678901234567890},"comment":"smaller"}`,
			agent.Control{By: "ana", Call: "c3", Digest: short, Comment: "smaller", Arguments: json.RawMessage(`{"n":12345678901234567890}`)}},
		{agent.VerbAnswer, `{"question":"q1","by":"ana","text":"port 8080"}`,
			agent.Control{By: "ana", Question: "q1", Text: "port 8080"}},
		{agent.VerbMessage, `{"by":"ana","text":"skip the docs"}`, agent.Control{By: "ana", Text: "skip the docs"}},
		{agent.VerbPause, `{"by":"ana","reason":"lunch"}`, agent.Control{By: "ana", Reason: "lunch"}},
		{agent.VerbResume, `{"by":"ana"}`, agent.Control{By: "ana"}},
		{agent.VerbRaise, `{"by":"ana","limits":{"max_cost_usd":5}}`, agent.Control{By: "ana", Limits: agent.Limits{MaxCostUSD: 5}}},
		{agent.VerbResolve, `{"call":"c7","by":"ana","outcome":"happened"}`, agent.Control{By: "ana", Call: "c7", Outcome: "happened"}},
	} {
		t.Run(string(tt.verb), func(t *testing.T) {
			t.Parallel()
			got, err := agent.DecodeControl(tt.verb, []byte(tt.raw))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Verb = tt.verb
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

var malformedControls = []struct {
	verb      agent.Verb
	raw, want string
}{
	{"aprove", `{}`, `unknown verb "aprove"; expected one of [approve reject edit answer message pause resume raise resolve]`},
	{agent.VerbDecide, `{}`, `unknown verb "decide"; expected one of [approve reject edit answer message pause resume raise resolve]`},
	{agent.VerbPause, ``, `pause: not a JSON object: it is empty or cut short`},
	{agent.VerbPause, `"lunch"`, `pause: input: "lunch"; expected an object`},
	{agent.VerbPause, `{}`, `pause: by: ""; expected who says it: up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
	{agent.VerbResume, `{"by":"Ana"}`, `resume: by: "Ana"; expected who says it: up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
	{agent.VerbPause, `{"by":"ana","reasn":"x"}`, `pause: reasn: unknown field; did you mean "reason"?`},
	{agent.VerbPause, `{"by":"ana","reason":"` + strings.Repeat("x", agent.MaxControl) + `"}`, `pause: 65560 bytes; expected at most 65536`},
	{agent.VerbMessage, `{"by":"ana"}`, `message: text: missing; expected what you have to say`},
	{agent.VerbMessage, `{"by":"ana","text":" "}`, `message: text: missing; expected what you have to say`},
	{agent.VerbMessage, `{"by":"ana","text":"x","call":"c1"}`, `message: call: unknown field; expected one of by, signed, text`},
	{agent.VerbMessage, `{"by":"ana","by":"bob","text":"x"}`, `message: by: given twice`},
	{agent.VerbMessage, `{"by":"ana","text":"x","signed":{}}`, `message: signed: not supported yet`},
	{agent.VerbMessage, `{"by":"ana","text":"x","signed":null}`, `message: signed: not supported yet`},
	{agent.VerbAnswer, `{"by":"ana","text":"x"}`, `answer: question: missing; expected its id, such as "q1"`},
	{agent.VerbAnswer, `{"by":"ana","question":"q1"}`, `answer: text: missing; expected what you have to say`},
	{agent.VerbApprove, `{"by":"ana","digest":"ab12cd34ef56"}`, `approve: call: missing; expected its id, such as "c3"`},
	{agent.VerbApprove, `{"by":"ana","call":"c3"}`, `approve: digest: ""; expected at least the first 12 hex digits of the digest that you were shown`},
	{agent.VerbApprove, `{"by":"ana","call":"c3","digest":"ab12cd34ef5"}`, `approve: digest: "ab12cd34ef5"; expected at least the first 12 hex digits of the digest that you were shown`},
	{agent.VerbApprove, `{"by":"ana","call":"c3","digest":"AB12CD34EF56"}`, `approve: digest: "AB12CD34EF56"; expected at least the first 12 hex digits of the digest that you were shown`},
	{agent.VerbReject, `{"by":"ana","call":"c3","digest":"` + strings.Repeat("a", 65) + `"}`, `reject: digest: "` + strings.Repeat("a", 40) + `…"; expected at least the first 12 hex digits of the digest that you were shown`},
	{agent.VerbReject, `{"by":"ana","call":3,"digest":"ab12cd34ef56"}`, `reject: call: 3; expected a string`},
	{agent.VerbReject, `{"by":"ana","call":"c3","digest":"ab12cd34ef56","comment":"no"}`, `reject: comment: unknown field; expected one of by, call, digest, feedback, signed`},
	{agent.VerbEdit, `{"by":"ana","call":"c3","digest":"ab12cd34ef56"}`, `edit: arguments: ""; expected the arguments to run instead, as an object`},
	{agent.VerbEdit, `{"by":"ana","call":"c3","digest":"ab12cd34ef56","arguments":[
1]}`, `edit: arguments: "[\n1]"; expected the arguments to run instead, as an object`},
	{agent.VerbEdit, `{"by":"ana","call":"c3","digest":"ab12cd34ef56","arguments":{"a":1,"a":2}}`, `edit: arguments.a: given twice`},
	{agent.VerbRaise, `{"by":"ana"}`, `raise: limits: missing; expected at least one limit to raise`},
	{agent.VerbRaise, `{"by":"ana","limits":{"max_steps":-1}}`, `raise: limits.max_steps: -1; expected a positive value`},
	{agent.VerbRaise, `{"by":"ana","limits":{"max_steps":0}}`, `raise: limits.max_steps: 0; expected a positive value, or leave it out`},
	{agent.VerbResolve, `{"by":"ana","outcome":"happened"}`, `resolve: call: missing; expected its id, such as "c3"`},
	{agent.VerbResolve, `{"by":"ana","call":"c3","outcome":"maybe"}`, `resolve: outcome: "maybe"; expected happened, did_not or run_again`},
}

func TestDecodeControlRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range malformedControls {
		got, err := agent.DecodeControl(tt.verb, []byte(tt.raw))
		if err == nil {
			t.Errorf("%s %s: accepted as %+v", tt.verb, tt.raw, got)
			continue
		}
		if d := cmp.Diff(tt.want, err.Error()); d != "" {
			t.Errorf("%s %.80s: %s", tt.verb, tt.raw, d)
		}
		checkRefusal(t, err)
	}
}

// FuzzDecodeControl holds DecodeControl to this: whatever comes in, what it lets through says who speaks, and what it
// refuses it refuses in one line.
func FuzzDecodeControl(f *testing.F) {
	for _, tt := range malformedControls {
		if len(tt.raw) < 1000 {
			f.Add(string(tt.verb), []byte(tt.raw))
		}
	}
	f.Add("edit", []byte(`{"call":"c3","digest":"ab12cd34ef56","by":"ana","arguments":{"a":[1,{"b":null}]}}`))
	f.Fuzz(func(t *testing.T, verb string, raw []byte) {
		c, err := agent.DecodeControl(agent.Verb(verb), raw)
		switch {
		case err != nil:
			checkRefusal(t, err)
		case !agent.ValidName(string(c.By)) || c.Verb != agent.Verb(verb):
			t.Errorf("accepted %+v", c)
		}
	})
}

func TestDecodeDecide(t *testing.T) {
	t.Parallel()
	got, err := agent.DecodeDecide([]byte(`{"decision":"conditional","by":"lead","comment":"nearly","conditions":["add a test"],"next_action":"merge"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := agent.LedgerDecide{Decision: agent.Conditional, By: "lead", Comment: "nearly", Conditions: []string{"add a test"}, NextAction: "merge"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, tt := range []struct{ raw, want string }{
		{`{"by":"lead"}`, `decide: decision: ""; expected accepted, conditional, rejected or rerun`},
		{`{"by":"lead","decision":"expired"}`, `decide: decision: "expired"; expected accepted, conditional, rejected or rerun`},
		{`{"by":"lead","decision":true}`, `decide: decision: true; expected a string`},
		{`{"decision":"accepted"}`, `decide: by: ""; expected who decides: up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
		{`{"by":"lead","decision":"conditional"}`, `decide: conditions: missing; a conditional decision names at least one`},
		{`{"by":"lead","decision":"conditional","conditions":[""]}`, `decide: conditions[0]: 0 bytes; expected 1 to 16384 bytes of UTF-8`},
		{`{"by":"lead","decision":"accepted","signed":"x"}`, `decide: signed: not supported yet`},
		{`{"by":"lead","decision":"accepted","coment":"x"}`, `decide: coment: unknown field; did you mean "comment"?`},
		{`{"by":"` + strings.Repeat("x", agent.MaxControl) + `"}`, `decide: 65545 bytes; expected at most 65536`},
	} {
		_, err := agent.DecodeDecide([]byte(tt.raw))
		if err == nil {
			t.Errorf("%.80s: accepted", tt.raw)
			continue
		}
		if d := cmp.Diff(tt.want, err.Error()); d != "" {
			t.Errorf("%.80s: %s", tt.raw, d)
		}
		checkRefusal(t, err)
	}
}

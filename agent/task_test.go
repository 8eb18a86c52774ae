package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
)

func TestDecodeTaskFillsInDefaults(t *testing.T) {
	t.Parallel()
	got, err := agent.DecodeTask([]byte(`{"goal":"make the failing test pass","workspace":{"source":"examples/calc"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Task{
		Goal: "make the failing test pass", Agent: "default", Tenant: "default", User: "anonymous", Priority: 3,
		Workspace:  agent.Workspace{Source: "examples/calc"},
		Acceptance: agent.Acceptance{CheckRounds: 2, Quorum: 1, ExpiresAfter: agent.Duration(72 * time.Hour)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestDecodeTaskKeepsEveryField(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"goal":"g","agent":"coder","tenant":"acme","user":"ana@acme.org","workspace":{"source":"w.tar.gz","path":"sub/..x"},` +
		`"context":["be brief"],"acceptance":{"criteria":["reads well"],"checks":["go test ./..."],"check_rounds":3,"reviewers":["lead","ops"],` +
		`"quorum":2,"expires_after":"1h0m0s"},"limits":{"max_steps":7,"task_timeout":"1m30s","max_cost_usd":0.25,"on_limit":"ask"},` +
		`"priority":1,"labels":{"ticket":"B-7"},"rerun_of":"fix-calc"}`)
	task, err := agent.DecodeTask(raw)
	if err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(raw), string(back)); d != "" {
		t.Error(d)
	}
}

// A task that does not decode is answered with one line: where, what stands there, what was expected.
var malformedTasks = []struct{ name, task, want string }{
	{"empty", ``, `not a JSON object: it is empty or cut short`},
	{"cut short", `{"goal":"g"`, `not a JSON object: it is empty or cut short`},
	{"cut in a string", `{"goal":"g`, `not a JSON object: it is empty or cut short`},
	{"not JSON", `goal: g`, `not a JSON object: invalid character 'g' looking for beginning of value, at byte 1`},
	{"trailing comma", `{"goal":"g",}`, `not a JSON object: invalid character '}' looking for beginning of object key string, at byte 12`},
	{"two objects", `{"goal":"g"} {}`, `not a JSON object: there is more after its end, at byte 14`},
	{"array", `[]`, `input: an array; expected an object`},
	{"string", `"goal"`, `input: "goal"; expected an object`},
	{"null", `null`, `input: null; expected an object`},
	{"not UTF-8", "{\"goal\":\"\xff\"}", `not valid UTF-8`},
	{"too deep", `{"goal":` + strings.Repeat("[", 200), `goal[0][0][0][0][0][0][0][0][0][0][0][0]…: nested more than 100 deep`},
	{"too large", `{"goal":"` + strings.Repeat("g", agent.MaxTask) + `"}`, `input: 2097163 bytes; expected at most 2097152`},

	{"mistyped field", `{"gaol":"g"}`, `gaol: unknown field; did you mean "goal"?`},
	{"another case", `{"Goal":"g"}`, `Goal: unknown field; did you mean "goal"?`},
	{"mistyped below", `{"goal":"g","limits":{"max_step":3}}`, `limits.max_step: unknown field; did you mean "max_steps"?`},
	{"field of another object", `{"goal":"g","max_cost_usd":3}`, `max_cost_usd: unknown field; expected one of acceptance, agent, context, goal, labels, limits, priority, rerun_of, session, tenant, user, workspace`},
	{"field with a line break", `{"go\nal":"g"}`, `"go\nal": unknown field; did you mean "goal"?`},
	{"given twice", `{"goal":"g","goal":"h"}`, `goal: given twice`},
	{"given twice below", `{"goal":"g","limits":{"max_steps":3,"max_steps":4}}`, `limits.max_steps: given twice`},

	{"no goal", `{}`, `goal: missing; expected the outcome that you ask for`},
	{"blank goal", `{"goal":" \n"}`, `goal: missing; expected the outcome that you ask for`},
	{"goal null", `{"goal":null}`, `goal: null; expected a string`},
	{"goal a number", `{"goal":7}`, `goal: 7; expected a string`},
	{"goal too long", `{"goal":"` + strings.Repeat("g", 33000) + `"}`, `goal: 33000 bytes; expected at most 32768`},
	{"agent", `{"goal":"g","agent":"My Agent"}`, `agent: "My Agent"; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
	{"tenant", `{"goal":"g","tenant":"../other"}`, `tenant: "../other"; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
	{"user", `{"goal":"g","user":"Ana"}`, `user: "Ana"; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
	{"long user", `{"goal":"g","user":"` + strings.Repeat("ä", 60) + `"}`, `user: "` + strings.Repeat("ä", 20) + `…"; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
	{"session", `{"goal":"g","session":"s1"}`, `session: not supported yet`},
	{"priority zero", `{"goal":"g","priority":0}`, `priority: 0; expected a positive value, or leave it out`},
	{"priority", `{"goal":"g","priority":6}`, `priority: 6; expected 1 (most urgent) to 5`},
	{"priority a fraction", `{"goal":"g","priority":1.5}`, `priority: 1.5; expected a whole number`},
	{"priority a string", `{"goal":"g","priority":"high"}`, `priority: "high"; expected a whole number`},
	{"rerun_of", `{"goal":"g","rerun_of":"` + strings.Repeat("w", 1001) + `"}`, `rerun_of: 1001 bytes; expected a workflow id of at most 1000`},

	{"workspace a string", `{"goal":"g","workspace":"examples/calc"}`, `workspace: "examples/calc"; expected an object`},
	{"revision", `{"goal":"g","workspace":{"revision":"main"}}`, `workspace.revision: not supported yet`},
	{"git source", `{"goal":"g","workspace":{"source":"https://example.org/r.git"}}`, `workspace.source: "https://example.org/r.git": git sources are not supported yet; expected a folder or .tar(.gz) below a workspace root`},
	{"NUL in source", `{"goal":"g","workspace":{"source":"a\u0000b"}}`, `workspace.source: "a\x00b"; expected a path of at most 4096 bytes without NUL`},
	{"absolute path", `{"goal":"g","workspace":{"path":"/etc"}}`, `workspace.path: "/etc"; expected a clean relative path inside the workspace`},
	{"path outside", `{"goal":"g","workspace":{"path":".."}}`, `workspace.path: ".."; expected a clean relative path inside the workspace`},
	{"path not clean", `{"goal":"g","workspace":{"path":"a/../b"}}`, `workspace.path: "a/../b"; expected a clean relative path inside the workspace`},

	{"context a string", `{"goal":"g","context":"be brief"}`, `context: "be brief"; expected an array`},
	{"context of numbers", `{"goal":"g","context":["a",2]}`, `context[1]: 2; expected a string`},
	{"empty context", `{"goal":"g","context":["a",""]}`, `context[1]: 0 bytes; expected 1 to 16384 bytes of UTF-8`},
	{"101 contexts", `{"goal":"g","context":["a"` + strings.Repeat(`,"a"`, 100) + `]}`, `context: 101 entries; expected at most 100`},
	{"blank check", `{"goal":"g","acceptance":{"checks":["true"," "]}}`, `acceptance.checks[1]: 1 bytes; expected 1 to 16384 bytes of UTF-8`},
	{"check_rounds zero", `{"goal":"g","acceptance":{"check_rounds":0}}`, `acceptance.check_rounds: 0; expected a positive value, or leave it out`},
	{"check_rounds", `{"goal":"g","acceptance":{"check_rounds":21}}`, `acceptance.check_rounds: 21; expected 1 to 20`},
	{"reviewer", `{"goal":"g","acceptance":{"reviewers":["ana","Bo"]}}`, `acceptance.reviewers[1]: "Bo"; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
	{"reviewer twice", `{"goal":"g","acceptance":{"reviewers":["ana","ana"]}}`, `acceptance.reviewers[1]: "ana" is listed twice`},
	{"quorum", `{"goal":"g","acceptance":{"reviewers":["ana"],"quorum":2}}`, `acceptance.quorum: 2; expected 1 to the number of reviewers, 1`},
	{"quorum of nobody", `{"goal":"g","acceptance":{"quorum":2}}`, `acceptance.quorum: 2; expected 1 to the number of reviewers, 0`},
	{"expires_after", `{"goal":"g","acceptance":{"expires_after":"10s"}}`, `acceptance.expires_after: 10s; expected at least 1m`},
	{"expires_after zero", `{"goal":"g","acceptance":{"expires_after":"0s"}}`, `acceptance.expires_after: "0s"; expected a positive value, or leave it out`},

	{"duration a number", `{"goal":"g","limits":{"task_timeout":90}}`, `limits.task_timeout: 90; expected a duration such as "90s" or "2h"`},
	{"duration in words", `{"goal":"g","limits":{"tool_timeout":"5 minutes"}}`, `limits.tool_timeout: "5 minutes"; expected a duration such as "90s" or "2h"`},
	{"negative duration", `{"goal":"g","limits":{"model_timeout":"-1h"}}`, `limits.model_timeout: -1h0m0s; expected a positive value`},
	{"negative", `{"goal":"g","limits":{"max_steps":-5}}`, `limits.max_steps: -5; expected a positive value`},
	{"no spending", `{"goal":"g","limits":{"max_cost_usd":0.0}}`, `limits.max_cost_usd: 0.0; expected a positive value, or leave it out`},
	{"cost beyond numbers", `{"goal":"g","limits":{"max_cost_usd":1e999}}`, `limits.max_cost_usd: 1e999; expected a number`},
	{"steps beyond numbers", `{"goal":"g","limits":{"max_steps":9223372036854775808}}`, `limits.max_steps: 9223372036854775808; expected a whole number`},
	{"children", `{"goal":"g","limits":{"max_children":1}}`, `limits.max_children: not supported yet`},
	{"on_limit", `{"goal":"g","limits":{"on_limit":"continue"}}`, `limits.on_limit: "continue"; expected stop, ask or summarize`},
	{"limits null", `{"goal":"g","limits":null}`, `limits: null; expected an object`},

	{"labels a list", `{"goal":"g","labels":["a"]}`, `labels: an array; expected an object`},
	{"label a number", `{"goal":"g","labels":{"a":1}}`, `labels.a: 1; expected a string`},
	{"label without name", `{"goal":"g","labels":{"":"x"}}`, `labels: "" with 1 bytes; expected a name of 1 to 64 and a value of at most 1024 bytes`},
}

func TestDecodeTaskRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range malformedTasks {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			task, err := agent.DecodeTask([]byte(tt.task))
			if err == nil {
				t.Fatalf("accepted as %+v", task)
			}
			if d := cmp.Diff(tt.want, err.Error()); d != "" {
				t.Error(d)
			}
			if got := agent.TypeOf(err); got != agent.InvalidInput {
				t.Errorf("error type %q, want %q", got, agent.InvalidInput)
			}
		})
	}
}

// FuzzDecodeTask holds DecodeTask to this: whatever comes in, it answers with a task that encodes to the same task again,
// or with a one-line InvalidInput error.
func FuzzDecodeTask(f *testing.F) {
	for _, tt := range malformedTasks {
		if len(tt.task) < 1000 {
			f.Add([]byte(tt.task))
		}
	}
	f.Add([]byte(`{"goal":"g","limits":{"max_steps":7,"task_timeout":"1m30s"},"labels":{"a":"b"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		task, err := agent.DecodeTask(raw)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		again, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		back, err := agent.DecodeTask(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if d := cmp.Diff(task, back); d != "" {
			t.Error(d)
		}
	})
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	if agent.TypeOf(err) != agent.InvalidInput || strings.ContainsAny(err.Error(), "\n\r") || err.Error() == "" {
		t.Errorf("%q of type %q; want one line of type InvalidInput", err, agent.TypeOf(err))
	}
}

package scripted_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"belay/model/scripted"
)

// Parts of conversations, as a client sends them.
const (
	system = `{"role":"system","content":"You are careful."}`
	goal   = `{"role":"user","content":"Fix calc."}`
)

func called(id, tool string) string {
	return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":"{}"}}]}`, id, tool)
}

func result(id, text string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, text)
}

func said(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }

func server(t *testing.T, yaml string) *scripted.Server {
	t.Helper()
	s, err := scripted.Parse("s.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s)
}

func post(s http.Handler, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
	return w
}

func ask(s http.Handler, more string, messages ...string) *httptest.ResponseRecorder {
	return post(s, `{"model":"scripted/s","messages":[`+strings.Join(messages, ",")+`]`+more+`}`)
}

// completion is an answer that is not streamed.
type completion struct {
	Choices []struct {
		Message struct {
			Content string
			Refusal string
			Calls   []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Finish string `json:"finish_reason"`
	}
	Usage struct {
		Prompt  int `json:"prompt_tokens"`
		Output  int `json:"completion_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

func read(t *testing.T, w *httptest.ResponseRecorder) completion {
	t.Helper()
	var c completion
	if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil || w.Code != http.StatusOK || len(c.Choices) != 1 {
		t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	return c
}

func text(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	return read(t, w).Choices[0].Message.Content
}

func TestConditions(t *testing.T) {
	t.Parallel()
	talk := []string{system, goal, called("c1", "shell"), result("c1", "FAIL: TestAdd")}
	steered := append(slices.Clone(talk), said("Hurry up."))
	later := append(slices.Clone(steered), `{"role":"assistant","content":"Yes."}`, said("Well?"))
	for _, c := range []struct {
		when  string
		talk  []string
		match bool
	}{
		{"turn: 1", []string{system, goal}, true},
		{"turn: 2", talk, true},
		{"turn: 1", talk, false},
		{"calls_made: 0", []string{goal}, true},
		{"calls_made: 1", later, true},
		{"calls_made: 0", talk, false},
		{"last: tool", talk, true},
		{"last: user", talk, false},
		{"last: user", steered, true},
		{"called: shell", talk, true},
		{"called: edit_file", talk, false},
		{"not_called: edit_file", talk, true},
		{"not_called: shell", talk, false},
		{"goal_contains: calc", later, true},
		{"goal_contains: Hurry", later, false},
		{"not_goal_contains: Hurry", later, true},
		{"system_contains: careful", talk, true},
		{"not_system_contains: careful", talk, false},
		{"last_user_contains: Hurry", steered, true},
		{"last_user_contains: Hurry", later, false},
		{"not_last_user_contains: Hurry", later, true},
		{"last_tool_contains: FAIL", talk, true},
		{"last_tool_contains: FAIL", later, true},
		{"last_tool_contains: FAIL", []string{goal}, false},
		{"not_last_tool_contains: FAIL", talk, false},
		{"not_last_tool_contains: FAIL", []string{goal}, true},
		{"turn: 2, last_tool_contains: PASS", talk, false},
		{"with_tools: true", talk, false},
		{"with_tools: false", talk, true},
	} {
		t.Run(c.when, func(t *testing.T) {
			t.Parallel()
			s := server(t, "rules: [{when: {"+c.when+"}, reply: {text: matched}}, {reply: {text: other}}]")
			if got := text(t, ask(s, "", c.talk...)); (got == "matched") != c.match {
				t.Errorf("answered %q; want a match: %v", got, c.match)
			}
		})
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	s := server(t, `
rules:
  - when: {last: tool}
    reply:
      text: "{{.Turn}} {{.Calls}} {{.Goal}} {{.LastUser}} {{.LastTool}} {{.System}}"
      calls:
        - {tool: shell, arguments: {command: "echo {{.Turn}}", list: [1, "{{.Calls}}", {deep: "{{.Goal}}"}], n: 2.5, yes: true, nothing: null}}
        - {tool: shell, raw_arguments: '{"broken": {{.Turn}}', id: mine}
  - reply: {text: '{{slice .LastTool 0 100}}'}
`)
	answer := read(t, ask(s, "", system, goal, called("c1", "a"), result("c1", "one"), called("c2", "b"), result("c2", "two"))).Choices[0]
	if want := "3 2 Fix calc. Fix calc. two You are careful."; answer.Message.Content != want {
		t.Errorf("got %q, want %q", answer.Message.Content, want)
	}
	calls := answer.Message.Calls
	if want := `{"command":"echo 3","list":[1,"2",{"deep":"Fix calc."}],"n":2.5,"nothing":null,"yes":true}`; calls[0].Function.Arguments != want || calls[0].ID != "call_3_1" {
		t.Errorf("got call %q %s, want call_3_1 %s", calls[0].ID, calls[0].Function.Arguments, want)
	}
	if want := `{"broken": 3`; calls[1].Function.Arguments != want || calls[1].ID != "mine" {
		t.Errorf("got call %q %s, want mine %s", calls[1].ID, calls[1].Function.Arguments, want)
	}
	if w := ask(s, "", goal); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "scenario s, rule 2: template") {
		t.Errorf("a template that fails gives %d %s", w.Code, w.Body)
	}
}

func TestRepeat(t *testing.T) {
	t.Parallel()
	s := server(t, `rules: [{repeat: {calls: 5, per_reply: 2, tool: shell, arguments: {command: "echo {{.Calls}}"}, text: "{{.Calls}} calls made"}}]`)
	talk := []string{goal}
	var replies []int
	for {
		answer := read(t, ask(s, "", talk...)).Choices[0]
		replies = append(replies, len(answer.Message.Calls))
		if len(answer.Message.Calls) == 0 {
			if answer.Message.Content != "5 calls made" || answer.Finish != "stop" {
				t.Errorf("ends with %+v", answer)
			}
			break
		}
		for _, c := range answer.Message.Calls {
			talk = append(talk, called(c.ID, "shell"), result(c.ID, "ok"))
		}
	}
	if want := []int{2, 2, 1, 0}; !cmp.Equal(replies, want) {
		t.Errorf("calls by reply: %v, want %v", replies, want)
	}
}

func TestUsageIsCounted(t *testing.T) {
	t.Parallel()
	s := server(t, `{cache: true, rules: [{when: {turn: 3}, reply: {text: x, usage: {input: 9, output: 8, cached: 7}}}, {reply: {text: eight by}}]}`)
	for _, c := range []struct {
		name                  string
		talk                  []string
		input, output, cached int
	}{
		{"first", []string{system, goal}, 7, 2, 0}, // 16 + 9 bytes
		{"second: what the first held is cached", []string{system, goal, called("c1", "shell"), result("c1", "abc")}, 9, 2, 7},
		{"as the rule says", []string{goal, called("c1", "a"), result("c1", ""), called("c2", "a"), result("c2", "")}, 9, 8, 7},
	} {
		u := read(t, ask(s, "", c.talk...)).Usage
		if u.Prompt != c.input || u.Output != c.output || u.Details.Cached != c.cached {
			t.Errorf("%s: got %+v, want %d, %d, %d", c.name, u, c.input, c.output, c.cached)
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	s := server(t, `rules: [{reply: {text: Grüße, calls: [{tool: shell, arguments: {a: 1}}]}, fault: {chunk_bytes: 4}}]`)
	w := ask(s, `,"stream":true,"stream_options":{"include_usage":true}`, goal)
	var deltas []string
	for event := range strings.SplitSeq(strings.TrimSpace(w.Body.String()), "\n\n") {
		data := strings.TrimPrefix(event, "data: ")
		if i := strings.Index(data, `"choices":`); i >= 0 {
			data = strings.TrimSuffix(data[i+len(`"choices":`):], "}")
		}
		deltas = append(deltas, data)
	}
	want := []string{
		`[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]`,
		`[{"index":0,"delta":{"content":"Grü"},"finish_reason":null}]`,
		`[{"index":0,"delta":{"content":"ße"},"finish_reason":null}]`,
		`[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1_1","type":"function","function":{"name":"shell","arguments":""}}]},"finish_reason":null}]`,
		`[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]},"finish_reason":null}]`,
		`[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":null}]`,
		`[{"index":0,"delta":{},"finish_reason":"tool_calls"}]`,
		`[],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":0}}`,
		`[DONE]`,
	}
	if diff := cmp.Diff(want, deltas); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
	if again := ask(s, `,"stream":true,"stream_options":{"include_usage":true}`, goal); again.Body.String() != w.Body.String() {
		t.Error("the same request gets another answer")
	}
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	s := server(t, `{unsupported: [logprobs], rules: [{when: {turn: 1}, reply: {}}]}`)
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"no JSON", `{`, 400, "not a JSON object"},
		{"no object", `[]`, 400, "not a JSON object"},
		{"another model", `{"model":"gpt","messages":[` + goal + `]}`, 404, "there are s"},
		{"unsupported field", `{"model":"s","logprobs":true,"messages":[` + goal + `]}`, 400, `"param":"logprobs"`},
		{"no messages", `{"model":"s","messages":[]}`, 400, "messages: none"},
		{"unknown role", `{"model":"s","messages":[{"role":"robot","content":""}]}`, 400, "messages[0]: role"},
		{"content of no kind", `{"model":"s","messages":[{"role":"user","content":5}]}`, 400, "content: expected text"},
		{"call without result", `{"model":"s","messages":[` + goal + `,` + called("c1", "a") + `,` + goal + `]}`, 400, `call \"c1\" has no result`},
		{"call without result at the end", `{"model":"s","messages":[` + goal + `,` + called("c1", "a") + `]}`, 400, `call \"c1\" has no result`},
		{"result without call", `{"model":"s","messages":[` + goal + `,` + result("c1", "a") + `]}`, 400, `result of \"c1\", which is no call`},
		{"arguments that are no object", `{"model":"s","messages":[` + goal + `,{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"a","arguments":"{"}}]},` + result("c1", "a") + `]}`, 400, `arguments of call \"c1\" are no JSON object`},
		{"no rule", `{"model":"s","messages":[` + goal + `,` + called("c1", "a") + `,` + result("c1", "odd") + `]}`, 400, "no rule matches turn 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if w := post(s, c.body); w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d %s; want %d with %s", w.Code, w.Body, c.status, c.want)
			}
		})
	}
}

func TestContentInParts(t *testing.T) {
	t.Parallel()
	s := server(t, `rules: [{reply: {text: "{{.Goal}}"}}]`)
	if got := text(t, ask(s, "", `{"role":"user","content":[{"type":"text","text":"Fix "},{"type":"text","text":"it."}]}`)); got != "Fix it." {
		t.Errorf("got %q, want %q", got, "Fix it.")
	}
}

// A fault with times strikes that often in each state of a conversation; what the kill tests read is how often each turn was
// asked for and answered.
func TestFaultsAndRequestsAreCounted(t *testing.T) {
	t.Parallel()
	s := server(t, `rules: [{name: flaky, reply: {text: ok}, fault: {times: 2, status: 503}}]`)
	second := []string{goal, called("c1", "a"), result("c1", "x")}
	for i, c := range []struct {
		talk []string
		want int
	}{{[]string{goal}, 503}, {[]string{goal}, 503}, {[]string{goal}, 200}, {[]string{goal}, 200}, {second, 503}, {second, 503}, {second, 200}} {
		if got := ask(s, "", c.talk...).Code; got != c.want {
			t.Errorf("request %d: status %d, want %d", i, got, c.want)
		}
	}
	ask(s, "", said("Another goal."))

	var got struct{ Requests []scripted.Count }
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/_scripted/requests", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Requests(), got.Requests); diff != "" {
		t.Errorf("over HTTP (-method +HTTP):\n%s", diff)
	}
	if got.Requests[0].Conversation != got.Requests[1].Conversation || got.Requests[0].Conversation == got.Requests[2].Conversation {
		t.Error("conversations are told apart by something else than their goal")
	}
	for i := range got.Requests {
		got.Requests[i].Conversation = ""
	}
	want := []scripted.Count{
		{Scenario: "s", Goal: "Fix calc.", Turn: 1, Rule: "flaky", Requests: 4, Answered: 2, Faulted: 2},
		{Scenario: "s", Goal: "Fix calc.", Turn: 2, Rule: "flaky", Requests: 3, Answered: 1, Faulted: 2},
		{Scenario: "s", Goal: "Another goal.", Turn: 1, Rule: "flaky", Requests: 1, Faulted: 1},
	}
	if diff := cmp.Diff(want, got.Requests); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	server(t, `rules: [{reply: {}}]`).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/models", nil))
	if want := `{"data":[{"id":"scripted/s","object":"model","owned_by":"scripted"}],"object":"list"}`; strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("got %s, want %s", w.Body, want)
	}
}

// Serve listens, says where, and ends with its context, even while an answer stalls.
func TestServe(t *testing.T) {
	t.Parallel()
	s, err := scripted.Parse("s.yaml", []byte(`rules: [{reply: {text: "a text"}, fault: {stall_after: 1}}]`))
	if err != nil {
		t.Fatal(err)
	}
	core, _ := observer.New(zap.InfoLevel)
	base := make(chan string, 1)
	log := zap.New(core, zap.Hooks(func(zapcore.Entry) error { return nil }), zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return teller{Core: c, base: base}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- scripted.Serve(ctx, "127.0.0.1:0", log, s) }()

	res, err := http.Post(<-base+"/chat/completions", "application/json", strings.NewReader(`{"model":"s","stream":true,"messages":[`+goal+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve ends with %v", err)
	}
	if err := scripted.Serve(t.Context(), "nowhere:-1", log, s); err == nil || !strings.Contains(err.Error(), "scripted model: listen") {
		t.Errorf("an address that can't be had gives %v", err)
	}
}

// teller is a log that hands on the base_url of what it is told.
type teller struct {
	zapcore.Core
	base chan string
}

func (l teller) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, l)
}

func (l teller) Write(_ zapcore.Entry, fields []zapcore.Field) error {
	for _, f := range fields {
		if f.Key == "base_url" {
			l.base <- f.String
		}
	}
	return nil
}

package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
	"belay/model"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	call := func(id, tool, arguments string) agent.ToolCall {
		return agent.ToolCall{ID: agent.CallID(id), Tool: tool, Arguments: arguments}
	}
	for _, c := range []struct {
		name  string
		rules string
		want  model.Reply // without usage
	}{
		{
			"text", `{reply: {text: "Grüße, the test passes now; nothing else had to be changed at all."}}`,
			model.Reply{Text: "Grüße, the test passes now; nothing else had to be changed at all.", Finish: model.FinishStop},
		},
		{
			"one call", `{reply: {text: I look., calls: [{tool: shell, arguments: {command: go test ./... -run TestAVeryLongNameOfATest}}]}}`,
			model.Reply{Text: "I look.", Finish: model.FinishToolCalls, Calls: []agent.ToolCall{
				call("call_1_1", "shell", `{"command":"go test ./... -run TestAVeryLongNameOfATest"}`),
			}},
		},
		{
			"several calls at once", `{reply: {calls: [{tool: shell, arguments: {command: ls}}, {tool: read_file, arguments: {path: a.go}}, {tool: ask_human}]}}`,
			model.Reply{Finish: model.FinishToolCalls, Calls: []agent.ToolCall{
				call("call_1_1", "shell", `{"command":"ls"}`), call("call_1_2", "read_file", `{"path":"a.go"}`), call("call_1_3", "ask_human", `{}`),
			}},
		},
		{
			"bad JSON in arguments", `{reply: {calls: [{tool: shell, raw_arguments: '{"command": "ls'}]}}`,
			model.Reply{Finish: model.FinishToolCalls, Calls: []agent.ToolCall{call("call_1_1", "shell", `{"command": "ls`)}},
		},
		{
			"unknown tool", `{reply: {calls: [{tool: run everything!, arguments: {}}]}}`,
			model.Reply{Finish: model.FinishToolCalls, Calls: []agent.ToolCall{call("call_1_1", "run everything!", `{}`)}},
		},
		{
			"duplicate call ids", `{reply: {calls: [{tool: shell, id: x, arguments: {command: a}}, {tool: shell, id: x, arguments: {command: b}}]}}`,
			model.Reply{Finish: model.FinishToolCalls, Calls: []agent.ToolCall{call("x", "shell", `{"command":"a"}`), call("x", "shell", `{"command":"b"}`)}},
		},
		{"refusal", `{reply: {refusal: "I can't help with that."}}`, model.Reply{Refusal: "I can't help with that.", Finish: model.FinishStop}},
		{"length", `{reply: {text: "And then", finish: length}}`, model.Reply{Text: "And then", Finish: model.FinishLength}},
		{"content filter", `{reply: {finish: content_filter}}`, model.Reply{Finish: model.FinishContentFilter}},
		{"empty", `{reply: {}}`, model.Reply{Finish: model.FinishStop}},
		{
			"slow tokens", `{reply: {text: Slow but steady.}, fault: {first_delay: 50s, chunk_delay: 9s, chunk_bytes: 1}}`,
			model.Reply{Text: "Slow but steady.", Finish: model.FinishStop},
		},
		{
			"cut after the end, before usage", `{reply: {text: Whole.}, fault: {cut_after: 3}}`,
			model.Reply{Text: "Whole.", Finish: model.FinishStop},
		},
		{
			"stalled after the end, before usage", `{reply: {text: Whole.}, fault: {stall_after: 3}}`,
			model.Reply{Text: "Whole.", Finish: model.FinishStop},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := connect(t, config(), scenario(t, "rules: ["+c.rules+"]"))
				got, err := r.model.Reply(t.Context(), request(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if got.Usage.InputTokens == 0 || got.Usage.CostUSD == 0 {
					t.Errorf("usage is %+v, want input and cost", got.Usage)
				}
				got.Usage = agent.Usage{}
				c.want.Model = "scripted/s"
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("reply (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	estimated := model.EstimateTokens(request())
	for _, c := range []struct {
		name, scenario string
		want           agent.Usage
	}{
		{
			"told", `rules: [{reply: {text: Done., usage: {input: 1000, output: 100, cached: 400}}}]`,
			agent.Usage{InputTokens: 1000, OutputTokens: 100, CachedTokens: 400, CostUSD: (600*2 + 400*1 + 100*10) / 1e6},
		},
		{
			"not told", `{omit_usage: true, rules: [{reply: {text: twelve bytes}}]}`,
			agent.Usage{InputTokens: estimated, OutputTokens: 3, CostUSD: float64(estimated*2+3*10) / 1e6},
		},
		{
			"stream_options unknown", `{unsupported: [stream_options], rules: [{reply: {text: twelve bytes}}]}`,
			agent.Usage{InputTokens: estimated, OutputTokens: 3, CostUSD: float64(estimated*2+3*10) / 1e6},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got, err := connect(t, config(), scenario(t, c.scenario)).model.Reply(t.Context(), request(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got.Usage); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The estimate is what budgets are reserved by, so it must not be below what the endpoint counts.
func TestEstimateCoversWhatIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, config(), scenario(t, `rules: [{reply: {text: ok}}]`))
		req := request()
		for i := range 20 {
			id := agent.NewCallID(i)
			req.Messages = append(req.Messages,
				agent.Message{Role: agent.RoleAssistant, Calls: []agent.ToolCall{{ID: id, Tool: "shell", Arguments: `{"command":"ls"}`}}},
				agent.Message{Role: agent.RoleTool, Call: id, Text: strings.Repeat("output\n", i*10)})
			got, err := r.model.Reply(t.Context(), req, nil)
			if err != nil {
				t.Fatal(err)
			}
			if estimate := model.EstimateTokens(req); estimate < got.Usage.InputTokens {
				t.Errorf("with %d calls: estimated %d, counted %d", i+1, estimate, got.Usage.InputTokens)
			}
		}
	})
}

func TestProgressTellsOfEveryChunk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, config(), scenario(t, `rules: [{reply: {text: "12345678"}, fault: {chunk_bytes: 2}}]`))
		var got []int
		if _, err := r.model.Reply(t.Context(), request(), func(p model.Progress) { got = append(got, p.Bytes) }); err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 2, 4, 6, 8, 8, 8}; !cmp.Equal(got, want) { // speaker, four pieces, end, usage
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// body answers every request with a canned stream and keeps what was asked.
type body struct {
	stream string
	asked  []map[string]any
	header http.Header
}

func (b *body) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var asked map[string]any
	if err := json.Unmarshal(raw, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.asked, b.header = append(b.asked, asked), r.Header.Clone()
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, b.stream) // the client may have read enough
}

const done = `data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

func TestRequestWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &body{stream: done}
		cfg := config()
		cfg.Temperature, cfg.Seed = new(0.5), new(int64(7))
		req := request()
		req.Messages = append(req.Messages,
			agent.Message{Role: agent.RoleAssistant, Text: "I look.", Calls: []agent.ToolCall{
				{ID: "c1", Tool: "shell", Arguments: `{"command":"ls"}`},
				{ID: "c2", Tool: "run it!", Arguments: `{"command`},
				{ID: "c3", Tool: "", Arguments: ``},
			}},
			agent.Message{Role: agent.RoleTool, Call: "c1", Text: "a.go"},
			agent.Message{Role: agent.RoleTool, Call: "c2", Text: "no such tool"},
			agent.Message{Role: agent.RoleTool, Call: "c3", Text: "no such tool"})
		if _, err := connect(t, cfg, b).model.Reply(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		want := `{
			"model": "scripted/s", "stream": true, "stream_options": {"include_usage": true},
			"max_tokens": 500, "temperature": 0.5, "seed": 7,
			"tools": [{"type": "function", "function": {"name": "shell", "description": "Runs a command.",
				"parameters": {"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}}],
			"messages": [
				{"role": "system", "content": "You are careful."},
				{"role": "user", "content": "Fix the test."},
				{"role": "assistant", "content": "I look.", "tool_calls": [
					{"id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{\"command\":\"ls\"}"}},
					{"id": "c2", "type": "function", "function": {"name": "run_it_", "arguments": "{\"not_an_object\":\"{\\\"command\"}"}},
					{"id": "c3", "type": "function", "function": {"name": "_", "arguments": "{}"}}]},
				{"role": "tool", "tool_call_id": "c1", "content": "a.go"},
				{"role": "tool", "tool_call_id": "c2", "content": "no such tool"},
				{"role": "tool", "tool_call_id": "c3", "content": "no such tool"}]}`
		var wanted map[string]any
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, b.asked[0]); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		if got := b.header.Get("Authorization"); got != "Bearer "+key {
			t.Errorf("Authorization is %q", got)
		}
	})
}

func TestOutputIsBoundedByConfig(t *testing.T) {
	t.Parallel()
	for asked, want := range map[int]float64{0: 1000, 500: 500, 5000: 1000} {
		t.Run(fmt.Sprint(asked), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &body{stream: done}
				req := request()
				req.MaxOutputTokens = asked
				if _, err := connect(t, config(), b).model.Reply(t.Context(), req, nil); err != nil {
					t.Fatal(err)
				}
				if got := b.asked[0]["max_tokens"]; got != want {
					t.Errorf("max_tokens is %v, want %v", got, want)
				}
			})
		})
	}
}

// An endpoint that refuses a field is asked in other words, and from then on at once.
func TestDialects(t *testing.T) {
	t.Parallel()
	for _, unsupported := range []string{"stream_options", "max_tokens", "stream_options, max_tokens"} {
		t.Run(unsupported, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := scenario(t, `{unsupported: [`+unsupported+`], rules: [{reply: {text: ok}}]}`)
				refused := 0
				r := connect(t, config(), http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					rec := &statusRecorder{ResponseWriter: w}
					s.ServeHTTP(rec, req)
					if rec.status == http.StatusBadRequest {
						refused++
					}
				}))
				for range 2 {
					if reply, err := r.model.Reply(t.Context(), request(), nil); err != nil || reply.Text != "ok" {
						t.Fatalf("got %+v, %v", reply, err)
					}
				}
				if want := strings.Count(unsupported, ",") + 1; refused != want {
					t.Errorf("%d requests were refused, want %d", refused, want)
				}
			})
		})
	}
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Streams as other endpoints write them.
func TestForeignStreams(t *testing.T) {
	t.Parallel()
	event := func(s string) string { return "data: " + s + "\n\n" }
	delta := func(d string) string { return event(`{"choices":[{"index":0,"delta":` + d + `}]}`) }
	end := func(f string) string {
		return event(`{"choices":[{"index":0,"delta":{},"finish_reason":"` + f + `"}]}`)
	}
	for _, c := range []struct {
		name, stream string
		want         model.Reply
	}{
		{
			"all calls at index 0", delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}`) +
				delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}]}`) + end("stop"),
			model.Reply{Finish: model.FinishToolCalls, Calls: []agent.ToolCall{{ID: "a", Tool: "x", Arguments: "{}"}, {ID: "b", Tool: "y", Arguments: "{}"}}},
		},
		{
			"id and name repeated in each piece", delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"a\""}}]}`) +
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":":1}"}}]}`) + end("tool_calls"),
			model.Reply{Finish: model.FinishToolCalls, Calls: []agent.ToolCall{{ID: "a", Tool: "x", Arguments: `{"a":1}`}}},
		},
		{
			"calls without ids", delta(`{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{}"}},{"index":1,"function":{"name":"y","arguments":"{}"}}]}`) + end("tool_calls"),
			model.Reply{Finish: model.FinishToolCalls, Calls: []agent.ToolCall{{Tool: "x", Arguments: "{}"}, {Tool: "y", Arguments: "{}"}}},
		},
		{
			"calls interleaved", delta(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"y","arguments":"["}}]}`) +
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}]}`) +
				delta(`{"tool_calls":[{"index":1,"function":{"arguments":"]"}},{"index":0,"function":{"arguments":"}"}}]}`) + end("tool_calls"),
			model.Reply{Finish: model.FinishToolCalls, Calls: []agent.ToolCall{{ID: "b", Tool: "y", Arguments: "[]"}, {ID: "a", Tool: "x", Arguments: "{}"}}},
		},
		{"a finish reason of its own", delta(`{"content":"hi"}`) + end("eos"), model.Reply{Text: "hi", Finish: model.FinishStop}},
		{"no [DONE]", delta(`{"content":"hi"}`) + end("stop"), model.Reply{Text: "hi", Finish: model.FinishStop}},
		{"comments and thoughts", ": keep-alive\n\n" + delta(`{"reasoning_content":"hm"}`) + delta(`{"content":"hi"}`) + end("stop"), model.Reply{Text: "hi", Finish: model.FinishStop}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got, err := connect(t, config(), &body{stream: c.stream}).model.Reply(t.Context(), request(), nil)
				if err != nil {
					t.Fatal(err)
				}
				got.Usage, c.want.Model = agent.Usage{}, "scripted/s"
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("reply (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestTimeoutsRestAfterTheReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := connect(t, config(), scenario(t, `rules: [{reply: {text: ok}, fault: {first_delay: 30s}}]`))
		for range 3 {
			start := time.Now()
			if _, err := r.model.Reply(t.Context(), request(), nil); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took != 30*time.Second {
				t.Errorf("a reply took %s, want 30s", took)
			}
		}
	})
}

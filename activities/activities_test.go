package activities_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"belay/activities"
	"belay/agent"
	"belay/config"
	"belay/model"
	"belay/model/openai"
	"belay/model/scripted"
	"belay/sandbox"
	"belay/sandbox/sandboxtest"
	"belay/store"
)

// place is where activities are tested: the real ones over a scripted model, a fake sandbox and a store in memory.
type place struct {
	*testing.T
	env   *testsuite.TestActivityEnvironment
	act   *activities.Activities
	model *scripted.Server
	boxes *sandboxtest.Fake
	store *store.Store
	run   agent.RunRef
	head  agent.Digest // the conversation after Prepare
}

const keyed = `
rules:
  - when: {turn: 1, goal_contains: write}
    reply: {text: I write., calls: [{tool: write_file, arguments: {path: a.txt, content: a}}, {tool: shell, arguments: {command: rm -rf legacy}}, {tool: shell, arguments: {command: "echo x > /etc/motd"}}]}
  - when: {goal_contains: fail}
    fault: {status: 500}
  - reply: {text: done}
`

func newPlace(t *testing.T, goal string) *place {
	t.Helper()
	sc, err := scripted.Parse("test.yaml", []byte(keyed))
	if err != nil {
		t.Fatal(err)
	}
	sc.Name = "test"
	p := &place{T: t, model: scripted.New(sc), boxes: sandboxtest.NewFake(t.TempDir()), run: agent.RunRef{Tenant: "default", Run: "11111111-2222-3333-4444-555555555555"}}
	server := httptest.NewServer(p.model)
	t.Cleanup(server.Close)
	if p.store, err = store.Open(t.Context(), "mem://"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.store.Close() })
	bundle, err := config.LoadDir("../deploy/config")
	if err != nil {
		t.Fatal(err)
	}
	if bundle, err = bundle.In(config.Place{ModelBaseURL: server.URL + "/v1", ModelID: "scripted/test", Getenv: func(string) string { return "" }}); err != nil {
		t.Fatal(err)
	}
	p.act, err = activities.New(activities.Config{
		Bundle:  func() *config.Bundle { return bundle },
		Store:   p.store,
		Model:   func(name string) (model.Model, error) { return openai.New(bundle.Models[name], "", server.Client()) },
		Sandbox: p.boxes, Level: "process", HostQueue: "host", IndexDir: t.TempDir(),
		Retry: agent.RetryTable{agent.ModelError: {Attempts: 2, First: time.Millisecond, Factor: 1, Max: time.Millisecond}},
		HTTP:  http.DefaultClient, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	var suite testsuite.WorkflowTestSuite
	p.env = suite.NewTestActivityEnvironment()
	p.env.RegisterActivity(p.act)
	p.begin(goal)
	return p
}

// begin prepares a task with that goal.
func (p *place) begin(goal string) {
	p.Helper()
	task, err := agent.DecodeTask([]byte(`{"goal":"` + goal + `"}`))
	if err != nil {
		p.Fatal(err)
	}
	var out activities.Prepared
	p.do(p.act.Prepare, activities.PrepareInput{Run: p.run, Task: task}, &out)
	p.head = out.Head
}

// do runs an activity that must succeed.
func (p *place) do(activity, in, out any) {
	p.Helper()
	v, err := p.env.ExecuteActivity(activity, in)
	if err == nil {
		err = v.Get(out)
	}
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) reply() (out activities.ModelOutput) {
	p.Helper()
	p.do(p.act.CallModel, activities.ModelInput{Run: p.run, Step: 1, Head: p.head, MaxOutput: 100, Timeout: agent.Duration(time.Minute)}, &out)
	return out
}

func TestAReplyIsBoughtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "write")
	first, second := p.reply(), p.reply()
	if first != second {
		t.Errorf("the second attempt gave %+v, the first %+v", second, first)
	}
	if n := p.model.Requests(); len(n) != 1 || n[0].Requests != 1 {
		t.Errorf("the endpoint was asked %+v, want one request", n)
	}
}

func TestTheGateJudgesEachCall(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "write")
	out := p.gate(p.reply().Head, nil)
	want := []activities.Gating{activities.GateAllow, activities.GateApproval, activities.GateDeny}
	for i, v := range out.Verdicts {
		if v.Gate != want[i] || !v.Digest.Valid() {
			t.Errorf("%s %s: %q with digest %q, want %q", v.Call, v.Summary, v.Gate, v.Digest, want[i])
		}
	}
	edited := p.gate(p.reply().Head, map[agent.CallID]json.RawMessage{"c2": json.RawMessage(`{"command":"ls"}`)})
	if v := edited.Verdicts; len(v) != 1 || v[0].Gate != activities.GateAllow || v[0].Digest == out.Verdicts[1].Digest || v[0].Edited == "" {
		t.Errorf("the edited call was judged %+v", v)
	}
}

func (p *place) gate(head agent.Digest, edits map[agent.CallID]json.RawMessage) (out activities.GateOutput) {
	p.Helper()
	v, err := p.env.ExecuteLocalActivity(p.act.Gate, activities.GateInput{Run: p.run, Step: 1, Head: head, Edits: edits})
	if err == nil {
		err = v.Get(&out)
	}
	if err != nil {
		p.Fatal(err)
	}
	return out
}

func TestExecuteRunsOnlyWhatWasAllowed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "write")
	head := p.reply().Head
	verdicts := p.gate(head, nil).Verdicts
	var box activities.Acquired
	p.do(p.act.AcquireSandbox, activities.AcquireInput{Run: p.run, Generation: 1, Profile: "default"}, &box)
	call := func(n int) activities.ExecuteInput {
		v := verdicts[n]
		return activities.ExecuteInput{Run: p.run, Step: 1, Head: head, Call: v.Call, Sandbox: box.Sandbox.ID, Allow: v.Digest, Timeout: agent.Duration(time.Minute)}
	}
	cases := []struct {
		name   string
		change func() activities.ExecuteInput
		want   string
	}{
		{"no allow", func() activities.ExecuteInput { in := call(0); in.Allow = ""; return in }, "the allow is for action"},
		{"another call's allow", func() activities.ExecuteInput { in := call(0); in.Allow = verdicts[1].Digest; return in }, "the allow is for action"},
		{"another step", func() activities.ExecuteInput { in := call(0); in.Step = 2; return in }, "the allow is for action"},
		{"nobody approved", func() activities.ExecuteInput { return call(1) }, "policy now asks for an approval"},
		{"denied, approved all the same", func() activities.ExecuteInput { in := call(2); in.Approved = []agent.UserID{"ana"}; return in }, "policy now says deny"},
		{"a call that nobody asked for", func() activities.ExecuteInput { in := call(0); in.Call = "c9"; return in }, "asks for no call c9"},
	}
	for _, c := range cases {
		if _, err := p.env.ExecuteActivity(p.act.Execute, c.change()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
	if n := p.boxes.Runs(box.Sandbox.ID); len(n) != 0 {
		t.Errorf("executions: %v, want none", n)
	}
	approved := call(1)
	approved.Approved = []agent.UserID{"ana"}
	var out activities.ExecuteOutput
	p.do(p.act.Execute, approved, &out)
	if n := p.boxes.Runs(box.Sandbox.ID)[sandbox.ExecID("c2")]; n != 1 || out.Status != agent.CallOK {
		t.Errorf("the approved call ran %d times and ended %s", n, out.Status)
	}
}

func TestAFailedReplyIsFinalWhenItsAttemptsAreUsedUp(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "fail")
	_, err := p.env.ExecuteActivity(p.act.CallModel, activities.ModelInput{Run: p.run, Step: 1, Head: p.head, MaxOutput: 100})
	if err == nil || !strings.Contains(err.Error(), "type: ModelError, retryable: true") {
		t.Errorf("the first failure is %v, want a ModelError that is tried again", err)
	}
}

func TestWorkspaceSourcesStayBelowTheirRoots(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "write")
	for _, source := range []string{"/etc", "../deploy", "calc", "a/../../b"} {
		task, err := agent.DecodeTask([]byte(`{"goal":"x","workspace":{"source":"` + source + `"}}`))
		if err != nil {
			continue // refused even earlier
		}
		_, err = p.env.ExecuteActivity(p.act.Prepare, activities.PrepareInput{Run: p.run, Task: task})
		if err == nil || !strings.Contains(err.Error(), "workspace.source") {
			t.Errorf("source %q: %v, want an error that names workspace.source", source, err)
		}
	}
}

// A relative path means what it means where the shell is: a folder that an earlier call went to counts.
func TestTheGateKnowsWhereTheShellIs(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "write")
	head := p.reply().Head
	edits := map[agent.CallID]json.RawMessage{"c2": json.RawMessage(`{"command":"echo x > hooks/pre-commit"}`)}
	for dir, want := range map[string]activities.Gating{
		"":                  activities.GateAllow,
		"/workspace/sub":    activities.GateAllow,
		"/workspace/.git":   activities.GateApproval,
		"/workspace/it's .": activities.GateAllow,
		"/etc":              activities.GateDeny,
	} {
		v, err := p.env.ExecuteLocalActivity(p.act.Gate, activities.GateInput{Run: p.run, Step: 1, Head: head, Dir: dir, Edits: edits})
		var out activities.GateOutput
		if err == nil {
			err = v.Get(&out)
		}
		if err != nil || out.Verdicts[0].Gate != want {
			t.Errorf("in %q: %+v, %v; want %q", dir, out.Verdicts, err, want)
		}
	}
}

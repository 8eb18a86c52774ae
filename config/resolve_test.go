package config_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
	"belay/config"
	"belay/policy"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	b := load(t, good(t))
	r, err := b.Resolve(agent.Task{Agent: "coder", Tenant: "acme", Limits: agent.Limits{MaxSteps: 7, MaxTokens: 5000}})
	if err != nil {
		t.Fatal(err)
	}
	want := b.Tenants["acme"].Ceiling // what neither the task nor the agent sets
	want.MaxSteps, want.MaxTokens = 7, 5000
	want.TaskTimeout, want.MaxCostUSD = agent.Duration(time.Hour), 2.5
	want.OnLimit = agent.OnLimitStop
	if d := cmp.Diff(want, r.Limits); d != "" {
		t.Errorf("limits: %s", d)
	}
	if d := cmp.Diff(b.Tenants["acme"].Ceiling, r.Ceiling); d != "" {
		t.Errorf("ceiling: %s", d)
	}
	var tools []string
	for _, s := range r.Tools.Specs() {
		tools = append(tools, s.Name)
	}
	if d := cmp.Diff([]string{"read_file", "shell"}, tools); d != "" {
		t.Errorf("tools: %s", d)
	}
	if r.Agent.Name != "coder" || r.Model.Name != "main" || r.Profile.Name != "tight" || r.Tenant.Name != "acme" {
		t.Errorf("resolved to %+v", r)
	}
	v := r.Versions
	if v.Model != "big-1" || v.Policy != b.Policy.Digest() || !v.Agent.Valid() || !v.Prompt.Valid() || v.Tools != r.Tools.Digest() {
		t.Errorf("versions %+v", v)
	}
}

// Where the tenant's ceiling is below the agent's own limits, the ceiling holds.
func TestResolveHoldsTheCeiling(t *testing.T) {
	t.Parallel()
	b := load(t, good(t))
	r, err := b.Resolve(agent.Task{Agent: "reader", Tenant: "small", Limits: agent.Limits{OnLimit: agent.OnLimitAsk}})
	if err != nil {
		t.Fatal(err)
	}
	want := b.Tenants["small"].Ceiling
	want.OnLimit = agent.OnLimitAsk
	if d := cmp.Diff(want, r.Limits); d != "" {
		t.Error(d)
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	b := load(t, good(t))
	for _, tt := range []struct {
		name     string
		task     agent.Task
		wantType agent.ErrorType
		want     string
	}{
		{"unknown agent", agent.Task{Agent: "codr", Tenant: "acme"}, agent.InvalidInput,
			`agent: "codr": no such agent; did you mean "coder"?`},
		{"unknown tenant", agent.Task{Agent: "coder", Tenant: "acne"}, agent.Unauthorized,
			`tenant: "acne": not served here; did you mean "acme"?`},
		{"agent of others", agent.Task{Agent: "reader", Tenant: "acme"}, agent.Unauthorized,
			`agent: "reader": not for tenant "acme"; expected one of coder`},
		{"model of others", agent.Task{Agent: "coder", Tenant: "small"}, agent.Unauthorized,
			`agent: "coder" asks model "main", which is not for tenant "small"; expected one of spare`},
		{"looser than the agent", agent.Task{Agent: "coder", Tenant: "acme", Limits: agent.Limits{MaxSteps: 101}}, agent.InvalidInput,
			`limits.max_steps: 101; expected at most 100, which agent "coder" allows`},
		{"longer than the agent", agent.Task{Agent: "coder", Tenant: "acme", Limits: agent.Limits{TaskTimeout: agent.Duration(2 * time.Hour)}}, agent.InvalidInput,
			`limits.task_timeout: 2h0m0s; expected at most 1h0m0s, which agent "coder" allows`},
		{"looser than the ceiling", agent.Task{Agent: "coder", Tenant: "acme", Limits: agent.Limits{MaxTokens: 2000001}}, agent.InvalidInput,
			`limits.max_tokens: 2000001; expected at most 2000000, the ceiling of tenant "acme"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := b.Resolve(tt.task)
			if err == nil || err.Error() != tt.want || agent.TypeOf(err) != tt.wantType {
				t.Errorf("%v of type %q, want %s of type %q", err, agent.TypeOf(err), tt.want, tt.wantType)
			}
		})
	}
}

// What a run records tells definitions, prompts and tools apart, and only those.
func TestVersions(t *testing.T) {
	t.Parallel()
	versions := func(file, old, now string) agent.Versions {
		files := good(t)
		files[file].Data = []byte(strings.Replace(string(files[file].Data), old, now, 1))
		r, err := load(t, files).Resolve(agent.Task{Agent: "coder", Tenant: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		return r.Versions
	}
	first := versions("agents/coder.yaml", "", "")
	for _, tt := range []struct {
		name, file, old, now string
		same                 []bool // agent, prompt, tools, policy
	}{
		{"a comment", "agents/coder.yaml", "name: coder", "name: coder # as ever", []bool{true, true, true, true}},
		{"another agent", "agents/reader.yaml", "You answer", "You shout", []bool{true, true, true, true}},
		{"the prompt", "agents/coder.md", "change", "mend", []bool{false, false, true, true}},
		{"the tools", "agents/coder.yaml", "[shell, read_file]", "[read_file]", []bool{false, true, false, true}},
		{"a limit", "agents/coder.yaml", "max_steps: 100", "max_steps: 99", []bool{false, true, true, true}},
		{"a rule", "policy/default.yaml", "changes nothing.", "is harmless.", []bool{true, true, true, false}},
	} {
		v := versions(tt.file, tt.old, tt.now)
		got := []bool{v.Agent == first.Agent, v.Prompt == first.Prompt, v.Tools == first.Tools, v.Policy == first.Policy}
		if d := cmp.Diff(tt.same, got); d != "" {
			t.Errorf("%s: the same agent, prompt, tools, policy: %s", tt.name, d)
		}
	}
}

func TestChain(t *testing.T) {
	t.Parallel()
	files := good(t)
	const third = "base_url: https://third.example.org/v1\nmodel: m\ncontext_window: 32000\nmax_output_tokens: 4096\n"
	files["models/main.yaml"].Data = []byte(strings.Replace(string(files["models/main.yaml"].Data), "[spare]", "[spare, last]", 1))
	files["models/spare.yaml"].Data = append(files["models/spare.yaml"].Data, "fallback: [third, last]\n"...)
	files["models/third.yaml"] = file(third)
	files["models/last.yaml"] = file(third)
	b := load(t, files)
	chain, err := b.Chain("main")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range chain {
		names = append(names, m.Name)
	}
	if d := cmp.Diff([]string{"main", "spare", "third", "last"}, names); d != "" {
		t.Error(d)
	}
	_, err = b.Chain("mian")
	if want := `model "mian": not in the configuration; did you mean "main"?`; err == nil || err.Error() != want || agent.TypeOf(err) != agent.StateError {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestProfile(t *testing.T) {
	t.Parallel()
	b := load(t, good(t))
	if p, err := b.Profile("tight"); err != nil || p.PIDs != 64 {
		t.Errorf("%+v, %v", p, err)
	}
	_, err := b.Profile("tigt")
	if want := `sandbox profile "tigt": not in the configuration; did you mean "tight"?`; err == nil || err.Error() != want || agent.TypeOf(err) != agent.StateError {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	r := load(t, good(t)).Reviewers
	for _, tt := range []struct{ names, want []agent.UserID }{
		{nil, nil},
		{[]agent.UserID{"bob"}, []agent.UserID{"bob"}},
		{[]agent.UserID{"lead", "group:security", "bob"}, []agent.UserID{"lead", "ana", "bob"}},
		{[]agent.UserID{"group:gone"}, []agent.UserID{"group:gone"}}, // nobody, and not anyone
	} {
		if d := cmp.Diff(tt.want, r.Expand(tt.names)); d != "" {
			t.Errorf("%v: %s", tt.names, d)
		}
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	env := func(name string) string { return map[string]string{"HOOK_URL": "https://hooks.example.org/x"}[name] }
	b := load(t, good(t))
	in, err := b.In(config.Place{
		Namespace: "dev", TaskQueue: "belay", Model: "spare", ModelBaseURL: "http://127.0.0.1:8080/v1", ModelID: "local", Getenv: env,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, served := in.Tenants["acme"]; served || len(in.Tenants) != 1 {
		t.Errorf("tenants %v; acme is served in another namespace", in.Tenants)
	}
	r, err := in.Resolve(agent.Task{Agent: "coder", Tenant: "small"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Model.Name != "spare" || r.Model.BaseURL != "http://127.0.0.1:8080/v1" || r.Model.Model != "local" || r.Versions.Model != "local" {
		t.Errorf("model %+v", r.Model)
	}
	if in.Webhook() != "https://hooks.example.org/x" || in.Digest() != b.Digest() {
		t.Errorf("webhook %q, digest %s", in.Webhook(), in.Digest())
	}
	// The bundle that it came from stays as it was.
	if len(b.Tenants) != 2 || b.Agents["coder"].Model != "main" || b.Models["spare"].Model != "small-1" || b.Webhook() != "" {
		t.Error("the original bundle changed")
	}
}

// An endpoint of one's own is given a key only where there is one.
func TestInDropsTheKeyThatIsNotThere(t *testing.T) {
	t.Parallel()
	b := load(t, good(t))
	for _, tt := range []struct{ url, key, want string }{
		{"", "", "MAIN_KEY"},
		{"http://127.0.0.1:8080/v1", "", ""},
		{"http://127.0.0.1:8080/v1", "k", "MAIN_KEY"},
	} {
		env := func(name string) string {
			return map[string]string{"HOOK_URL": "https://hooks.example.org/x", "MAIN_KEY": tt.key}[name]
		}
		in, err := b.In(config.Place{ModelBaseURL: tt.url, Getenv: env})
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Models["main"].APIKeyEnv; got != tt.want {
			t.Errorf("endpoint %q, key %q: key variable %q, want %q", tt.url, tt.key, got, tt.want)
		}
	}
}

func TestInRefuses(t *testing.T) {
	t.Parallel()
	files := good(t)
	delete(files, "tenants/small.yaml")
	b := load(t, files)
	for _, tt := range []struct {
		name  string
		place config.Place
		want  string
	}{
		{"nobody to serve", config.Place{Namespace: "dev", TaskQueue: "belay"}, `tenants: none is served in namespace "dev" on task queue "belay"; expected at least one`},
		{"unknown model", config.Place{Model: "mian"}, `model "mian": not in the configuration; did you mean "main"?`},
		{"not a URL", config.Place{ModelBaseURL: "localhost:8080"}, `model "main": base_url: scheme "localhost"; expected http or https`},
		{"no webhook", config.Place{Getenv: func(string) string { return "" }}, `reviewers.yaml: notify.webhook_env: HOOK_URL is not set; expected the URL to post to`},
	} {
		for range 5 { // the models are a map: the first to be wrong must not depend on its order
			if _, err := b.In(tt.place); err == nil || err.Error() != tt.want {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
		}
	}
}

func TestARuleMayNameAGroup(t *testing.T) {
	t.Parallel()
	files := good(t)
	files["reviewers.yaml"] = file("users: [ana, ben, lead]\ngroups: {security: [ana, ben]}\n")
	files["policy/extra.yaml"] = file(`rules:
  - id: tags
    effect: require_approval
    when: tool == "shell" && args.command == "make release"
    reason: Releases are for security.
    approval: {reviewers: ["group:security"]}
    examples: {match: [{tool: shell, command: make release}], no_match: [{tool: shell, command: make}]}
`)
	b := load(t, files)
	shell := policy.Analyze("make release")
	d := b.Policy.Decide(policy.Request{Mode: agent.ConfirmNever, Tool: "shell", Arguments: map[string]any{"command": "make release"}, Shell: &shell})
	if got := b.Reviewers.Expand(d.Reviewers); !slices.Equal(got, []agent.UserID{"ana", "ben"}) {
		t.Errorf("reviewers %v stand for %v, want ana and ben", d.Reviewers, got)
	}
}

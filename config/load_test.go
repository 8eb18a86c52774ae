package config_test

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"belay/agent"
	"belay/config"
	"belay/model"
	"belay/sandbox"
	"belay/strictyaml"
)

// good gives the files of testdata/good.txtar.
func good(t testing.TB) fstest.MapFS {
	t.Helper()
	a, err := txtar.ParseFile("testdata/good.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, f := range a.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return files
}

func load(t testing.TB, files fstest.MapFS) *config.Bundle {
	t.Helper()
	b, err := config.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLoad(t *testing.T) {
	t.Parallel()
	cached, temperature := 0.5, 0.2
	minutes := func(n int) agent.Duration { return agent.Duration(n) * agent.Duration(time.Minute) }
	want := &config.Bundle{
		Agents: map[string]config.Agent{
			"coder": {
				Name: "coder", Description: "changes code", Model: "main", Tools: []string{"shell", "read_file"},
				Prompt: "You change code.\n", PromptFile: "coder.md", Confirmation: agent.ConfirmNever, Sandbox: "tight",
				Limits: agent.Limits{MaxSteps: 100, TaskTimeout: minutes(60), MaxCostUSD: 2.5},
			},
			"reader": {
				Name: "reader", Model: "spare", Tools: []string{}, Prompt: "You answer\nquestions.\n", Confirmation: agent.ConfirmRisky, Sandbox: "tight",
			},
		},
		Models: map[string]model.Config{
			"main": {
				Name: "main", BaseURL: "https://models.example.org/v1", APIKeyEnv: "MAIN_KEY", Model: "big-1", ContextWindow: 200000,
				MaxOutputTokens: 8192, Prices: model.Prices{Input: 2, CachedInput: &cached, Output: 8},
				Timeouts: model.Timeouts{FirstToken: agent.Duration(90 * time.Second)}, Temperature: &temperature, Fallback: []string{"spare"},
			},
			"spare": {Name: "spare", BaseURL: "https://spare.example.org/v1", Model: "small-1", ContextWindow: 32000, MaxOutputTokens: 4096},
		},
		Tenants: map[agent.TenantID]config.Tenant{
			"acme": {
				Name: "acme", Namespace: "prod", TaskQueue: "belay", Agents: []string{"coder"}, Models: []string{"*"},
				Ceiling: agent.Limits{
					MaxSteps: 1000, TaskTimeout: minutes(24 * 60), ModelTimeout: minutes(5), ToolTimeout: minutes(10), ApprovalTimeout: minutes(24 * 60),
					MaxTokens: 2000000, MaxOutputTokens: 8192, MaxCostUSD: 20, MaxToolCalls: 300, MaxParallelTools: 4, MaxRetries: 8,
				},
			},
			"small": {
				Name: "small", Agents: []string{"*"}, Models: []string{"spare"},
				Ceiling: agent.Limits{
					MaxSteps: 10, TaskTimeout: minutes(10), ModelTimeout: minutes(1), ToolTimeout: minutes(1), ApprovalTimeout: minutes(60),
					MaxTokens: 10000, MaxOutputTokens: 1000, MaxCostUSD: 0.1, MaxToolCalls: 20, MaxParallelTools: 1, MaxRetries: 2,
					OnLimit: agent.OnLimitSummarize,
				},
			},
		},
		Profiles: map[string]sandbox.Profile{
			"tight": {
				Name: "tight", MemoryMiB: 512, PIDs: 64, CPUPercent: 100, TmpMiB: 64,
				Env: map[string]string{"LANG": "C.UTF-8"}, Unconfined: []string{"cpu"},
			},
		},
		Reviewers: config.Reviewers{
			Users:  []agent.UserID{"ana", "bob", "lead"},
			Groups: map[string][]agent.UserID{"security": {"ana", "lead"}},
			Notify: config.Notify{WebhookEnv: "HOOK_URL"},
		},
	}
	got := load(t, good(t))
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(config.Bundle{}), cmpopts.IgnoreFields(config.Bundle{}, "Policy")); d != "" {
		t.Error(d)
	}
	if !got.Policy.Digest().Valid() || !got.Digest().Valid() {
		t.Errorf("digests %q and %q", got.Policy.Digest(), got.Digest())
	}
}

func TestDigestNamesTheFiles(t *testing.T) {
	t.Parallel()
	first := load(t, good(t)).Digest()
	if again := load(t, good(t)).Digest(); again != first {
		t.Error("two digests of the same files")
	}
	files := good(t)
	files[".git/x"] = &fstest.MapFile{Data: []byte("hidden")}
	if got := load(t, files).Digest(); got != first {
		t.Error("a hidden file changed the digest")
	}
	for name := range good(t) {
		files := good(t)
		files[name].Data = append(files[name].Data, '\n')
		if got := load(t, files).Digest(); got == first {
			t.Errorf("a change in %s did not change the digest", name)
		}
	}
}

// The files that we ship load as they are, and let the task of the README run.
func TestDeployedConfiguration(t *testing.T) {
	t.Parallel()
	b, err := config.LoadDir("../deploy/config")
	if err != nil {
		t.Fatal(err)
	}
	task, err := agent.DecodeTask([]byte(`{"goal":"make the failing test pass","workspace":{"source":"examples/calc"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Resolve(task)
	if err != nil {
		t.Fatal(err)
	}
	if missing := r.Limits.Missing(); len(missing) > 0 {
		t.Errorf("limits without %v", missing)
	}
	if len(r.Tools.Specs()) != 7 || r.Model.Name != "default" || r.Profile.Name != "default" || !strings.Contains(r.Agent.Prompt, "/workspace") {
		t.Errorf("resolved to %+v", r)
	}
	if _, err := b.In(config.Place{Model: "scripted", ModelBaseURL: "http://127.0.0.1:1/v1"}); err != nil {
		t.Errorf("the demo's place: %v", err)
	}
}

// A case of testdata/refused: changes to the good files, and what is wrong with what comes of them.
type refusal struct {
	changes []txtar.File
	want    string
}

func refusals(t *testing.T, file string) (cases []refusal) {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c refusal
	for _, f := range a.Files {
		if f.Name != "want" {
			c.changes = append(c.changes, f)
			continue
		}
		c.want = string(f.Data)
		cases = append(cases, c)
		c = refusal{}
	}
	return cases
}

func (c refusal) apply(t *testing.T, files fstest.MapFS) {
	t.Helper()
	for _, f := range c.changes {
		was, now, edit := strings.Cut(string(f.Data), "\n=>\n")
		switch {
		case edit:
			text := string(files[f.Name].Data)
			if strings.Count("\n"+text, "\n"+was+"\n") != 1 {
				t.Fatalf("%q stands not once in %s", was, f.Name)
			}
			now = strings.TrimPrefix(now, "\n") // an empty replacement takes the line away
			files[f.Name] = &fstest.MapFile{Data: []byte(strings.Replace("\n"+text, "\n"+was+"\n", "\n"+now, 1)[1:])}
		case string(f.Data) == "(deleted)\n":
			delete(files, f.Name)
		default:
			files[f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	topics, err := filepath.Glob("testdata/refused/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	oneLine := regexp.MustCompile(`^[^:\n]+:\d+:(\d+:)? .+$`)
	count := 0
	for _, topic := range topics {
		for _, c := range refusals(t, topic) {
			count++
			t.Run(strings.TrimSuffix(path.Base(topic), ".txtar"), func(t *testing.T) {
				t.Parallel()
				files := good(t)
				c.apply(t, files)
				_, err := config.Load(files)
				if err == nil {
					t.Fatalf("loaded; want\n%s", c.want)
				}
				if d := cmp.Diff(c.want, err.Error()+"\n"); d != "" {
					t.Error(d)
				}
				for _, p := range strictyaml.Problems(err) {
					if !oneLine.MatchString(p.Error()) {
						t.Errorf("%q is not one line with a place", p)
					}
				}
			})
		}
	}
	if count < 55 {
		t.Errorf("%d cases found, want all", count)
	}
}

func TestLoadDirNamesItsFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.ToSlash(t.TempDir())
	files := good(t)
	files["sandbox.yaml"].Data = []byte("tight: 7\n")
	writeFiles(t, dir, files)
	_, err := config.LoadDir(dir)
	if want := dir + "/sandbox.yaml:1: tight: 7; expected fields"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	_, err = config.LoadDir(dir + "/absent")
	if want := dir + "/absent:1: no such file or directory; expected a folder that can be read"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestLoadBoundsFiles(t *testing.T) {
	t.Parallel()
	files := good(t)
	files["agents/coder.md"].Data = make([]byte, 1<<20+1)
	_, err := config.Load(files)
	if want := "agents/coder.md:1: 1048577 bytes; expected at most 1048576"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func writeFiles(t *testing.T, dir string, files fstest.MapFS) {
	t.Helper()
	for name, f := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, f.Data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

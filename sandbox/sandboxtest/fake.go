package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"belay/sandbox"
)

// ErrPass lets the Fake's own shell run a command that Fake.Handle has nothing to say about.
var ErrPass = errors.New("not handled")

// Fake is a sandbox.Runtime without confinement, for tests. Scripts are interpreted in this process: the workspace is a
// real folder and everything else of the file system is not there; besides bash's own commands there are cat, mkdir, rm
// and sleep. It is safe for concurrent use.
type Fake struct {
	// Handle, where set, is asked for every command first; see ErrPass. It says Exit, Signal and Output and leaves the rest.
	// It is called once per execution and may be called concurrently.
	Handle func(sandbox.Command) (sandbox.Result, error)
	// Report is what Probe answers.
	Report sandbox.Report
	// Limit is how many sandboxes may exist at once; zero: any number.
	Limit int

	dir   string
	mu    sync.Mutex
	boxes map[sandbox.ID]*fakeBox

	counting sync.Mutex // apart from mu, under which Destroy waits for commands
	runs     map[sandbox.ID]map[sandbox.ExecID]int
}

var _ sandbox.Runtime = (*Fake)(nil)

// NewFake makes a runtime that keeps its workspaces below dir.
func NewFake(dir string) *Fake {
	return &Fake{
		Report: sandbox.Report{Level: "process", Runtime: "fake"},
		dir:    dir, boxes: map[sandbox.ID]*fakeBox{}, runs: map[sandbox.ID]map[sandbox.ExecID]int{},
	}
}

// Runs counts how often each execution of a sandbox was really started, also after it was destroyed.
func (f *Fake) Runs(id sandbox.ID) map[sandbox.ExecID]int {
	f.counting.Lock()
	defer f.counting.Unlock()
	return maps.Clone(f.runs[id])
}

// Lose makes a sandbox lost, as if its host had died: what runs in it ends unknown, and only Destroy still works.
func (f *Fake) Lose(id sandbox.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.boxes[id]; b != nil {
		b.lose(sandbox.ErrLost)
	}
}

// Probe implements sandbox.Runtime.
func (f *Fake) Probe(context.Context, sandbox.Profile) (sandbox.Report, error) { return f.Report, nil }

// Create implements sandbox.Runtime.
func (f *Fake) Create(_ context.Context, id sandbox.ID, p sandbox.Profile) (sandbox.Sandbox, error) {
	if err := errors.Join(id.Check(), checkProfile(p)); err != nil {
		return nil, fmt.Errorf("create sandbox: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if b, ok := f.boxes[id]; ok {
		return b.found(id)
	}
	if f.Limit > 0 && len(f.boxes) >= f.Limit {
		return nil, fmt.Errorf("create sandbox %s: %d of %d exist: %w", id, len(f.boxes), f.Limit, sandbox.ErrBusy)
	}
	dir := filepath.Join(f.dir, string(id))
	if err := os.MkdirAll(filepath.Join(dir, "workspace"), 0o755); err != nil {
		return nil, fmt.Errorf("create sandbox %s: %w", id, err)
	}
	f.boxes[id] = &fakeBox{
		fake: f, id: id, dir: dir, profile: p, lost: make(chan struct{}), writer: make(chan struct{}, 1),
		executions: map[sandbox.ExecID]*execution{}, sessions: map[string]session{},
	}
	return f.boxes[id], nil
}

func checkProfile(p sandbox.Profile) error {
	for _, u := range p.Unconfined {
		if !slices.Contains([]string{"memory", "pids", "cpu", "seccomp"}, u) {
			return fmt.Errorf("profile %s: unconfined %q: expected memory, pids, cpu or seccomp", p.Name, u)
		}
	}
	return sandbox.CheckEnv("profile "+p.Name+": env", p.Env)
}

// Open implements sandbox.Runtime.
func (f *Fake) Open(_ context.Context, id sandbox.ID) (sandbox.Sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.boxes[id]
	if !ok {
		return nil, fmt.Errorf("open sandbox %s: %w", id, sandbox.ErrNotFound)
	}
	return b.found(id)
}

// List implements sandbox.Runtime.
func (f *Fake) List(context.Context) ([]sandbox.ID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.boxes)), nil
}

// Destroy implements sandbox.Runtime.
func (f *Fake) Destroy(_ context.Context, id sandbox.ID) error {
	if err := id.Check(); err != nil {
		return fmt.Errorf("destroy sandbox: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.boxes[id]
	if !ok {
		return nil
	}
	b.lose(sandbox.ErrNotFound)
	b.running.Wait()
	delete(f.boxes, id)
	if err := os.RemoveAll(b.dir); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", id, err)
	}
	return nil
}

func (f *Fake) count(id sandbox.ID, exec sandbox.ExecID) {
	f.counting.Lock()
	defer f.counting.Unlock()
	if f.runs[id] == nil {
		f.runs[id] = map[sandbox.ExecID]int{}
	}
	f.runs[id][exec]++
}

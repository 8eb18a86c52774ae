package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"belay/agent"
	"belay/sandbox"
	"belay/tool"
)

// bashBox is a sandbox without walls: bash in a folder of the test, which its commands know as /workspace. What the shell
// tool makes of signals, exits and output is about a real bash, which sandboxtest.Fake has not.
type bashBox struct {
	dir   string // the workspace on this host
	state string // where sessions and spools are kept
	// lose, when set, is the error of the next execution.
	lose error

	mu   sync.Mutex
	ran  map[sandbox.ExecID]sandbox.Command
	done map[sandbox.ExecID]sandbox.Result
}

func (b *bashBox) Workspace() (*os.Root, error) { return os.OpenRoot(b.dir) }

func (b *bashBox) Frozen(_ context.Context, f func() error) error { return f() }

func (b *bashBox) Exec(ctx context.Context, id sandbox.ExecID, c sandbox.Command) (sandbox.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lose != nil {
		return sandbox.Result{}, b.lose
	}
	if err := c.Check(); err != nil {
		return sandbox.Result{}, err
	}
	if r, ok := b.done[id]; ok {
		if !reflect.DeepEqual(b.ran[id], c) {
			return sandbox.Result{}, sandbox.ErrConflict
		}
		r.Replayed = true
		return r, nil
	}
	b.ran[id] = c
	r, err := b.run(ctx, id, c)
	if err == nil {
		b.done[id] = r
	}
	return r, err
}

func (b *bashBox) run(ctx context.Context, id sandbox.ExecID, c sandbox.Command) (sandbox.Result, error) {
	session := filepath.Join(b.state, c.Session)
	script := "[ -f " + session + " ] && . " + session + "\n"
	if !c.ReadOnly {
		script += `trap 's=$?; { echo "cd \"$PWD\""; export -p; } >` + session + `; exit $s' EXIT` + "\n"
	}
	script += strings.ReplaceAll(c.Script, sandbox.Workspace, b.dir)
	within, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(within, "bash", "-c", script)
	cmd.Dir, cmd.Env = b.dir, []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && within.Err() == nil {
		return sandbox.Result{}, err
	}
	r := sandbox.Result{Exit: cmd.ProcessState.ExitCode(), Total: int64(out.Len()), Duration: time.Second}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.Signal = int(status.Signal())
		r.Exit = 128 + r.Signal
	}
	r.Stopped, r.TimedOut = ctx.Err() != nil, ctx.Err() == nil && within.Err() != nil
	if state, err := os.ReadFile(session); err == nil {
		line, _, _ := strings.Cut(string(state), "\n")
		r.Dir = strings.Replace(strings.Trim(strings.TrimPrefix(line, "cd "), `"`), b.dir, sandbox.Workspace, 1)
	}
	return r, b.keep(&r, id, out.Bytes(), c.KeepOutput)
}

func (b *bashBox) keep(r *sandbox.Result, id sandbox.ExecID, out []byte, most int) error {
	if len(out) <= most {
		r.Output = out
		return nil
	}
	r.Spool = filepath.Join(b.state, string(id)+".out")
	r.Head, r.Omitted = most/2, int64(len(out)-most/2*2)
	r.Output = append(append([]byte{}, out[:most/2]...), out[len(out)-most/2:]...)
	return os.WriteFile(r.Spool, out, 0o600)
}

// notes is a Memory that can fail at its n-th use, before or after having done it.
type notes struct {
	values      map[string]string
	uses        int
	failAt      int // 0: never
	failedAfter bool
	log         []string
}

var errNotes = errors.New("the store is away")

func (n *notes) use(op, key string, do func()) error {
	n.uses++
	n.log = append(n.log, op+" "+key)
	if n.uses != n.failAt {
		do()
		return nil
	}
	if n.failedAfter {
		do()
	}
	return errNotes
}

func (n *notes) Get(_ context.Context, key string) (value string, found bool, err error) {
	err = n.use("get", key, func() { value, found = n.values[key] })
	return value, found, err
}

func (n *notes) Set(_ context.Context, key, value string) error {
	return n.use("set", key, func() { n.values[key] = value })
}

// bench is what a test of a tool works on.
type bench struct {
	t     *testing.T
	box   *bashBox
	notes *notes
	env   tool.Env
	calls int
}

func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, notes: &notes{values: map[string]string{}}}
	b.box = &bashBox{dir: t.TempDir(), state: t.TempDir(), ran: map[sandbox.ExecID]sandbox.Command{}, done: map[sandbox.ExecID]sandbox.Result{}}
	for name, text := range files {
		b.put(name, text)
	}
	b.env = tool.Env{
		Sandbox: b.box,
		Dir:     sandbox.Workspace,
		Memory:  b.notes,
		Keep: func(_ context.Context, spool string) (agent.Digest, int64, error) {
			data, err := os.ReadFile(spool)
			return agent.Digest(strings.Repeat("ab", 32)), int64(len(data)), err
		},
	}
	return b
}

func (b *bench) at(name string) string { return filepath.Join(b.box.dir, name) }

func (b *bench) put(name, text string) {
	b.t.Helper()
	b.must(os.MkdirAll(filepath.Dir(b.at(name)), 0o755))
	b.must(os.WriteFile(b.at(name), []byte(text), 0o644))
}

func (b *bench) get(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(b.at(name))
	b.must(err)
	return string(data)
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// do checks, plans and runs a call, as the runtime does.
func (b *bench) do(name string, args map[string]any) agent.Observation {
	b.t.Helper()
	b.calls++
	o, err := b.call(fmt.Sprintf("c%d", b.calls), name, args)
	b.must(err)
	return o
}

func (b *bench) call(id, name string, args map[string]any) (agent.Observation, error) {
	b.t.Helper()
	written, err := json.Marshal(args)
	b.must(err)
	set := tool.Default()
	checked, err := set.Check(agent.ToolCall{Tool: name, Arguments: string(written)})
	b.must(err)
	env := b.env
	env.Call, env.Exec = agent.CallID(id), sandbox.ExecID(id)
	found, _ := set.Lookup(name)
	return found.Run(b.t.Context(), env, checked)
}

// expect holds an observation against its status and parts of its text.
func (b *bench) expect(o agent.Observation, status agent.CallStatus, parts ...string) {
	b.t.Helper()
	if o.Status != status {
		b.t.Errorf("status %q; want %q; text:\n%.2000s", o.Status, status, o.Text)
	}
	for _, p := range parts {
		if !strings.Contains(o.Text, p) {
			b.t.Errorf("text lacks %q:\n%.2000s", p, o.Text)
		}
	}
}

type args = map[string]any

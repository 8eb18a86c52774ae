//go:build linux

package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"belay/sandbox"
	"belay/sandbox/process"
	"belay/sandbox/process/wire"
	"belay/sandbox/sandboxtest"
)

// waiting runs until it is told to go on, and says how often it was started.
var waiting = sandboxtest.Command("echo run >> log; until test -e go; do sleep 0.02; done; echo out")

func start(t *testing.T, s sandbox.Sandbox, id sandbox.ExecID, c sandbox.Command) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	before := read(t, s, "log")
	go func() { _, err := s.Exec(t.Context(), id, c); done <- err }()
	until(t, "the command has started", func() bool { return read(t, s, "log") != before })
	return done
}

// Whoever of the two that know dies while a command runs, the command's end is unknown, it never runs again, and the
// sandbox goes on with its files and sessions.
func TestKilledSupervisorOrBox(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{wire.SupervisorFile, "boxes/main.json"} {
		t.Run(filepath.Base(victim), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := runtimeIn(t, dir)
			s := create(t, r, sandbox.Profile{})
			session := func(id sandbox.ExecID, script string) sandbox.Result {
				c := sandboxtest.Command(script)
				c.Session = "s"
				return run(t, s, id, c)
			}
			session("before", "mkdir d; cd d; export A=kept")
			done := start(t, s, "x", waiting)
			first := processIn(t, dir, "boxes/main.json")
			if err := syscall.Kill(processIn(t, dir, victim).PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, sandbox.ErrLost) {
				t.Errorf("the running command: %v; want ErrLost", err)
			}
			if _, err := r.Open(t.Context(), "a"); err != nil {
				t.Errorf("open: %v", err)
			}
			if _, err := s.Exec(t.Context(), "x", waiting); !errors.Is(err, sandbox.ErrLost) {
				t.Errorf("asked again: %v; want ErrLost", err)
			}
			if _, err := s.Exec(t.Context(), "x", sandboxtest.Command("echo")); !errors.Is(err, sandbox.ErrConflict) {
				t.Errorf("asked for another command: %v; want ErrConflict", err)
			}
			if got := session("after", `pwd; echo $A`); string(got.Output) != "/workspace/d\nkept\n" {
				t.Errorf("session after the kill: %+v", got)
			}
			if log := read(t, s, "log"); log != "run\n" || first.Alive() {
				t.Errorf("log %q, old box alive: %v", log, first.Alive())
			}
		})
	}
}

func TestKilledWhileFrozen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := create(t, runtimeIn(t, dir), sandbox.Profile{})
	done := start(t, s, "x", waiting)
	if err := s.Frozen(t.Context(), func() error { return syscall.Kill(processIn(t, dir, wire.SupervisorFile).PID, syscall.SIGKILL) }); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("the running command: %v; want ErrLost", err)
	}
	if got := run(t, s, "y", sandboxtest.Command("echo next")); string(got.Output) != "next\n" {
		t.Errorf("the next command: %+v", got)
	}
}

func TestDestroyAfterSupervisorDied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := runtimeIn(t, dir)
	s := create(t, r, sandbox.Profile{})
	done := make(chan error, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { _, err := s.Exec(ctx, "x", waiting); done <- err }()
	until(t, "the command has started", func() bool { return read(t, s, "log") != "" })
	cancel(sandbox.ErrDetached)
	<-done
	first := processIn(t, dir, "boxes/main.json")
	if err := syscall.Kill(processIn(t, dir, wire.SupervisorFile).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := r.Destroy(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if first.Alive() {
		t.Error("the box outlived its sandbox")
	}
}

// call is a worker that is killed while it waits for a command.
func call(dir string) {
	r, err := process.New(process.Config{StateDir: dir, Guest: guest})
	if err == nil {
		var s sandbox.Sandbox
		if s, err = r.Create(context.Background(), "a", sandbox.Profile{Unconfined: unconfined}); err == nil {
			_, err = s.Exec(context.Background(), "x", waiting)
		}
	}
	fmt.Fprintln(os.Stderr, "the caller was not killed:", err)
	os.Exit(1)
}

func TestKilledWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := runtimeIn(t, dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(self)
	worker.Env = append(os.Environ(), callerVariable+"="+dir, guestVariable+"="+guest)
	worker.Stderr = os.Stderr
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "sandboxes", "a", wire.WorkspaceDir, "log")
	until(t, "the worker's command runs", func() bool { b, err := os.ReadFile(log); return err == nil && len(b) > 0 })
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait() // it was killed
	s := create(t, r, sandbox.Profile{})
	got := make(chan sandbox.Result, 1)
	go func() { got <- run(t, s, "x", waiting) }()
	run(t, s, "go", sandbox.Command{Script: "cat log", ReadOnly: true, Timeout: waiting.Timeout})
	root, err := s.Workspace()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile("go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := <-got; !r.Attached || r.Exit != 0 || string(r.Output) != "out\n" {
		t.Errorf("the next worker: %+v; want it attached", r)
	}
	if r := run(t, s, "x", waiting); !r.Replayed || string(r.Output) != "out\n" {
		t.Errorf("and again: %+v; want it replayed", r)
	}
	if b := read(t, s, "log"); b != "run\n" {
		t.Errorf("the command ran %d times", strings.Count(b, "run"))
	}
}

// A supervisor may die between any two steps of the journal.
func TestJournalSteps(t *testing.T) {
	t.Parallel()
	c := sandboxtest.Command("echo run >> log")
	claim, err := json.Marshal(map[string]any{"digest": c.Digest()})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		files map[string]string
		lost  bool
	}{
		"before the claim":        {map[string]string{}, false},
		"while writing the claim": {map[string]string{"claim.json.new": `{"dig`}, false},
		"after the claim":         {map[string]string{"claim.json": string(claim)}, true},
		"while writing the end":   {map[string]string{"claim.json": string(claim), "result.json.new": `{"exit"`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := create(t, runtimeIn(t, dir), sandbox.Profile{})
			p := processIn(t, dir, wire.SupervisorFile)
			if err := p.Kill(30e9); err != nil {
				t.Fatal(err)
			}
			folder := filepath.Join(dir, "sandboxes", "a", wire.ExecDir("x"))
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			for file, content := range test.files {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.Exec(t.Context(), "x", c)
			if errors.Is(err, sandbox.ErrLost) != test.lost || (err == nil) == test.lost {
				t.Errorf("error %v; want lost: %v", err, test.lost)
			}
			if ran := read(t, s, "log") != ""; ran == test.lost {
				t.Errorf("ran: %v", ran)
			}
		})
	}
}

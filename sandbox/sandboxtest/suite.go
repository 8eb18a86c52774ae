package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"belay/sandbox"
)

// Test runs the conformance suite. newRuntime makes a runtime without sandboxes, which takes at least four, and registers
// with t what removes it. Its scripts keep to bash and cat, mkdir, rm, sleep.
func Test(t *testing.T, newRuntime func(t *testing.T) sandbox.Runtime) {
	for name, test := range map[string]func(*testing.T, sandbox.Runtime){
		"lifecycle":           testLifecycle,
		"command":             testCommand,
		"bad input":           testBadInput,
		"replay":              testReplay,
		"attach":              testAttach,
		"detach":              testDetach,
		"conflict":            testConflict,
		"timeout":             testTimeout,
		"cancel":              testCancel,
		"cancel before start": testCancelBeforeStart,
		"cancel while queued": testCancelQueued,
		"output":              testOutput,
		"session":             testSession,
		"session kept whole":  testSessionKept,
		"workspace":           testWorkspace,
		"one at a time":       testOneAtATime,
		"read only":           testReadOnly,
		"frozen":              testFrozen,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newRuntime(t))
		})
	}
}

// Command is a script with a timeout that a passing test never reaches.
func Command(script string) sandbox.Command {
	return sandbox.Command{Script: script, Timeout: time.Minute}
}

func create(t *testing.T, r sandbox.Runtime, id sandbox.ID) sandbox.Sandbox {
	t.Helper()
	// The suite is about behaviour; what this host can't limit is for the implementation's own tests.
	s, err := r.Create(t.Context(), id, sandbox.Profile{Name: "test", Unconfined: []string{"memory", "pids", "cpu", "seccomp"}})
	if err != nil {
		t.Fatalf("create %s: %v", id, err)
	}
	t.Cleanup(func() {
		if err := r.Destroy(context.WithoutCancel(t.Context()), id); err != nil {
			t.Errorf("destroy %s: %v", id, err)
		}
	})
	return s
}

func run(t *testing.T, s sandbox.Sandbox, id sandbox.ExecID, c sandbox.Command) sandbox.Result {
	t.Helper()
	r, err := s.Exec(t.Context(), id, c)
	if err != nil {
		t.Fatalf("exec %s: %v", id, err)
	}
	return r
}

// want compares a result but for its duration.
func want(t *testing.T, got, want sandbox.Result) {
	t.Helper()
	if want.Total == 0 {
		want.Total = int64(len(want.Output))
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(sandbox.Result{}, "Duration"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func read(t *testing.T, s sandbox.Sandbox, name string) string {
	t.Helper()
	root, err := s.Workspace()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	b, err := root.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

// started waits until a command has written to a file, which is how a test knows that it runs.
func started(t *testing.T, s sandbox.Sandbox, file string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); read(t, s, file) == ""; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("the command did not write to %s within 30s", file)
		}
	}
}

func testLifecycle(t *testing.T, r sandbox.Runtime) {
	ctx := t.Context()
	if ids, err := r.List(ctx); err != nil || len(ids) != 0 {
		t.Fatalf("list of a new runtime: %v, %v", ids, err)
	}
	if _, err := r.Open(ctx, "a"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("open of an absent sandbox: %v; want ErrNotFound", err)
	}
	if err := r.Destroy(ctx, "a"); err != nil {
		t.Errorf("destroy of an absent sandbox: %v", err)
	}
	run(t, create(t, r, "a"), "1", Command("echo kept > file"))
	again, err := r.Create(ctx, "a", sandbox.Profile{Name: "another"})
	if err != nil {
		t.Fatalf("create again: %v", err)
	}
	if got := read(t, again, "file"); got != "kept\n" {
		t.Errorf("file after a second create: %q", got)
	}
	opened, err := r.Open(ctx, "a")
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	want(t, run(t, opened, "2", Command("cat file")), sandbox.Result{Output: []byte("kept\n")})
	create(t, r, "b")
	ids, err := r.List(ctx)
	if diff := cmp.Diff([]sandbox.ID{"a", "b"}, ids, cmpopts.SortSlices(func(a, b sandbox.ID) bool { return a < b })); diff != "" || err != nil {
		t.Errorf("list (-want +got), %v:\n%s", err, diff)
	}
	for range 2 {
		if err := r.Destroy(ctx, "a"); err != nil {
			t.Errorf("destroy: %v", err)
		}
	}
	if _, err := opened.Exec(ctx, "3", Command("echo")); err == nil {
		t.Error("exec in a destroyed sandbox succeeded")
	}
	if _, err := r.Open(ctx, "a"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("open of a destroyed sandbox: %v; want ErrNotFound", err)
	}
	if got := read(t, create(t, r, "a"), "file"); got != "" {
		t.Errorf("a new sandbox of an old id has an old file: %q", got)
	}
}

func testCommand(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	for i, test := range []struct {
		command sandbox.Command
		want    sandbox.Result
	}{
		{sandbox.Command{Script: "echo out; echo err >&2; echo out"}, sandbox.Result{Output: []byte("out\nerr\nout\n")}},
		{sandbox.Command{Script: "exit 7"}, sandbox.Result{Exit: 7}},
		{sandbox.Command{Script: "pwd; mkdir -p sub"}, sandbox.Result{Output: []byte("/workspace\n")}},
		{sandbox.Command{Script: "pwd", Dir: "/workspace/sub"}, sandbox.Result{Output: []byte("/workspace/sub\n")}},
		{sandbox.Command{Argv: []string{"echo", "$A  b", ";"}}, sandbox.Result{Output: []byte("$A  b ;\n")}},
		{sandbox.Command{Script: `echo "$A-$B-$HOME"`, Env: map[string]string{"A": "x y"}}, sandbox.Result{Output: []byte("x y--/home/agent\n")}},
		{sandbox.Command{Script: "cat"}, sandbox.Result{}},
	} {
		test.command.Timeout = time.Minute
		want(t, run(t, s, sandbox.ExecID(fmt.Sprint(i)), test.command), test.want)
	}
	if got := run(t, s, "absent", sandbox.Command{Argv: []string{"no-such-program"}, Timeout: time.Minute}); got.Exit != 127 || len(got.Output) == 0 {
		t.Errorf("a program that does not exist: %+v; want exit 127 and a reason", got)
	}
	if got := run(t, s, "nowhere", sandbox.Command{Script: "echo", Dir: "/no/such", Timeout: time.Minute}); got.Exit != 126 || len(got.Output) == 0 {
		t.Errorf("a folder that does not exist: %+v; want exit 126 and a reason", got)
	}
}

func testBadInput(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	long := strings.Repeat("x", sandbox.MaxArgument+1)
	for name, test := range map[string]struct {
		id sandbox.ExecID
		c  sandbox.Command
	}{
		"execution id":           {"a/b", Command("echo")},
		"execution id %.140q":    {"", Command("echo")},
		"exactly one":            {"1", sandbox.Command{Timeout: time.Second}},
		"script and argv":        {"1", sandbox.Command{Script: "echo", Argv: []string{"echo"}, Timeout: time.Second}},
		"command.timeout":        {"1", sandbox.Command{Script: "echo"}},
		"command.grace":          {"1", sandbox.Command{Script: "echo", Timeout: 1, Grace: -1}},
		"command.dir":            {"1", sandbox.Command{Script: "echo", Timeout: 1, Dir: "sub"}},
		"command.env \"1A\"":     {"1", sandbox.Command{Script: "echo", Timeout: 1, Env: map[string]string{"1A": ""}}},
		"command.env A":          {"1", sandbox.Command{Script: "echo", Timeout: 1, Env: map[string]string{"A": long}}},
		"command: argument":      {"1", sandbox.Command{Script: long, Timeout: 1}},
		"zero byte":              {"1", sandbox.Command{Script: "echo \x00", Timeout: 1}},
		"command.session":        {"1", sandbox.Command{Script: "echo", Timeout: 1, Session: "../x"}},
		"only a script can have": {"1", sandbox.Command{Argv: []string{"echo"}, Timeout: 1, Session: "s"}},
		"command.keep_output":    {"1", sandbox.Command{Script: "echo", Timeout: 1, KeepOutput: -1}},
		"command.max_output":     {"1", sandbox.Command{Script: "echo", Timeout: 1, MaxOutput: -1}},
	} {
		_, err := s.Exec(t.Context(), test.id, test.c)
		place, _, _ := strings.Cut(name, " %")
		if err == nil || !strings.Contains(err.Error(), place) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: error %v; want one line that names %s", test.id, err, place)
		}
	}
	for _, id := range []sandbox.ID{"", "A", "a/b", "..", sandbox.ID(strings.Repeat("a", 65))} {
		if _, err := r.Create(t.Context(), id, sandbox.Profile{}); err == nil {
			t.Errorf("create %q succeeded", id)
		}
		if err := r.Destroy(t.Context(), id); err == nil {
			t.Errorf("destroy %q succeeded", id)
		}
	}
	if _, err := r.Create(t.Context(), "b", sandbox.Profile{Unconfined: []string{"network"}}); err == nil || !strings.Contains(err.Error(), "unconfined") {
		t.Errorf("unknown name in unconfined: %v", err)
	}
}

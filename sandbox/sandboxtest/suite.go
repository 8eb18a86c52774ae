package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
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

func testReplay(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	c := Command("echo run >> log; echo out; exit 3")
	first := run(t, s, "x", c)
	c.Timeout = time.Hour // how long it may take is not part of what it is
	second := run(t, s, "x", c)
	want(t, first, sandbox.Result{Exit: 3, Output: []byte("out\n")})
	want(t, second, sandbox.Result{Exit: 3, Output: []byte("out\n"), Replayed: true})
	if first.Duration != second.Duration {
		t.Errorf("durations %v and %v of one run", first.Duration, second.Duration)
	}
	if got := read(t, s, "log"); got != "run\n" {
		t.Errorf("the command ran %d times", strings.Count(got, "run"))
	}
}

func testAttach(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	c := Command("echo run >> log; until test -e go; do sleep 0.02; done; echo out")
	results := make([]sandbox.Result, 3)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i] = run(t, s, "x", c) })
	}
	started(t, s, "log")
	run(t, s, "other", sandbox.Command{Script: "test -e log", Timeout: time.Minute, ReadOnly: true})
	write(t, s, "go", "")
	wg.Wait()
	attached := 0
	for _, got := range results {
		if got.Attached {
			attached++
		}
		got.Attached = false
		want(t, got, sandbox.Result{Output: []byte("out\n")})
	}
	if log := read(t, s, "log"); attached != 2 || log != "run\n" {
		t.Errorf("%d of 3 attached; log %q", attached, log)
	}
}

func write(t *testing.T, s sandbox.Sandbox, name, content string) {
	t.Helper()
	root, err := s.Workspace()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func testDetach(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	c := Command("echo run >> log; until test -e go; do sleep 0.02; done; echo out")
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := make(chan error, 1)
	go func() { _, err := s.Exec(ctx, "x", c); gone <- err }()
	started(t, s, "log")
	cancel(sandbox.ErrDetached)
	if err := <-gone; !errors.Is(err, sandbox.ErrDetached) {
		t.Errorf("detached exec: %v; want ErrDetached", err)
	}
	if _, err := s.Exec(ctx, "y", c); !errors.Is(err, sandbox.ErrDetached) {
		t.Errorf("exec with a detached context: %v; want ErrDetached", err)
	}
	again := make(chan sandbox.Result, 1)
	go func() { again <- run(t, s, "x", c) }()
	write(t, s, "go", "")
	got := <-again
	if !got.Attached && !got.Replayed {
		t.Errorf("after a detach: %+v; want attached or replayed", got)
	}
	if log := read(t, s, "log"); log != "run\n" || string(got.Output) != "out\n" {
		t.Errorf("output %q, log %q", got.Output, log)
	}
}

func testConflict(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	run(t, s, "x", Command("echo one"))
	if _, err := s.Exec(t.Context(), "x", Command("echo two > file")); !errors.Is(err, sandbox.ErrConflict) {
		t.Errorf("an id used for another command: %v; want ErrConflict", err)
	}
	done := make(chan sandbox.Result, 1)
	go func() { done <- run(t, s, "y", Command("echo run > log; until test -e go; do sleep 0.02; done")) }()
	started(t, s, "log")
	if _, err := s.Exec(t.Context(), "y", Command("echo two > file")); !errors.Is(err, sandbox.ErrConflict) {
		t.Errorf("an id in use for another command: %v; want ErrConflict", err)
	}
	write(t, s, "go", "")
	<-done
	if got := read(t, s, "file"); got != "" {
		t.Errorf("the conflicting command ran: %q", got)
	}
}

func testTimeout(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	got := run(t, s, "x", sandbox.Command{Script: "echo start; sleep 600; echo end", Timeout: 200 * time.Millisecond})
	if !got.TimedOut || got.Stopped || got.Exit == 0 || string(got.Output) != "start\n" || got.Duration > 30*time.Second {
		t.Errorf("timeout: %+v", got)
	}
	want(t, run(t, s, "y", Command("echo next")), sandbox.Result{Output: []byte("next\n")})
}

func testCancel(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := Command("echo run >> log; sleep 600")
	done := make(chan sandbox.Result, 1)
	go func() {
		got, err := s.Exec(ctx, "x", c)
		if err != nil {
			t.Errorf("cancelled exec: %v", err)
		}
		done <- got
	}()
	started(t, s, "log")
	cancel()
	if got := <-done; !got.Stopped || got.TimedOut || got.Exit == 0 {
		t.Errorf("cancelled: %+v", got)
	}
	if got := run(t, s, "x", c); !got.Stopped || !got.Replayed {
		t.Errorf("asked again after a cancellation: %+v; want it stopped and replayed", got)
	}
	if log := read(t, s, "log"); log != "run\n" {
		t.Errorf("log %q", log)
	}
}

func testCancelBeforeStart(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := Command("echo run >> log")
	if got, err := s.Exec(ctx, "x", c); err != nil || !got.Stopped {
		t.Errorf("exec with a cancelled context: %+v, %v; want it stopped", got, err)
	}
	if got := run(t, s, "x", c); !got.Stopped {
		t.Errorf("asked again: %+v; want it stopped", got)
	}
	if log := read(t, s, "log"); log != "" {
		t.Errorf("it ran: %q", log)
	}
}

func testCancelQueued(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	first := make(chan sandbox.Result, 1)
	go func() {
		first <- run(t, s, "first", Command("echo run > first; until test -e go; do sleep 0.02; done"))
	}()
	started(t, s, "first")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := s.Exec(ctx, "second", Command("echo run > second")); err != nil || !got.Stopped {
		t.Errorf("cancelled behind another: %+v, %v; want it stopped", got, err)
	}
	write(t, s, "go", "")
	<-first
	run(t, s, "third", Command("echo"))
	if got := read(t, s, "second"); got != "" {
		t.Error("the cancelled command ran")
	}
}

func testOutput(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	const script = `i=0; while [ $i -lt 1000 ]; do echo "line $i"; i=$((i+1)); done`
	var all bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&all, "line %d\n", i)
	}
	whole, total := all.Bytes(), int64(all.Len())
	exact := run(t, s, "exact", sandbox.Command{Script: script, Timeout: time.Minute, KeepOutput: all.Len()})
	want(t, exact, sandbox.Result{Output: whole})

	cut := run(t, s, "cut", sandbox.Command{Script: script, Timeout: time.Minute, KeepOutput: 101})
	spool, err := os.ReadFile(cut.Spool)
	if err != nil || !bytes.Equal(spool, whole) {
		t.Errorf("spool: %d bytes, %v; want all %d", len(spool), err, total)
	}
	cut.Spool = ""
	want(t, cut, sandbox.Result{
		Output: append(bytes.Clone(whole[:50]), whole[total-51:]...), Head: 50, Omitted: total - 101, Total: total,
	})
	capped := run(t, s, "capped", sandbox.Command{Script: script, Timeout: time.Minute, KeepOutput: 10, MaxOutput: 100})
	if spool, err = os.ReadFile(capped.Spool); err != nil || !bytes.Equal(spool, whole[:100]) || capped.Total != total {
		t.Errorf("capped spool: %d bytes, %v, total %d; want the first 100 of %d", len(spool), err, capped.Total, total)
	}
}

func testSession(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	n := 0
	in := func(session, script string) sandbox.Result {
		n++
		return run(t, s, sandbox.ExecID(fmt.Sprintf("%d", n)), sandbox.Command{Script: script, Session: session, Timeout: time.Minute})
	}
	want(t, in("s", "mkdir -p d; cd d; export A='1  \"2\"' ; B=3; exit 4"), sandbox.Result{Exit: 4, Dir: "/workspace/d"})
	want(t, in("s", `pwd; echo "$A-$B"`), sandbox.Result{Output: []byte("/workspace/d\n1  \"2\"-\n"), Dir: "/workspace/d"})
	want(t, in("other", `pwd; echo "$A"`), sandbox.Result{Output: []byte("/workspace\n\n"), Dir: "/workspace"})
	want(t, in("", `pwd; echo "$A"`), sandbox.Result{Output: []byte("/workspace\n\n")})
	want(t, in("s", `export A=5; false`), sandbox.Result{Exit: 1, Dir: "/workspace/d"})
	got := run(t, s, "dir", sandbox.Command{Script: `pwd; echo "$A"`, Session: "s", Dir: "/workspace", Timeout: time.Minute})
	want(t, got, sandbox.Result{Output: []byte("/workspace\n5\n"), Dir: "/workspace"})
}

func testSessionKept(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	run(t, s, "1", sandbox.Command{Script: "mkdir -p d; cd d; export A=1", Session: "s", Timeout: time.Minute})
	// Neither a command that is ended nor one that only reads leaves a state.
	run(t, s, "2", sandbox.Command{Script: "cd ..; export A=2; sleep 600", Session: "s", Timeout: 200 * time.Millisecond})
	got := run(t, s, "3", sandbox.Command{Script: "pwd; export A=3; cd ..", Session: "s", ReadOnly: true, Timeout: time.Minute})
	want(t, got, sandbox.Result{Output: []byte("/workspace/d\n"), Dir: "/workspace"})
	got = run(t, s, "4", sandbox.Command{Script: `pwd; echo "$A"`, Session: "s", Timeout: time.Minute})
	want(t, got, sandbox.Result{Output: []byte("/workspace/d\n1\n"), Dir: "/workspace/d"})
}

func testWorkspace(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	root, err := s.Workspace()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(root.Mkdir("in", 0o755), root.WriteFile("in/file", []byte("host\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	// What was written from outside is the command's to read, change and add to.
	want(t, run(t, s, "1", Command("cat in/file; echo more >> in/file; echo new > in/new; mkdir in/deep; echo x > in/deep/x")), sandbox.Result{Output: []byte("host\n")})
	if got := read(t, s, "in/file") + read(t, s, "in/new") + read(t, s, "in/deep/x"); got != "host\nmore\nnew\nx\n" {
		t.Errorf("from outside: %q", got)
	}
	if err := root.WriteFile("in/new", []byte("changed\n"), 0o644); err != nil {
		t.Errorf("change a command's file from outside: %v", err)
	}
	if _, err := root.ReadFile("../profile.json"); err == nil {
		t.Error("the workspace root leads out of the workspace")
	}
}

func testOneAtATime(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	const script = "if test -e busy; then echo overlap >> log; fi; echo x > busy; sleep 0.05; rm busy; echo ran >> log"
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { run(t, s, sandbox.ExecID(fmt.Sprint(i)), Command(script)) })
	}
	wg.Wait()
	if got := read(t, s, "log"); got != strings.Repeat("ran\n", 4) {
		t.Errorf("log %q", got)
	}
}

func testReadOnly(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	write(t, s, "file", "content\n")
	got := run(t, s, "write", sandbox.Command{Script: "echo x > new || exit 9", ReadOnly: true, Timeout: time.Minute})
	if got.Exit == 0 || read(t, s, "new") != "" {
		t.Errorf("a read-only command wrote: %+v", got)
	}
	// Four commands that each wait for all four to have begun can only end if they run at the same time, beside one that
	// writes: it alone can tell them to go on.
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			got := run(t, s, sandbox.ExecID(fmt.Sprint(i)), sandbox.Command{
				Script: "cat file; until test -e go; do sleep 0.02; done", ReadOnly: true, Timeout: time.Minute,
			})
			want(t, got, sandbox.Result{Output: []byte("content\n")})
		})
	}
	run(t, s, "go", Command("sleep 0.2; echo > go"))
	wg.Wait()
}

func testFrozen(t *testing.T, r sandbox.Runtime) {
	s := create(t, r, "a")
	called := false
	if err := s.Frozen(t.Context(), func() error { called = true; return nil }); err != nil || !called {
		t.Errorf("frozen while idle: called %v, %v", called, err)
	}
	oops := errors.New("oops")
	if err := s.Frozen(t.Context(), func() error { return oops }); !errors.Is(err, oops) {
		t.Errorf("the function's error: %v; want %v", err, oops)
	}
	done := make(chan sandbox.Result, 1)
	go func() {
		done <- run(t, s, "x", Command("until test -e go; do echo x >> log; sleep 0.001; done"))
	}()
	started(t, s, "log")
	err := s.Frozen(t.Context(), func() error {
		before := read(t, s, "log")
		timer := time.NewTimer(100 * time.Millisecond) // in which an unfrozen command writes some hundred times
		<-timer.C
		if after := read(t, s, "log"); before != after {
			t.Errorf("it ran while frozen: %d bytes, then %d", len(before), len(after))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	write(t, s, "go", "")
	want(t, <-done, sandbox.Result{})
}

package sandboxtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"belay/sandbox"
)

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
	env := sandbox.Command{Script: `echo "$A-$C"`, Session: "s", Env: map[string]string{"A": "6 ' \"", "C": "7"}, Timeout: time.Minute}
	want(t, run(t, s, "env", env), sandbox.Result{Output: []byte("6 ' \"-7\n"), Dir: "/workspace/d"})
	want(t, in("s", `echo "$A-$C"; unset C; export A=5`), sandbox.Result{Output: []byte("6 ' \"-7\n"), Dir: "/workspace/d"})
	want(t, in("s", `echo "$A-${C-none}"; trap 'echo own trap' EXIT; export D=8`), sandbox.Result{Output: []byte("5-none\nown trap\n"), Dir: "/workspace/d"})
	want(t, in("s", `echo "$D"; set -e; false; echo not reached`), sandbox.Result{Exit: 1, Output: []byte("8\n"), Dir: "/workspace/d"})
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

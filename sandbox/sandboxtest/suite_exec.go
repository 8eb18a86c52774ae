package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"belay/sandbox"
)

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

package sandboxtest_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/sandbox"
	"belay/sandbox/sandboxtest"
)

func TestFake(t *testing.T) {
	t.Parallel()
	sandboxtest.Test(t, func(t *testing.T) sandbox.Runtime { return sandboxtest.NewFake(t.TempDir()) })
}

func TestFakeCountsRuns(t *testing.T) {
	t.Parallel()
	f := sandboxtest.NewFake(t.TempDir())
	s, err := f.Create(t.Context(), "a", sandbox.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, id := range []sandbox.ExecID{"x", "y"} {
			if _, err := s.Exec(t.Context(), id, sandboxtest.Command("echo")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Destroy(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[sandbox.ExecID]int{"x": 1, "y": 1}, f.Runs("a")); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestFakeHandle(t *testing.T) {
	t.Parallel()
	f := sandboxtest.NewFake(t.TempDir())
	f.Handle = func(c sandbox.Command) (sandbox.Result, error) {
		if c.Script != "go test ./..." {
			return sandbox.Result{}, sandboxtest.ErrPass
		}
		return sandbox.Result{Exit: 1, Output: []byte("FAIL\n")}, nil
	}
	s, err := f.Create(t.Context(), "a", sandbox.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{"go test ./...": "FAIL\n", "echo own shell": "own shell\n"} {
		r, err := s.Exec(t.Context(), sandbox.ExecID(script[:2]), sandboxtest.Command(script))
		if err != nil || string(r.Output) != want {
			t.Errorf("%s: %q, %v; want %q", script, r.Output, err, want)
		}
	}
}

func TestFakeLose(t *testing.T) {
	t.Parallel()
	f := sandboxtest.NewFake(t.TempDir())
	f.Limit = 1
	s, err := f.Create(t.Context(), "a", sandbox.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(t.Context(), "b", sandbox.Profile{}); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("one more than the limit: %v; want ErrBusy", err)
	}
	running := make(chan error, 1)
	go func() {
		_, err := s.Exec(t.Context(), "x", sandboxtest.Command("sleep 600"))
		running <- err
	}()
	f.Lose("a")
	if err := <-running; !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("a running command: %v; want ErrLost", err)
	}
	if _, err := f.Open(t.Context(), "a"); !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("open: %v; want ErrLost", err)
	}
	if err := f.Destroy(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if _, err := f.Create(t.Context(), "a", sandbox.Profile{}); err != nil {
		t.Errorf("create after destroy: %v", err)
	}
}

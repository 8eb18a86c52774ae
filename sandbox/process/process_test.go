//go:build linux

package process_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"belay/sandbox"
	"belay/sandbox/process"
	"belay/sandbox/process/wire"
	"belay/sandbox/sandboxtest"
)

// The test binary has other roles than testing, chosen by these variables.
const (
	guestVariable  = "BELAY_TEST_GUEST"  // the guest is already built: we are a child of a test
	callerVariable = "BELAY_TEST_CALLER" // be a worker that runs a command in that state folder, and gets killed
	escapeVariable = "BELAY_TEST_ESCAPE" // be the hostile program in a sandbox
)

var (
	guest      string // the program that the tests build once
	unprobed   error  // why sandboxes can't be made on this host
	unconfined = []string{"memory", "pids", "cpu"}
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(escapeVariable) != "":
		escape(os.Getenv(escapeVariable))
		return
	case os.Getenv(callerVariable) != "":
		guest = os.Getenv(guestVariable)
		call(os.Getenv(callerVariable))
		return
	}
	dir, err := os.MkdirTemp("", "belay-guest-")
	if err == nil {
		err = build(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func build(dir string) error {
	if guest = os.Getenv(guestVariable); guest == "" {
		guest = filepath.Join(dir, "belay-sandbox")
		cmd := exec.Command("go", "build", "-o", guest, "./guest")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	r, err := process.New(process.Config{StateDir: filepath.Join(dir, "probe"), Guest: guest})
	if err != nil {
		return err
	}
	_, unprobed = r.Probe(context.Background(), sandbox.Profile{Unconfined: unconfined})
	return nil
}

func newRuntime(t *testing.T) *process.Runtime {
	t.Helper()
	return runtimeIn(t, t.TempDir())
}

func runtimeIn(t *testing.T, dir string) *process.Runtime {
	t.Helper()
	probed(t)
	r, err := process.New(process.Config{StateDir: dir, Guest: guest, MaxSandboxes: 8})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// probed skips where the host can't do it. A sandbox that can be made and does not hold is no reason to skip.
func probed(t *testing.T) {
	t.Helper()
	if errors.Is(unprobed, sandbox.ErrUnsupported) {
		t.Skipf("NO SANDBOX IS TESTED: %v", unprobed)
	}
	if unprobed != nil {
		t.Fatal(unprobed)
	}
}

// limited skips where the host gives us no control groups.
func limited(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("LIMITS ARE NOT TESTED: they need a control group, which needs root here")
	}
}

func create(t *testing.T, r sandbox.Runtime, p sandbox.Profile) sandbox.Sandbox {
	t.Helper()
	if os.Geteuid() != 0 {
		p.Unconfined = unconfined
	}
	s, err := r.Create(t.Context(), "a", p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Destroy(context.WithoutCancel(t.Context()), "a"); err != nil {
			t.Error(err)
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

// until waits for something to become true, which a passing test always sees soon.
func until(t *testing.T, what string, true func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !true(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30s: %s", what)
		}
	}
}

// processIn reads a process that a sandbox's folder names.
func processIn(t *testing.T, dir, file string) wire.Process {
	t.Helper()
	var p wire.Process
	if err := wire.ReadFile(filepath.Join(dir, "sandboxes", "a", file), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sandboxtest.Test(t, func(t *testing.T) sandbox.Runtime { return newRuntime(t) })
}

// Everything that is tested here is tested once more as an unprivileged user.
func TestUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("already unprivileged")
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const nobody = 65534
	tmp := filepath.Join(dir, "tmp")
	if err := errors.Join(os.Mkdir(tmp, 0o700), os.Chown(tmp, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{self: "test", guest: "guest"} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "test"), "-test.v", "-test.timeout=5m")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp, guestVariable + "=" + filepath.Join(dir, "guest")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestConformance/attach") {
		t.Errorf("as user %d the suite did not run:\n%s", nobody, out)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := runtimeIn(t, dir)
	report, err := r.Probe(t.Context(), sandbox.Profile{Unconfined: unconfined, Env: map[string]string{"CI": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Level != "process" || !strings.Contains(report.Runtime, "bubblewrap") || len(report.Missing) != len(report.Warnings) {
		t.Errorf("report %+v", report)
	}
	if ids, err := r.List(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("probing left %v, %v", ids, err)
	}
}

func TestProbeNamesTheRemedy(t *testing.T) {
	t.Parallel()
	r, err := process.New(process.Config{StateDir: t.TempDir(), Guest: guest, Bwrap: "/no/such/bwrap"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Probe(t.Context(), sandbox.Profile{})
	if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), "install bubblewrap") {
		t.Errorf("without bubblewrap: %v; want ErrUnsupported that says to install it", err)
	}
}

// What can't be limited is refused unless the profile allows it by name.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	if os.Geteuid() == 0 {
		t.Skip("root can limit everything here; the unprivileged run tests this")
	}
	_, err := r.Create(t.Context(), "a", sandbox.Profile{Unconfined: []string{"cpu", "pids"}})
	if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), "memory") {
		t.Errorf("no memory limit: %v; want ErrUnsupported that names memory", err)
	}
	if ids, err := r.List(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("a refused sandbox left %v, %v", ids, err)
	}
	report, err := r.Probe(t.Context(), sandbox.Profile{Unconfined: unconfined})
	if err != nil || len(report.Missing) == 0 || !strings.Contains(strings.Join(report.Warnings, "\n"), "memory") {
		t.Errorf("report %+v, %v; want a warning about memory", report, err)
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	r, err := process.New(process.Config{StateDir: t.TempDir(), Guest: guest, MaxSandboxes: 1})
	if err != nil {
		t.Fatal(err)
	}
	probed(t)
	create(t, r, sandbox.Profile{})
	if _, err := r.Create(t.Context(), "b", sandbox.Profile{}); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("one more than the limit: %v; want ErrBusy", err)
	}
	create(t, r, sandbox.Profile{}) // an existing one is found also at the limit
}

// A unix socket's path has 108 bytes; a state folder may have more.
func TestDeepStateDir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("d/", 20), strings.Repeat("long-name-", 20))
	s := create(t, runtimeIn(t, dir), sandbox.Profile{})
	if got := run(t, s, "x", sandboxtest.Command("echo deep")); string(got.Output) != "deep\n" {
		t.Errorf("%+v", got)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]process.Config{
		"state folder": {},
		"at most -1":   {StateDir: t.TempDir(), MaxSandboxes: -1, Guest: guest},
	} {
		if _, err := process.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want an error that names %s", c, err, want)
		}
	}
	_, err := process.New(process.Config{StateDir: t.TempDir()})
	if _, missing := os.Stat("guest/belay-sandbox"); os.IsNotExist(missing) && os.Getenv(guestVariable) == "" && (err == nil || !strings.Contains(err.Error(), "make build")) {
		t.Errorf("without the built-in program: %v; want an error that says make build", err)
	}
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

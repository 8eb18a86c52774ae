//go:build linux

package docker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"belay/sandbox"
	"belay/sandbox/docker"
	"belay/sandbox/sandboxtest"
)

// What deploy/dev/docker-test tells of the daemon that it has started.
const (
	hostVariable    = "BELAY_TEST_DOCKER"
	imageVariable   = "BELAY_TEST_DOCKER_IMAGE"
	runtimeVariable = "BELAY_TEST_DOCKER_RUNTIME" // of another daemon, to try one that the script can't install
)

var guest, launcher string // the programs that the tests build once

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "belay-container-")
	if err == nil {
		guest, launcher = filepath.Join(dir, "belay-sandbox"), filepath.Join(dir, "belay-container")
		err = errors.Join(build("../process/guest", guest), build("./launch", launcher))
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

func build(pkg, to string) error {
	cmd := exec.Command("go", "build", "-o", to, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// config is that of a runtime of the test's own, on the daemon of deploy/dev/docker-test.
func config(t *testing.T) docker.Config {
	t.Helper()
	host := os.Getenv(hostVariable)
	if host == "" {
		t.Skipf("NO DOCKER SANDBOX IS TESTED: %s is not set; `make test` starts a daemon where it is root and has apt-get, or run deploy/dev/docker-test go test ./sandbox/docker", hostVariable)
	}
	return docker.Config{
		Host: host, Image: os.Getenv(imageVariable), Runtime: os.Getenv(runtimeVariable), StateDir: t.TempDir(), MaxSandboxes: 8, Guest: guest, Launcher: launcher,
	}
}

func newRuntime(t *testing.T, c docker.Config) *docker.Runtime {
	t.Helper()
	r, err := docker.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func create(t *testing.T, r sandbox.Runtime, p sandbox.Profile) sandbox.Sandbox {
	t.Helper()
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

func run(t *testing.T, s sandbox.Sandbox, id sandbox.ExecID, script string) sandbox.Result {
	t.Helper()
	r, err := s.Exec(t.Context(), id, sandboxtest.Command(script))
	if err != nil {
		t.Fatalf("exec %s: %v", id, err)
	}
	return r
}

func TestConformance(t *testing.T) {
	sandboxtest.Test(t, func(t *testing.T) sandbox.Runtime { return newRuntime(t, config(t)) })
}

func TestProbe(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, config(t))
	report, err := r.Probe(t.Context(), sandbox.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Level != r.Level() || !strings.HasPrefix(report.Runtime, "Docker ") || len(report.Missing) != 0 {
		t.Errorf("report %+v", report)
	}
	if ids, err := r.List(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("after a probe: %v, %v", ids, err)
	}
}

// What the host can't give is ErrUnsupported, with what to do about it, and no weaker sandbox.
func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*docker.Config)
		want   string
	}{
		"no daemon":  {func(c *docker.Config) { c.Host = "unix://" + filepath.Join(c.StateDir, "none.sock") }, "apt-get install docker.io"},
		"no image":   {func(c *docker.Config) { c.Image = "belay.invalid/none:1" }, "docker pull belay.invalid/none:1"},
		"no gvisor":  {func(c *docker.Config) { c.Runtime = "runsc" }, "install gVisor"},
		"no microvm": {func(c *docker.Config) { c.Runtime = "kata" }, "install Kata Containers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config(t)
			if c.Runtime != "" {
				t.Skip("this is about a daemon that has runc only")
			}
			test.change(&c)
			r := newRuntime(t, c)
			_, probed := r.Probe(t.Context(), sandbox.Profile{})
			_, created := r.Create(t.Context(), "a", sandbox.Profile{})
			for _, err := range []error{probed, created} {
				if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v; want one line, ErrUnsupported, that says %q", err, test.want)
				}
			}
			if list, _ := os.ReadDir(filepath.Join(c.StateDir, "sandboxes")); len(list) != 0 {
				t.Errorf("left %v", list)
			}
		})
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]docker.Config{
		"image: empty":              {StateDir: "x"},
		"state folder: empty":       {Image: "x"},
		`runtime "crun"`:            {Image: "x", StateDir: "x", Runtime: "crun"},
		`host "tcp://10.0.0.1:237"`: {Image: "x", StateDir: "x", Host: "tcp://10.0.0.1:237"},
	} {
		if _, err := docker.New(c); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "expected") {
			t.Errorf("error %v; want one that says %q and what was expected", err, want)
		}
	}
}

// remove removes all containers of a sandbox behind the runtime's back.
func remove(t *testing.T, c docker.Config) {
	t.Helper()
	daemon, err := client.New(client.WithHost(c.Host))
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.Close()
	list, err := daemon.ContainerList(t.Context(), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", "belay.state="+c.StateDir),
	})
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("%d containers, %v; want some", len(list.Items), err)
	}
	for _, i := range list.Items {
		if _, err := daemon.ContainerRemove(t.Context(), i.ID, client.ContainerRemoveOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVanishedContainer(t *testing.T) {
	t.Parallel()
	c := config(t)
	r := newRuntime(t, c)
	s := create(t, r, sandbox.Profile{})
	done := make(chan error, 1)
	go func() {
		_, err := s.Exec(t.Context(), "1", sandboxtest.Command("echo begun >> log; sleep 600"))
		done <- err
	}()
	waitFor(t, s, "log")
	remove(t, c)
	if err := <-done; !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("its command: %v; want ErrLost", err)
	}
	if _, err := s.Exec(t.Context(), "1", sandboxtest.Command("echo begun >> log; sleep 600")); !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("its command, asked for again: %v; want ErrLost", err)
	}
	if got := run(t, s, "2", "cat log"); string(got.Output) != "begun\n" {
		t.Errorf("the next container has %q in the workspace", got.Output)
	}
}

// A folder that is gone without its container, as after a disk was replaced, is found by the label and cleaned up.
func TestForgottenFolder(t *testing.T) {
	t.Parallel()
	c := config(t)
	r := newRuntime(t, c)
	create(t, r, sandbox.Profile{})
	if err := os.Rename(filepath.Join(c.StateDir, "sandboxes", "a"), filepath.Join(t.TempDir(), "a")); err != nil {
		t.Fatal(err)
	}
	if ids, err := r.List(t.Context()); err != nil || len(ids) != 1 || ids[0] != "a" {
		t.Errorf("list: %v, %v; want a", ids, err)
	}
	if err := r.Destroy(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if ids, err := r.List(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("list after destroy: %v, %v", ids, err)
	}
}

func TestConfinement(t *testing.T) {
	t.Parallel()
	c := config(t)
	s := create(t, newRuntime(t, c), sandbox.Profile{TmpMiB: 8})
	scripts := map[string]string{
		"root":         "echo x > /x || echo x > /usr/x || echo x > /etc/x",
		"control":      "ls /run/belay/agent.sock",
		"agent":        "cat /proc/1/environ",
		"guest":        "echo x >> /run/belay-sandbox",
		"full tmp":     "cat /dev/zero | head -c 20000000 > /tmp/x",
		"mount":        "mount -t tmpfs none /tmp",
		"set user":     "cp /bin/bash /workspace/b && chmod u+s /workspace/b && setpriv --reuid 0 true",
		"loopback out": "exec 3<>/dev/tcp/192.0.2.1/80",
	}
	if c.Runtime == "" { // a kernel of its own may allow what then harms that sandbox only
		scripts["first process"] = "kill -KILL 1; sleep 0.1; false"
		scripts["devices"] = "mknod /tmp/d b 8 0"
		scripts["namespaces"] = "unshare -U true"
	}
	for name, script := range scripts {
		if got := run(t, s, sandbox.ExecID(strings.ReplaceAll(name, " ", "-")), "set -o pipefail; "+script); got.Exit == 0 {
			t.Errorf("%s: exit 0: %s", name, got.Output)
		}
	}
}

// The agent shares the container's limits with the commands; it must live through their being at them.
func TestBombs(t *testing.T) {
	t.Parallel()
	c := config(t)
	if c.Runtime != "" {
		t.Skip("a kernel of its own is itself in the limits: a bomb ends the whole sandbox")
	}
	s := create(t, newRuntime(t, c), sandbox.Profile{MemoryMiB: 128, PIDs: 64})
	got := run(t, s, "memory", "x=$(head -c 400000000 /dev/zero | tr '\\0' x); echo survived")
	if !got.OOM || strings.Contains(string(got.Output), "survived") {
		t.Errorf("memory: %+v; want OOM", got)
	}
	bomb := sandboxtest.Command("f() { f | f & }; f; for i in {1..300}; do sleep 600 & done; sleep 600")
	bomb.Timeout = 3 * time.Second
	forked, err := s.Exec(t.Context(), "fork", bomb)
	if err != nil || forked.Exit == 0 {
		t.Errorf("fork: %+v, %v", forked, err)
	}
	if got := run(t, s, "after", "echo fine"); string(got.Output) != "fine\n" {
		t.Errorf("after the bombs: %+v", got)
	}
}

// waitFor waits until a command has written to a file.
func waitFor(t *testing.T, s sandbox.Sandbox, file string) {
	t.Helper()
	root, err := s.Workspace()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		if st, err := root.Stat(file); err == nil && st.Size() > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing in %s within 30s", file)
		}
	}
}

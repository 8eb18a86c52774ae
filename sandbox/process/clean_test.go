//go:build linux

package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belay/sandbox"
	"belay/sandbox/process/cgroup"
	"belay/sandbox/process/wire"
	"belay/sandbox/sandboxtest"
)

// What a command leaves behind never keeps Destroy from its work.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := runtimeIn(t, dir)
	s := create(t, r, sandbox.Profile{})
	run(t, s, "x", sandboxtest.Command("mkdir -p a/b/c; echo x > a/b/c/d; chmod 0 a/b/c a/b a; d=$PWD; for i in $(seq 300); do mkdir deep; cd deep; done"))
	var group cgroup.Group
	if err := wire.ReadFile(filepath.Join(dir, "sandboxes", "a", wire.CgroupFile), &group); err != nil {
		t.Fatal(err)
	}
	supervisor, first := processIn(t, dir, wire.SupervisorFile), processIn(t, dir, "boxes/main.json")
	running := make(chan error, 1)
	go func() {
		_, err := s.Exec(t.Context(), "y", sandboxtest.Command("setsid sleep 600 & trap '' TERM; echo > started; sleep 600"))
		running <- err
	}()
	until(t, "the command has started", func() bool { return read(t, s, "started") != "" })
	if err := r.Destroy(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := <-running; err == nil {
		t.Error("a command in a destroyed sandbox ended well")
	}
	until(t, "supervisor and box are gone", func() bool { return !supervisor.Alive() && !first.Alive() })
	for c, d := range group.Dirs {
		if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("control group %s of %s is left: %v", d, c, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "sandboxes", "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("a mount of %s is left: %v", dir, err)
	}
	for _, p := range processes(t) {
		if strings.Contains(p, dir) {
			t.Errorf("a process is left: %s", p)
		}
	}
}

// processes lists the command lines on this host.
func processes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			lines = append(lines, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return lines
}

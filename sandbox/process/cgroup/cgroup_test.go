//go:build linux

package cgroup_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belay/sandbox"
	"belay/sandbox/process/cgroup"
)

// live runs a process in a group while check looks.
func live(t *testing.T, g cgroup.Group, check func()) {
	t.Helper()
	t.Cleanup(func() {
		if err := errors.Join(g.Kill(10*time.Second), g.Remove()); err != nil {
			t.Error(err)
		}
	})
	entrances, err := g.Entrances()
	if err != nil {
		t.Fatal(err)
	}
	// The shell joins by the descriptors that it was given, as a command in a sandbox does.
	cmd := exec.Command("sh", "-c", "n=3; while [ $n -lt $(($1+3)) ]; do echo 0 > /proc/self/fd/$n; n=$((n+1)); done; echo joined; exec sleep 600", "sh", string(rune('0'+len(entrances))))
	cmd.ExtraFiles = entrances
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(entrances, theirs) {
		f.Close()
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // collected, or it would count as in the group
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	said := make([]byte, 16)
	if n, err := out.Read(said); err != nil || string(said[:n]) != "joined\n" {
		t.Fatalf("the process said %q, %v", said[:n], err)
	}
	check()
}

func checkGroup(t *testing.T, g cgroup.Group) {
	live(t, g, func() {
		for c, dir := range g.Dirs {
			if b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err != nil || strings.TrimSpace(string(b)) == "" {
				t.Errorf("%s: processes %q, %v", c, b, err)
			}
		}
		for _, on := range []bool{true, false, true} {
			if err := g.Freeze(on); err != nil {
				t.Errorf("freeze %v: %v", on, err)
			}
		}
		// Frozen ones are killed too.
		if err := g.Kill(10 * time.Second); err != nil {
			t.Error(err)
		}
	})
	for c, dir := range g.Dirs {
		if b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err != nil || len(b) > 0 {
			t.Errorf("%s: processes %q, %v after the kill", c, b, err)
		}
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("CONTROL GROUPS ARE NOT TESTED: they need root here")
	}
	g, missing, err := cgroup.New("", "belay-test-group", sandbox.Profile{MemoryMiB: 64, PIDs: 10, CPUPercent: 50})
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Skipf("CONTROL GROUPS ARE NOT TESTED: %v", missing)
	}
	checkGroup(t, g)
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}

// The version 2 hierarchy of a mixed host has no controllers, but it freezes and kills.
func TestGroupVersion2(t *testing.T) {
	t.Parallel()
	dir := ""
	for _, mount := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err == nil {
			dir = filepath.Join(mount, "belay-test-group-2")
		}
	}
	if dir == "" || os.Mkdir(dir, 0o755) != nil {
		t.Skip("VERSION 2 IS NOT TESTED: no hierarchy in which we may make a group")
	}
	checkGroup(t, cgroup.Group{Dirs: map[string]string{"freezer": dir}})
}

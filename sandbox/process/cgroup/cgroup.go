//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"belay/sandbox"
)

const freezer = "freezer"

// controllers are those that we use.
var controllers = []string{"memory", "pids", "cpu", freezer}

// Group is the control group of one sandbox's commands; on version 1 it is a folder in each controller's hierarchy. The
// sandbox's own first process stays outside, so that no limit can hit it. The zero Group limits nothing and holds nobody.
type Group struct {
	Dirs map[string]string `json:"dirs"` // by controller
}

// New makes a group with the limits of a profile. What the host refuses is left out and explained by controller.
func New(parent, name string, p sandbox.Profile) (Group, map[string]error, error) {
	hs, err := find()
	if err != nil {
		return Group{}, nil, fmt.Errorf("cgroup %s: %w", name, err)
	}
	g := Group{Dirs: place(hs, parent, name)}
	missing := map[string]error{}
	for _, c := range controllers {
		dir, ok := g.Dirs[c]
		if !ok {
			missing[c] = errors.New("no control group hierarchy has this controller for us")
			continue
		}
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			missing[c] = err
			delete(g.Dirs, c)
		} else if err := limit(c, dir, p); err != nil {
			missing[c] = err
		}
	}
	return g, missing, nil
}

// limit sets one controller's limits.
func limit(controller, dir string, p sandbox.Profile) error {
	set := func(file string, value any) error {
		return os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, value), 0)
	}
	v2 := exists(dir, "cgroup.controllers")
	switch controller {
	case "pids":
		return set("pids.max", p.PIDs)
	case "memory":
		bytes := int64(p.MemoryMiB) << 20
		if v2 {
			return errors.Join(set("memory.max", bytes), ifExists(dir, "memory.swap.max", set, 0))
		}
		return errors.Join(set("memory.limit_in_bytes", bytes), ifExists(dir, "memory.memsw.limit_in_bytes", set, bytes))
	case "cpu":
		const period = 100_000 // microseconds
		quota := p.CPUPercent * period / 100
		if v2 {
			return set("cpu.max", fmt.Sprintf("%d %d", quota, period))
		}
		return errors.Join(set("cpu.cfs_period_us", period), set("cpu.cfs_quota_us", quota))
	}
	return nil
}

func exists(dir, file string) bool {
	_, err := os.Stat(filepath.Join(dir, file))
	return err == nil
}

func ifExists(dir, file string, set func(string, any) error, value any) error {
	if !exists(dir, file) { // the host has no swap accounting
		return nil
	}
	return set(file, value)
}

// folders lists the group's folders, each once.
func (g Group) folders() []string {
	return slices.Compact(slices.Sorted(maps.Values(g.Dirs)))
}

// Entrances opens what a process writes "0" to in order to join. The permission is that of the caller, so a sandboxed
// process that is given them can join, and do nothing else with them.
func (g Group) Entrances() ([]*os.File, error) {
	var files []*os.File
	for _, dir := range g.folders() {
		f, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// CanFreeze says whether Freeze works here.
func (g Group) CanFreeze() bool { return g.Dirs[freezer] != "" }

// Freeze stops all processes in the group and waits until they have stopped; or lets them go on.
func (g Group) Freeze(on bool) error {
	dir := g.Dirs[freezer]
	if dir == "" {
		return nil
	}
	file, value, check, want := "freezer.state", "THAWED", "freezer.state", "THAWED"
	if on {
		value, want = "FROZEN", "FROZEN"
	}
	if exists(dir, "cgroup.freeze") {
		file, value, check, want = "cgroup.freeze", "0", "cgroup.events", "frozen 0"
		if on {
			value, want = "1", "frozen 1"
		}
	}
	for deadline := time.Now().Add(5 * time.Second); ; {
		// Version 1 may need to be told again: a process that forks while it is being frozen can slip through.
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, check))
		if err != nil {
			return err
		}
		if strings.Contains(string(b), want) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not %q after 5s", filepath.Join(dir, check), want)
		}
		time.Sleep(time.Millisecond)
	}
}

// OOMKills counts the processes that the kernel killed for want of memory since the group was made.
func (g Group) OOMKills() int64 {
	dir := g.Dirs["memory"]
	for _, file := range []string{"memory.events", "memory.oom_control"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if dir == "" || err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if s, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64) // a file of the kernel's; 0 is the safe reading
				return n
			}
		}
	}
	return 0
}

// Kill ends all processes in the group, frozen ones too, and waits until it is empty.
func (g Group) Kill(wait time.Duration) error {
	for deadline := time.Now().Add(wait); ; {
		if err := g.Freeze(false); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		left := 0
		for _, dir := range g.folders() {
			b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			for _, s := range strings.Fields(string(b)) {
				if pid, err := strconv.Atoi(s); err == nil && pid > 0 {
					left++
					_ = unix.Kill(pid, unix.SIGKILL) // gone is as good as killed
				}
			}
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cgroup %v: %d processes left after %v", g.folders(), left, wait)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Remove removes the empty group.
func (g Group) Remove() error {
	var errs []error
	for _, dir := range g.folders() {
		err := os.Remove(dir)
		for i := 0; i < 100 && errors.Is(err, unix.EBUSY); i++ { // the kernel is not done with the last process
			time.Sleep(5 * time.Millisecond)
			err = os.Remove(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

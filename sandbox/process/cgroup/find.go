//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hierarchy is one mounted tree of control groups.
type hierarchy struct {
	v2          bool
	controllers []string
	mount       string // where it is mounted
	own         string // folder of the group that this process is in
}

// find lists the hierarchies, from /proc/self/mountinfo and /proc/self/cgroup.
func find() ([]hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	return parse(string(mounts), string(groups)), nil
}

func parse(mounts, groups string) []hierarchy {
	var hs []hierarchy
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		f, s := strings.Fields(before), strings.Fields(after)
		if len(f) < 6 || len(s) < 3 || s[0] != "cgroup" && s[0] != "cgroup2" {
			continue
		}
		h := hierarchy{v2: s[0] == "cgroup2", mount: f[4]}
		if !h.v2 {
			h.controllers = strings.Split(s[2], ",")
		}
		h.own = ownGroup(h, f[3], groups)
		hs = append(hs, h)
	}
	return hs
}

// ownGroup finds the folder of this process's group in a hierarchy of which root is mounted. A group outside of what is
// mounted, as in some containers, counts as the mounted root.
func ownGroup(h hierarchy, root, groups string) string {
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		if h.v2 != (f[0] == "0") || !h.v2 && !slices.ContainsFunc(strings.Split(f[1], ","), func(c string) bool { return slices.Contains(h.controllers, c) }) {
			continue
		}
		rel, err := filepath.Rel(root, f[2])
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			break
		}
		return filepath.Join(h.mount, rel)
	}
	return h.mount
}

// Of gives the groups that a process is in, as far as this process sees them: for reading only.
func Of(pid int) (Group, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Group{}, fmt.Errorf("cgroup of process %d: %w", pid, err)
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return Group{}, fmt.Errorf("cgroup of process %d: %w", pid, err)
	}
	g := Group{Dirs: map[string]string{}}
	for _, h := range parse(string(mounts), string(groups)) {
		for _, c := range controllers {
			if _, ok := g.Dirs[c]; !ok && h.v2 || slices.Contains(h.controllers, c) {
				g.Dirs[c] = h.own
			}
		}
	}
	return g, nil
}

// place gives for each controller the folder in which a group of that name would be. The controllers of version 1 go below
// our own group, so that its limits hold for us as well; version 2 allows no group below one that has processes, so there
// it goes beside ours, or where the configuration says.
func place(hs []hierarchy, parent, name string) map[string]string {
	dirs := map[string]string{}
	for _, h := range hs {
		if h.v2 {
			continue
		}
		for _, c := range h.controllers {
			if slices.Contains(controllers, c) {
				dirs[c] = filepath.Join(h.own, name)
			}
		}
	}
	for _, h := range hs {
		if !h.v2 {
			continue
		}
		above := parent
		if above == "" && h.own != h.mount {
			above = filepath.Dir(h.own)
		} else if above == "" {
			above = h.mount
		}
		for _, c := range controllers {
			if _, ok := dirs[c]; !ok && (c == freezer || enable(above, c)) {
				dirs[c] = filepath.Join(above, name)
			}
		}
	}
	return dirs
}

// enable gives the groups below a folder a controller of version 2, if that can be.
func enable(dir, controller string) bool {
	file := filepath.Join(dir, "cgroup.subtree_control")
	if b, err := os.ReadFile(file); err == nil && slices.Contains(strings.Fields(string(b)), controller) {
		return true
	}
	return os.WriteFile(file, fmt.Appendf(nil, "+%s", controller), 0) == nil
}

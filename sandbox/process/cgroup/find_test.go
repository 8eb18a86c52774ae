//go:build linux

package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	const v1 = `30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids
34 30 0:30 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
`
	for name, test := range map[string]struct {
		mounts, groups string
		want           map[string]string
	}{
		"version 1": {v1, "4:memory:/user/me\n3:cpu,cpuacct:/\n2:pids:/user\n1:freezer:/\n", map[string]string{
			"memory": "/sys/fs/cgroup/memory/user/me/b", "cpu": "/sys/fs/cgroup/cpu,cpuacct/b",
			"pids": "/sys/fs/cgroup/pids/user/b", "freezer": "/sys/fs/cgroup/freezer/b",
		}},
		"version 1 in a container that mounts its own group": {
			"31 30 0:27 /docker/abc /cg/memory ro - cgroup cgroup rw,memory\n", "4:memory:/docker/abc\n",
			map[string]string{"memory": "/cg/memory/b"},
		},
		"version 1 of which our group is not mounted": {
			"31 30 0:27 /docker/abc /cg/memory ro - cgroup cgroup rw,memory\n", "4:memory:/elsewhere\n",
			map[string]string{"memory": "/cg/memory/b"},
		},
		"none": {"25 1 8:1 / / rw - ext4 /dev/vda rw\n", "0::/\n", map[string]string{}},
	} {
		if diff := cmp.Diff(test.want, place(parse(test.mounts, test.groups), "", "b")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A version 2 hierarchy that is only files shows which controllers are asked for, and where.
func TestPlaceVersion2(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	slice := filepath.Join(root, "belay.service")
	own := filepath.Join(slice, "worker")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(slice, "cgroup.subtree_control"), []byte("memory pids\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	hs := parse("30 25 0:26 / "+root+" rw - cgroup2 cgroup2 rw\n", "0::/belay.service/worker\n")
	got := place(hs, "", "b")
	want := map[string]string{}
	for _, c := range controllers {
		want[c] = filepath.Join(slice, "b")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("beside our own group (-want +got):\n%s", diff)
	}
	if b, err := os.ReadFile(filepath.Join(slice, "cgroup.subtree_control")); err != nil || string(b) != "+cpu" {
		t.Errorf("asked for %q, %v; want +cpu, which was not there", b, err)
	}
	got = place(hs, filepath.Join(root, "absent"), "b")
	if diff := cmp.Diff(map[string]string{freezer: filepath.Join(root, "absent", "b")}, got); diff != "" {
		t.Errorf("a parent that gives no controllers (-want +got):\n%s", diff)
	}
}

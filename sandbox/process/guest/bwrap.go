//go:build linux

package main

import (
	"os"
	"strconv"

	"belay/sandbox"
)

// Descriptors of bubblewrap beyond controlFD, which it hands on to the agent.
const (
	filterFD = 4
	etcFD    = 5 // the first of etcFiles
)

// boxFDs is the first descriptor beyond those of a box.
const boxFDs = etcFD + 5

// Who a command is, as it sees itself.
const (
	boxUser = 1000
	boxHome = "/home/agent"
)

// etcFiles are made for the sandbox instead of showing the host's.
var etcFiles = [boxFDs - etcFD]struct{ path, content string }{
	{"/etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
	{"/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"},
	{"/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
	{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
	{"/etc/hostname", "sandbox\n"},
}

// bwrapArgs describes a box to bubblewrap: everything that a command sees is listed here.
func bwrapArgs(workspace, guest string, p sandbox.Profile, readOnly, filter bool) []string {
	tmp := strconv.FormatInt(int64(p.TmpMiB)<<20, 10)
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup",
		"--uid", strconv.Itoa(boxUser), "--gid", strconv.Itoa(boxUser), "--hostname", "sandbox",
		"--cap-drop", "ALL", "--as-pid-1", "--proc", "/proc", "--dev", "/dev",
	}
	for _, dir := range []string{"/etc", "/run", "/var"} {
		args = append(args, "--perms", "0755", "--dir", dir)
	}
	args = append(args, systemView()...)
	for i, f := range etcFiles {
		args = append(args, "--perms", "0644", "--file", strconv.Itoa(etcFD+i), f.path)
	}
	for _, dir := range []string{"/tmp", "/dev/shm", boxHome} {
		args = append(args, "--perms", "1777", "--size", tmp, "--tmpfs", dir)
	}
	args = append(args, "--symlink", "/tmp", "/var/tmp", "--ro-bind", guest, guestPath)
	if readOnly {
		args = append(args, "--ro-bind", workspace, sandbox.Workspace)
	} else {
		args = append(args, "--bind", workspace, sandbox.Workspace)
	}
	args = append(args, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/")
	if filter {
		args = append(args, "--seccomp", strconv.Itoa(filterFD))
	}
	return append(args, "--", guestPath, roleAgent)
}

// systemView shows the programs and libraries of the host, and no more of its /etc than they need.
func systemView() []string {
	var args []string
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else {
			args = append(args, "--ro-bind-try", dir, dir)
		}
	}
	for _, path := range []string{
		"/etc/alternatives", "/etc/ca-certificates", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/ld.so.cache", "/etc/ld.so.conf",
		"/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/java",
	} {
		args = append(args, "--ro-bind-try", path, path)
	}
	// What tells about the host's kernel or keys. A device on a mount without devices can't be opened.
	for _, path := range []string{
		"/proc/cmdline", "/proc/config.gz", "/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg",
		"/proc/sched_debug", "/proc/timer_list",
	} {
		if _, err := os.Stat(path); err == nil {
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	return args
}

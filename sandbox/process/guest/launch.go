//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Where bubblewrap, which runs as a user that can't reach the state folder, finds the workspace and this program.
const (
	stage          = "/tmp"
	stageWorkspace = stage + "/workspace"
	stageGuest     = stage + "/guest"
)

// launch runs as root in a mount namespace of its own. It mounts the workspace and this program where the unprivileged
// user finds them, becomes that user and then the program in args: uid, workspace, guest, program, its arguments.
func launch(args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("launch: %d arguments; expected 4 or more", len(args))
	}
	uid, err := strconv.Atoi(args[0])
	if err != nil || uid <= 0 {
		return fmt.Errorf("launch: user %q; expected a number above 0", args[0])
	}
	// Opened before the stage hides what may be below the same folder.
	workspace, err := unix.Open(args[1], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("launch: %s: %w", args[1], err)
	}
	guest, err := unix.Open(args[2], unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("launch: %s: %w", args[2], err)
	}
	if err := unix.Mount("belay", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("launch: mount %s: %w", stage, err)
	}
	if err := os.Mkdir(stageWorkspace, 0o755); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	if err := os.WriteFile(stageGuest, nil, 0o755); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	for target, fd := range map[string]int{stageWorkspace: workspace, stageGuest: guest} {
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("launch: mount %s: %w", target, err)
		}
	}
	if err := become(uid); err != nil {
		return fmt.Errorf("launch: become user %d: %w", uid, err)
	}
	// bubblewrap's files (its seccomp filter, the agent's socket) were marked close-on-exec when this role started.
	if err := inherit(boxFDs); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	err = syscall.Exec(args[3], args[3:], nil)
	return fmt.Errorf("launch: %s: %w", args[3], err)
}

// become gives up root for good: groups first, for that needs the user's powers.
func become(uid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(uid, uid, uid); err != nil {
		return err
	}
	return syscall.Setresuid(uid, uid, uid)
}

// inherit lets the descriptors from 3 up to but without end pass to the next program.
func inherit(end int) error {
	for fd := 3; fd < end; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil && err != unix.EBADF {
			return fmt.Errorf("descriptor %d: %w", fd, err)
		}
	}
	return nil
}

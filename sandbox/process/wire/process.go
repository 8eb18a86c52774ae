//go:build linux

package wire

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Process names a process on this host beyond doubt: its number may be another's after a while, or after a reboot.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in clock ticks since boot
	Boot  string `json:"boot"`
}

// ProcessOf names a running process.
func ProcessOf(pid int) (Process, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Process{}, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, err
	}
	// The second field is the program's name in parentheses and may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return Process{}, fmt.Errorf("/proc/%d/stat: %d fields; expected 20 or more after the name", pid, len(fields))
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return Process{}, fmt.Errorf("/proc/%d/stat: start: %w", pid, err)
	}
	return Process{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, nil
}

// Alive says whether the process still is there. One that has ended but whose children haven't, counts as alive.
func (p Process) Alive() bool {
	now, err := ProcessOf(p.PID)
	return err == nil && now == p
}

// Kill ends the process and waits until it is gone, which for the first process of a PID namespace means all in it.
func (p Process) Kill(wait time.Duration) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		if p.Alive() {
			return fmt.Errorf("kill %d: %w", p.PID, err)
		}
		return nil
	}
	defer unix.Close(fd)
	if !p.Alive() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("kill %d: %w", p.PID, err)
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for deadline := time.Now().Add(wait); ; {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("kill %d: still there after %v", p.PID, wait)
		}
		if n, err := unix.Poll(poll, int(left.Milliseconds())+1); n > 0 || err != nil && err != unix.EINTR {
			return err
		}
	}
}

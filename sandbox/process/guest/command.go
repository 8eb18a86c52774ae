//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors that the command role starts with. The control group's entrances follow.
const (
	specFD = 3 + iota
	failureFD
	restoreFD
	saveFD
	firstEntranceFD
)

// Descriptors at which a session's shell finds its state, out of the way of those that scripts use.
const (
	shellRestoreFD = 100
	shellSaveFD    = 101
)

// spec is what the command role becomes.
type spec struct {
	Argv      []string `json:"argv"`
	Env       []string `json:"env"`
	Dir       string   `json:"dir"`
	Session   bool     `json:"session,omitempty"`
	Entrances int      `json:"entrances,omitempty"`
}

// Exit codes that shells use for a program that can't be run.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// command makes this process ready and then becomes the program asked for. What the caller got wrong is told on the
// command's own output with a shell's exit code; what the host got wrong is told on failureFD, and no command ran. That
// descriptor closes without a word when the program starts.
func command() error {
	fail := os.NewFile(failureFD, "failure")
	s, err := prepare()
	if err != nil {
		fmt.Fprint(fail, err)
		os.Exit(exitCannotRun)
	}
	if err := os.Chdir(s.Dir); err != nil {
		refuse(exitCannotRun, "cannot start in %s: %v", s.Dir, cause(err))
	}
	path, err := lookPath(s.Argv[0], s.Env)
	if err != nil {
		refuse(exitNotFound, "%s: %v", s.Argv[0], err)
	}
	err = syscall.Exec(path, s.Argv, s.Env)
	refuse(exitCannotRun, "%s: %v", s.Argv[0], err)
	return nil
}

func refuse(code int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "belay: "+format+"\n", args...)
	os.Exit(code)
}

// prepare confines this process and gives what it is to become.
func prepare() (spec, error) {
	var s spec
	b, err := io.ReadAll(os.NewFile(specFD, "spec"))
	if err != nil {
		return s, fmt.Errorf("read command: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read command: %w", err)
	}
	if len(s.Argv) == 0 {
		return s, errors.New("read command: no argv")
	}
	for fd := firstEntranceFD; fd < firstEntranceFD+s.Entrances; fd++ {
		if _, err := unix.Write(fd, []byte("0")); err != nil {
			return s, fmt.Errorf("join control group: %w", err)
		}
	}
	// Where the whole host runs out of memory, the kernel shall take a command before anything else.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return s, fmt.Errorf("set oom_score_adj: %w", err)
	}
	for _, l := range []struct {
		resource int
		max      uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_MSGQUEUE, 0}, {unix.RLIMIT_MEMLOCK, 64 << 10}, {unix.RLIMIT_NOFILE, 4096}} {
		if err := lower(l.resource, l.max); err != nil {
			return s, fmt.Errorf("set limit %d: %w", l.resource, err)
		}
	}
	if !s.Session {
		return s, nil
	}
	return s, errors.Join(unix.Dup3(restoreFD, shellRestoreFD, 0), unix.Dup3(saveFD, shellSaveFD, 0))
}

// lower brings a limit down to max, and leaves a lower one.
func lower(resource int, limit uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	limit = min(limit, now.Max)
	err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit})
	if err == unix.EPERM { // gVisor does not have what this limits; Linux lets everybody lower one
		return nil
	}
	return err
}

var errNotFound = errors.New("command not found")

// lookPath finds a program as a shell does, in the PATH that the command will have.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); err != nil {
			return "", cause(err)
		}
		return name, nil
	}
	path := ""
	for _, e := range env {
		if p, ok := strings.CutPrefix(e, "PATH="); ok {
			path = p
		}
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", errNotFound
}

// cause strips what the message says already.
func cause(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"belay/sandbox"
	"belay/sandbox/process/cgroup"
	"belay/sandbox/process/wire"
)

// maxReaders is how many read-only commands of one sandbox run at once; more wait.
const maxReaders = 8

// supervisor holds one sandbox. Its working folder is the sandbox's, so that paths stay short enough for a socket.
type supervisor struct {
	setup   wire.Setup
	profile sandbox.Profile
	group   cgroup.Group
	main    *box
	log     *slog.Logger

	writer   chan struct{} // taken by the one command that may write
	readers  chan struct{} // taken by each read-only command
	gate     sync.RWMutex  // read: a command is being started; write: nothing may start
	adopting sync.Mutex

	mu      sync.Mutex
	running map[sandbox.ExecID]*execution
	busy    map[*box]bool // boxes that run a command
}

// supervise is the role: it takes its setup from standard input, says on standard output whether it is ready, and serves
// until its box dies or it is killed.
func supervise() error {
	var setup wire.Setup
	if err := wire.Receive(bufio.NewReader(os.Stdin), &setup); err != nil {
		return fmt.Errorf("supervisor: setup: %w", err)
	}
	s := &supervisor{
		setup: setup, log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		writer: make(chan struct{}, 1), readers: make(chan struct{}, maxReaders),
		running: map[sandbox.ExecID]*execution{}, busy: map[*box]bool{},
	}
	var ready wire.Ready
	listener, err := s.start(&ready)
	if err != nil {
		ready.Error = err.Error()
	}
	if err := errors.Join(wire.Send(os.Stdout, ready), os.Stdout.Close()); err != nil {
		return fmt.Errorf("supervisor: %w", err) // the worker is gone; the next one starts another
	}
	if err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	go func() {
		<-s.main.dead
		s.log.Error("the sandbox's first process ended")
		listener.Close()
	}()
	s.serve(listener)
	s.main.close()
	s.drain()
	return errors.New("supervisor: sandbox ended")
}

// start makes everything ready: no predecessor, a sound journal, limits, and a box.
func (s *supervisor) start(ready *wire.Ready) (*net.UnixListener, error) {
	if err := os.Chdir(s.setup.Dir); err != nil {
		return nil, err
	}
	if err := lock(wire.SupervisorLock); err != nil {
		return nil, err
	}
	self, err := wire.ProcessOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	if err := wire.WriteFile(wire.SupervisorFile, self); err != nil {
		return nil, err
	}
	for _, dir := range []string{wire.ExecsDir, wire.SessionsDir, wire.BoxesDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := wire.Reap("."); err != nil {
		return nil, fmt.Errorf("end what the last supervisor left: %w", err)
	}
	if err := recoverJournal(); err != nil {
		return nil, err
	}
	if err := wire.ReadFile(wire.ProfileFile, &s.profile); err != nil {
		return nil, err
	}
	if s.setup.Launcher == nil { // a launcher limits what it starts
		if err := s.limit(ready); err != nil {
			return nil, err
		}
	}
	if s.setup.UID != 0 {
		if err := adopt(wire.WorkspaceDir, s.setup.UID); err != nil {
			return nil, err
		}
	}
	if s.main, err = newBox("main", s.setup, s.profile, s.group, false); err != nil {
		return nil, err
	}
	if err := os.Remove(wire.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.ListenUnix("unix", &net.UnixAddr{Name: wire.Socket, Net: "unix"})
}

// limit makes the control group and says what of the confinement this host can't give. That is an error, unless the
// profile names it.
func (s *supervisor) limit(ready *wire.Ready) error {
	var old cgroup.Group
	if err := wire.ReadFile(wire.CgroupFile, &old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	group, missing, err := cgroup.New(s.setup.Cgroup, s.setup.Name, s.profile)
	if err != nil {
		return err
	}
	if err := wire.WriteFile(wire.CgroupFile, group); err != nil {
		return err
	}
	if !maps.Equal(old.Dirs, group.Dirs) { // the last supervisor had another place in the hierarchy
		if err := old.Remove(); err != nil {
			return err
		}
	}
	s.group = group
	ready.Missing = map[string]string{}
	for _, c := range []string{"memory", "pids", "cpu"} {
		if err := missing[c]; err != nil {
			ready.Missing[c] = err.Error()
		}
	}
	if len(s.setup.Filter) == 0 {
		ready.Missing["seccomp"] = "the kernel has no seccomp filters, or this architecture no table of ours"
	}
	for _, c := range slices.Sorted(maps.Keys(ready.Missing)) {
		if !slices.Contains(s.profile.Unconfined, c) {
			ready.Unsupported = true
			return fmt.Errorf("%s can't be limited here: %s; allow it in the profile by unconfined: [%s]", c, ready.Missing[c], c)
		}
	}
	return nil
}

// lock takes a file's lock for as long as this process lives, waiting for a predecessor that is about to end.
func lock(file string) error {
	fd, err := unix.Open(file, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("lock %s: %w", file, err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(deadline) {
			return fmt.Errorf("lock %s: another supervisor has it: %w", file, err)
		}
	}
}

func (s *supervisor) serve(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: waiting is all that helps
			s.log.Error("accept", "error", err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		go s.answer(conn)
	}
}

// answer serves one request.
func (s *supervisor) answer(conn *net.UnixConn) {
	defer conn.Close()
	var req wire.Request
	if err := wire.Receive(conn, &req); err != nil {
		return // the worker is gone
	}
	var reply wire.Reply
	switch {
	case req.Op == wire.OpFreeze:
		reply = s.freeze(conn)
	case req.Op == wire.OpStop && req.Exec.Check() == nil:
		reply = s.stop(req.Exec)
	case req.Op == wire.OpExec && req.Command != nil:
		reply = s.exec(req.Exec, *req.Command)
	default:
		reply = wire.Reply{Failure: wire.NotStarted, Message: fmt.Sprintf("request %q: unknown or incomplete", req.Op)}
	}
	if err := wire.Send(conn, reply); err != nil && !errors.Is(err, syscall.EPIPE) {
		s.log.Error("answer", "op", req.Op, "exec", req.Exec, "error", err)
	}
}

// freeze lets nothing run until the connection closes. When nothing does, it only keeps the gate.
func (s *supervisor) freeze(conn *net.UnixConn) wire.Reply {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.mu.Lock()
	boxes := slices.Collect(maps.Keys(s.busy))
	s.mu.Unlock()
	if len(boxes) > 0 {
		defer s.still(boxes, false)
		if err := s.still(boxes, true); err != nil {
			return wire.Reply{Failure: wire.NotStarted, Message: err.Error()}
		}
	}
	if err := wire.Send(conn, wire.Reply{}); err != nil {
		return wire.Reply{}
	}
	_, _ = io.Copy(io.Discard, conn) // until the worker closes, or dies
	return wire.Reply{}
}

// still stops the processes of running commands, or lets them go on.
func (s *supervisor) still(boxes []*box, on bool) error {
	if s.group.CanFreeze() {
		return s.group.Freeze(on)
	}
	signal := unix.SIGCONT
	if on {
		signal = unix.SIGSTOP
	}
	var errs []error
	for _, b := range boxes {
		errs = append(errs, b.signal(signal))
	}
	return errors.Join(errs...)
}

// drain ends the boxes of read-only commands and waits until the executions have written down that they are lost.
func (s *supervisor) drain() {
	s.mu.Lock()
	left, boxes := slices.Collect(maps.Values(s.running)), slices.Collect(maps.Keys(s.busy))
	s.mu.Unlock()
	for _, b := range boxes {
		b.close()
	}
	for _, e := range left {
		select {
		case <-e.done:
		case <-time.After(patience):
		}
	}
}

// spoolPath is where others find the output of an execution.
func (s *supervisor) spoolPath(id sandbox.ExecID) string {
	return filepath.Join(s.setup.Dir, wire.ExecDir(id), outputFile)
}

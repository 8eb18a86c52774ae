//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"belay/sandbox/process/wire"
)

// guestPath is where this program is, as a sandbox sees it.
const guestPath = "/run/belay-sandbox"

// controlFD is the descriptor by which the agent talks to its supervisor, unless it is given the path of a socket to dial: a
// SOCK_SEQPACKET socket, one JSON value a packet.
const controlFD = 3

// order is what a supervisor tells an agent.
type order struct {
	// Run starts a command; the packet's descriptors become its descriptors from 0 on.
	Run bool `json:"run,omitempty"`
	// Signal goes to every process in the sandbox but the agent.
	Signal syscall.Signal `json:"signal,omitempty"`
}

// event is what an agent tells its supervisor.
type event struct {
	Ready  bool   `json:"ready,omitempty"`
	Ended  bool   `json:"ended,omitempty"` // the command and everything that it started
	Exit   int    `json:"exit,omitempty"`
	Signal int    `json:"signal,omitempty"`
	Left   int    `json:"left,omitempty"`  // processes that outlived the command and were killed
	Error  string `json:"error,omitempty"` // the command was not started
}

// packet is an order with its descriptors.
type packet struct {
	order
	fds []int
}

// task is the command that an agent runs; there is at most one.
type task struct {
	pid    int // 0: none runs
	exited bool
	warned bool // was told to end: what it started may take its time, until the supervisor kills it
	end    event
}

// agent is process 1 of a sandbox. When its supervisor is gone it exits, and the kernel kills everything in the sandbox. Its
// argument is the path of the supervisor's socket; without, that is at controlFD.
func agent(args []string) error {
	// Commands run as the same user. They must not look into this process or find the program that it was started from.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	unix.Umask(0o022)
	// Go handles signals, so process 1 would obey those that a command sends. Ignoring them would be inherited.
	signal.Notify(make(chan os.Signal, 1))
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)

	conn, err := control(args)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	defer conn.Close()
	if err := send(conn, event{Ready: true}); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	orders := make(chan packet)
	go receiveOrders(conn, orders)
	var t task
	for {
		var done *event
		select {
		case p, ok := <-orders:
			if !ok {
				return nil
			}
			done = t.obey(p)
		case <-children:
			done = t.reap()
		}
		if done == nil {
			continue
		}
		t = task{}
		if err := send(conn, *done); err != nil {
			return fmt.Errorf("agent: %w", err)
		}
	}
}

func control(args []string) (*net.UnixConn, error) {
	if len(args) == 0 {
		return packetConn(os.NewFile(controlFD, "control"))
	}
	if err := reserveThreads(); err != nil {
		return nil, err
	}
	return net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: args[0], Net: "unixpacket"})
}

// reserveThreads makes the threads that the agent may need, which the Go runtime keeps. In a container the agent counts
// against the limit of processes as its commands do: while they are at the limit it could make none, and would die of it.
func reserveThreads() error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("reserve threads: %w", err)
	}
	var blocked sync.WaitGroup
	for range wire.AgentThreads / 2 {
		blocked.Go(func() { _, _ = unix.Read(pipe[0], make([]byte, 1)) }) // each read blocks a thread until the pipe closes
	}
	for deadline := time.Now().Add(time.Second); ownThreads() < wire.AgentThreads/2 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	unix.Close(pipe[1])
	blocked.Wait()
	unix.Close(pipe[0])
	return nil
}

func ownThreads() int {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	return len(entries)
}

// obey carries out one order. What it returns is for the supervisor.
func (t *task) obey(p packet) *event {
	if p.Signal != 0 && t.pid != 0 {
		if t.exited && p.Signal == unix.SIGKILL {
			t.end.Left = countOthers()
		}
		t.warned = t.warned || p.Signal == unix.SIGTERM
		_ = unix.Kill(-1, p.Signal) // ESRCH: they have just ended
	}
	if !p.Run {
		return nil
	}
	files := make([]uintptr, len(p.fds))
	for i, fd := range p.fds {
		files[i] = uintptr(fd)
	}
	pid, err := syscall.ForkExec(guestPath, []string{guestPath, roleCommand}, &syscall.ProcAttr{
		Dir: "/", Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	for _, fd := range p.fds {
		unix.Close(fd)
	}
	if err != nil {
		return &event{Ended: true, Error: err.Error()}
	}
	t.pid = pid
	return nil
}

// reap collects ended processes. Once the command has ended it kills what was left behind, and reports when nothing is.
func (t *task) reap() *event {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err == syscall.ECHILD && t.exited:
			end := t.end
			end.Ended = true
			return &end
		case err != nil || pid == 0:
			return nil
		case pid == t.pid:
			t.exited = true
			t.end.Exit = status.ExitStatus()
			if status.Signaled() {
				t.end.Signal = int(status.Signal())
				t.end.Exit = 128 + t.end.Signal
			}
			if !t.warned {
				t.end.Left = countOthers()
				_ = unix.Kill(-1, unix.SIGKILL) // ESRCH: nothing was left
			}
		}
	}
}

// countOthers counts the living processes in the sandbox besides process 1.
func countOthers() int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == 1 {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		state := stat[bytes.LastIndexByte(stat, ')')+1:]
		if len(state) > 1 && state[1] != 'Z' && state[1] != 'X' {
			n++
		}
	}
	return n
}

// maxPacket bounds a packet in bytes, maxPacketFDs its descriptors.
const (
	maxPacket    = 4096
	maxPacketFDs = 16
)

func receiveOrders(conn *net.UnixConn, orders chan<- packet) {
	defer close(orders)
	buf, oob := make([]byte, maxPacket), make([]byte, unix.CmsgSpace(4*maxPacketFDs))
	for {
		n, on, _, _, err := conn.ReadMsgUnix(buf, oob)
		if err != nil || n == 0 {
			return
		}
		var p packet
		if err := json.Unmarshal(buf[:n], &p.order); err != nil {
			return
		}
		messages, err := unix.ParseSocketControlMessage(oob[:on])
		if err != nil {
			return
		}
		for _, m := range messages {
			if fds, err := unix.ParseUnixRights(&m); err == nil {
				p.fds = append(p.fds, fds...)
			}
		}
		orders <- p
	}
}

func packetConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("control descriptor is a %T; expected a unix socket", c)
	}
	return u, nil
}

func send(conn *net.UnixConn, v any, files ...*os.File) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	_, _, err = conn.WriteMsgUnix(b, oob, nil)
	return err
}

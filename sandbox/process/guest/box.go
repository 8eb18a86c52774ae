//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"belay/sandbox"
	"belay/sandbox/process/cgroup"
	"belay/sandbox/process/wire"
)

// patience is how long the kernel and our own agent may take to do what they are bound to do.
const patience = 15 * time.Second

// box is an agent, with what confines it: a bubblewrap of ours, or a container of a launcher's.
type box struct {
	conn   *net.UnixConn
	bwrap  *exec.Cmd     // nil: a launcher's
	limits cgroup.Group  // whose out-of-memory kills are those of the box's commands
	first  wire.Process  // the agent, as the host sees it
	record string        // file that holds first
	events chan event    // at most one command runs, so at most one event is pending
	dead   chan struct{} // closed when the agent is gone
	once   sync.Once
}

// newBox starts a box over the workspace in the current folder. Its commands join limits, unless a launcher sees to that.
func newBox(name string, s wire.Setup, p sandbox.Profile, limits cgroup.Group, readOnly bool) (*box, error) {
	b := &box{limits: limits, record: filepath.Join(wire.BoxesDir, name+".json"), events: make(chan event, 1), dead: make(chan struct{})}
	start := b.wrap
	if s.Launcher != nil {
		start = b.contain
	}
	if err := start(name, s, p, readOnly); err != nil {
		return nil, fmt.Errorf("box: %w", err)
	}
	go b.listen()
	return b, nil
}

// wrap starts an agent in a bubblewrap.
func (b *box) wrap(_ string, s wire.Setup, p sandbox.Profile, readOnly bool) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	// The kernel then tells with each packet who sent it: that is how we learn the agent's process id on the host.
	if err := unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		unix.Close(pair[0])
		return err
	}
	if b.conn, err = packetConn(os.NewFile(uintptr(pair[0]), "control")); err != nil {
		return err
	}
	var said firstBytes
	if err := b.launch(s, p, readOnly, theirs, &said); err != nil {
		b.conn.Close()
		return err
	}
	theirs.Close() // so that the end of the agent is the end of the stream
	if err := b.hello(); err != nil {
		b.conn.Close()
		_ = b.bwrap.Process.Kill() // it may have ended by itself; Wait tells
		return fmt.Errorf("%w; %v: %s", err, b.bwrap.Wait(), said.text)
	}
	return nil
}

// launch starts bubblewrap, as root by way of the launch role.
func (b *box) launch(s wire.Setup, p sandbox.Profile, readOnly bool, control *os.File, stderr io.Writer) error {
	guest, err := os.Executable()
	if err != nil {
		return err
	}
	workspace := filepath.Join(s.Dir, wire.WorkspaceDir)
	if s.UID == 0 {
		b.bwrap = exec.Command(s.Bwrap, bwrapArgs(workspace, guest, p, readOnly, len(s.Filter) > 0)...)
	} else {
		args := []string{roleLaunch, strconv.Itoa(s.UID), workspace, guest, s.Bwrap}
		b.bwrap = exec.Command(guest, append(args, bwrapArgs(stageWorkspace, stageGuest, p, readOnly, len(s.Filter) > 0)...)...)
		b.bwrap.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	files := []*os.File{control}
	defer func() {
		for _, f := range files[1:] {
			f.Close()
		}
	}()
	contents := [][]byte{s.Filter}
	for _, f := range etcFiles {
		contents = append(contents, []byte(f.content))
	}
	for _, c := range contents {
		f, err := memory("box", c)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	b.bwrap.ExtraFiles = files
	b.bwrap.Env = []string{}
	b.bwrap.Stderr = stderr
	b.bwrap.WaitDelay = time.Second
	return b.bwrap.Start()
}

// hello waits for the agent and records which process it is, before it is given anything to do.
func (b *box) hello() error {
	if err := b.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	ev, pid, err := b.receive()
	if err != nil || !ev.Ready {
		return fmt.Errorf("no agent in the sandbox: %w", errors.Join(err, errors.New(ev.Error)))
	}
	if b.first, err = wire.ProcessOf(pid); err != nil {
		return err
	}
	record, err := json.Marshal(b.first)
	if err != nil {
		return err
	}
	// Not synced: what a crash of the host takes, it takes together with the process.
	if err := os.WriteFile(b.record+".new", record, 0o600); err != nil {
		return err
	}
	if err := os.Rename(b.record+".new", b.record); err != nil {
		return err
	}
	return b.conn.SetReadDeadline(time.Time{})
}

// receive reads one event and who sent it.
func (b *box) receive() (event, int, error) {
	var ev event
	buf, oob := make([]byte, maxPacket), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	n, on, _, _, err := b.conn.ReadMsgUnix(buf, oob)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return ev, 0, err
	}
	if err := json.Unmarshal(buf[:n], &ev); err != nil {
		return ev, 0, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:on])
	if err != nil || len(messages) != 1 {
		return ev, 0, fmt.Errorf("packet with %d control messages; expected 1: %w", len(messages), err)
	}
	who, err := unix.ParseUnixCredentials(&messages[0])
	if err != nil {
		return ev, 0, err
	}
	return ev, int(who.Pid), nil
}

func (b *box) listen() {
	defer close(b.dead)
	for {
		ev, _, err := b.receive()
		if err != nil {
			return
		}
		select {
		case b.events <- ev:
		default: // an agent that says more than it was asked is not ours any more
			return
		}
	}
}

// run starts a command; files become its descriptors.
func (b *box) run(files []*os.File) error { return send(b.conn, order{Run: true}, files...) }

// signal sends a signal to all processes in the box but the first.
func (b *box) signal(s syscall.Signal) error { return send(b.conn, order{Signal: s}) }

// close ends everything in the box and waits for it.
func (b *box) close() {
	b.once.Do(func() {
		b.conn.Close()
		if b.bwrap == nil {
			_ = b.first.Kill(patience) // whoever may not kill it has told it to end
			_ = os.Remove(b.record)
			return
		}
		kill := time.AfterFunc(patience/5, func() { _ = b.first.Kill(patience) })
		defer kill.Stop()
		_ = b.bwrap.Wait() // how bubblewrap ends says nothing: it was ended
		_ = os.Remove(b.record)
	})
}

// memory gives a file that exists in memory only and holds b.
func memory(name string, b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(b); err != nil {
		f.Close()
		return nil, fmt.Errorf("memfd: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		f.Close()
		return nil, fmt.Errorf("memfd: %w", err)
	}
	return f, nil
}

// firstBytes keeps the beginning of what is written to it: enough to say why something failed.
type firstBytes struct{ text []byte }

func (f *firstBytes) Write(p []byte) (int, error) {
	f.text = append(f.text, p[:min(len(p), 4096-len(f.text))]...)
	return len(p), nil
}

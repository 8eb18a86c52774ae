//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"belay/sandbox"
	"belay/sandbox/process/cgroup"
	"belay/sandbox/process/wire"
)

// launchPatience is how long a launcher may take. A daemon that is asked by many at once takes its time.
const launchPatience = time.Minute

// contain has the launcher start an agent, which comes to a socket of its own.
func (b *box) contain(name string, s wire.Setup, p sandbox.Profile, readOnly bool) error {
	sum := sha256.Sum256([]byte(name)) // the path of a socket is short
	folder := filepath.Join(wire.AgentsDir, hex.EncodeToString(sum[:8]))
	door, err := openDoor(folder)
	if err != nil {
		return err
	}
	// Nothing but the agent ran while the door was open. It may stay in the box: behind it there is nobody any more.
	defer os.RemoveAll(folder)
	defer door.Close()
	if err := launchBy(s, p, filepath.Join(s.Dir, folder), readOnly); err != nil {
		return err
	}
	if err := door.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if b.conn, err = door.AcceptUnix(); err != nil {
		return fmt.Errorf("no agent came to the socket: %w", err)
	}
	if err := b.hello(); err != nil {
		b.conn.Close() // the agent ends then
		return err
	}
	b.limits, err = cgroup.Of(b.first.PID)
	if err != nil {
		b.close()
	}
	return err
}

// openDoor makes a folder with a socket to which whoever sees it may come; the folders above keep others on the host out.
func openDoor(folder string) (*net.UnixListener, error) {
	if err := os.RemoveAll(folder); err != nil { // a predecessor died
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, wire.AgentSocket)
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var passed error
		err := raw.Control(func(fd uintptr) { // connections inherit it; see wrap
			passed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
		})
		return errors.Join(err, passed)
	}}
	l, err := config.Listen(context.Background(), "unixpacket", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil {
		l.Close()
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// launchBy runs the launcher's program.
func launchBy(s wire.Setup, p sandbox.Profile, control string, readOnly bool) error {
	guest, err := os.Executable()
	if err != nil {
		return err
	}
	l := wire.Launch{
		Spec: s.Launcher.Spec, Sandbox: sandbox.ID(filepath.Base(s.Dir)), Guest: guest, Control: control,
		Workspace: filepath.Join(s.Dir, wire.WorkspaceDir), ReadOnly: readOnly, UID: s.UID, GID: s.UID, Profile: p,
	}
	if s.UID == 0 {
		l.UID, l.GID = os.Geteuid(), os.Getegid()
	}
	in, err := json.Marshal(l)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), launchPatience)
	defer cancel()
	var said firstBytes
	cmd := exec.CommandContext(ctx, s.Launcher.Program)
	cmd.Env, cmd.Stdin, cmd.Stderr, cmd.WaitDelay = []string{}, bytes.NewReader(in), &said, time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("launch: %w: %s", err, bytes.TrimSpace(said.text))
	}
	return nil
}

package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"belay/sandbox"
	"belay/sandbox/process/cgroup"
	"belay/sandbox/process/wire"
)

// patience is how long a killed supervisor may take to be gone, startPatience how long one may take to start.
const (
	patience      = 30 * time.Second
	startPatience = 90 * time.Second // a container on a busy host
)

// wake makes sure that a supervisor answers.
func (b *box) wake(ctx context.Context) error {
	if b.alive() {
		return nil
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if b.alive() { // another worker was faster
		return nil
	}
	if _, err = b.start(ctx); err != nil && b.alive() { // of a worker that died while it held the lock
		return nil
	}
	return err
}

// lock keeps other workers from starting a supervisor or destroying the sandbox. It is ErrNotFound when there is none.
func (b *box) lock(ctx context.Context) (func(), error) {
	if _, err := os.Stat(b.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, sandbox.ErrNotFound
	}
	unlock, err := flock(ctx, filepath.Join(b.dir, wire.StartLock))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sandbox.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	// While we waited the folder may have been destroyed.
	if _, err := os.Stat(filepath.Join(b.dir, wire.ProfileFile)); errors.Is(err, fs.ErrNotExist) {
		unlock()
		return nil, sandbox.ErrNotFound
	}
	return unlock, nil
}

// start starts a supervisor, which outlives this process, and waits until it is ready.
func (b *box) start(ctx context.Context) (wire.Ready, error) {
	var ready wire.Ready
	log, err := os.OpenFile(filepath.Join(b.dir, "supervisor.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return ready, err
	}
	defer log.Close()
	cmd := exec.Command(b.runtime.guest, "supervisor")
	cmd.Dir, cmd.Env, cmd.Stderr = "/", []string{}, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return ready, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return ready, err
	}
	if err := cmd.Start(); err != nil {
		return ready, err
	}
	reap := make(chan struct{})
	answered := make(chan error, 1)
	go func() {
		answered <- errors.Join(wire.Send(in, b.setup()), in.Close(), wire.Receive(out, &ready))
		close(reap)
	}()
	go func() { // its end is of no interest, but it must be collected
		<-reap
		_ = cmd.Wait()
	}()
	select {
	case err = <-answered:
	case <-time.After(startPatience):
		err = fmt.Errorf("not ready after %v", startPatience)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = cmd.Process.Kill() // if it is not dead already
		return wire.Ready{}, fmt.Errorf("start supervisor (see %s): %w", log.Name(), err)
	}
	b.runtime.log.Info("supervisor started", "sandbox", b.id, "pid", cmd.Process.Pid, "error", ready.Error)
	return ready, readyError(ready)
}

func readyError(r wire.Ready) error {
	switch {
	case r.Error == "":
		return nil
	case r.Unsupported:
		return fmt.Errorf("%w: %s", sandbox.ErrUnsupported, r.Error)
	}
	return fmt.Errorf("start sandbox: %s", r.Error)
}

func (b *box) setup() wire.Setup {
	host := sha256.Sum256([]byte(b.dir)) // ids are unique in a state folder only
	return wire.Setup{
		Dir: b.dir, Bwrap: b.runtime.config.Bwrap, Cgroup: b.runtime.config.Cgroup, Filter: b.runtime.filter,
		Name: "belay-" + hex.EncodeToString(host[:4]) + "-" + string(b.id), UID: b.runtime.uid(), Launcher: b.runtime.config.Launcher,
	}
}

// Destroy implements sandbox.Runtime. It works as well on what a crash left half made or half destroyed.
func (r *Runtime) Destroy(ctx context.Context, id sandbox.ID) error {
	if err := id.Check(); err != nil {
		return fmt.Errorf("destroy sandbox: %w", err)
	}
	b := &box{runtime: r, id: id, dir: r.folder(id)}
	if _, err := os.Stat(b.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := flock(ctx, filepath.Join(b.dir, wire.StartLock))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", id, err)
	}
	defer unlock()
	if err := b.destroy(); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", id, err)
	}
	return nil
}

func (b *box) destroy() error {
	var supervisor wire.Process
	err := wire.ReadFile(filepath.Join(b.dir, wire.SupervisorFile), &supervisor)
	if err == nil {
		err = supervisor.Kill(patience)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := wire.Reap(b.dir); err != nil {
		return err
	}
	var group cgroup.Group
	if err := wire.ReadFile(filepath.Join(b.dir, wire.CgroupFile), &group); err == nil {
		err = group.Remove()
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return removeAll(b.dir)
}

// removeAll removes a folder in which commands may have made folders that nobody may enter.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := openUp(root, "."); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// openUp lets the owner into every folder below one.
func openUp(root *os.Root, dir string) error {
	if err := root.Chmod(dir, 0o700); err != nil {
		return err
	}
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, openUp(root, filepath.Join(dir, e.Name())))
		}
	}
	return err
}

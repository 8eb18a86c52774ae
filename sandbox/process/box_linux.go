package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"belay/sandbox"
	"belay/sandbox/process/wire"
)

// box is a sandbox as the worker knows it: a folder, and whoever answers on the socket in it.
type box struct {
	runtime *Runtime
	id      sandbox.ID
	dir     string
}

// attempts is how many supervisors one Exec may see die before it gives up.
const attempts = 3

// Exec implements sandbox.Sandbox.
func (b *box) Exec(ctx context.Context, id sandbox.ExecID, c sandbox.Command) (sandbox.Result, error) {
	if err := errors.Join(id.Check(), c.Check()); err != nil {
		return sandbox.Result{}, fmt.Errorf("sandbox %s: %w", b.id, err)
	}
	var err error
	for range attempts {
		var reply wire.Reply
		reply, err = b.exec(ctx, id, c)
		if err == nil {
			err = failure(reply)
			if err == nil {
				return reply.Result, nil
			}
			return sandbox.Result{}, fmt.Errorf("sandbox %s: execution %s: %w", b.id, id, err)
		}
		if !errors.Is(err, errGone) {
			break
		}
		// The supervisor died. The next one knows whether the command had started.
	}
	if errors.Is(err, errGone) {
		err = fmt.Errorf("%w: %w", sandbox.ErrLost, err)
	}
	return sandbox.Result{}, fmt.Errorf("sandbox %s: execution %s: %w", b.id, id, err)
}

// errGone means that a supervisor ended before it answered.
var errGone = errors.New("supervisor ended")

// exec asks the supervisor once.
func (b *box) exec(ctx context.Context, id sandbox.ExecID, c sandbox.Command) (wire.Reply, error) {
	if errors.Is(context.Cause(ctx), sandbox.ErrDetached) {
		return wire.Reply{}, sandbox.ErrDetached
	}
	// A supervisor is found, or started, even for a cancelled command: it must know that this id never starts.
	conn, err := b.connect(context.WithoutCancel(ctx))
	if err != nil {
		return wire.Reply{}, err
	}
	defer conn.Close()
	if ctx.Err() != nil {
		if err := b.stop(id); err != nil {
			return wire.Reply{}, err
		}
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		if errors.Is(context.Cause(ctx), sandbox.ErrDetached) {
			conn.Close()
		} else if err := b.stop(id); err != nil {
			b.runtime.log.Warn("stop command", "sandbox", b.id, "exec", id, "error", err)
		}
	}()
	reply, err := ask(conn, wire.Request{Op: wire.OpExec, Exec: id, Command: &c})
	if err != nil && errors.Is(context.Cause(ctx), sandbox.ErrDetached) {
		return wire.Reply{}, sandbox.ErrDetached
	}
	return reply, err
}

// stop tells whichever supervisor there is to end a command or never to start it.
func (b *box) stop(id sandbox.ExecID) error {
	conn, err := b.dial()
	if err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	defer conn.Close()
	reply, err := ask(conn, wire.Request{Op: wire.OpStop, Exec: id})
	if err != nil {
		return err
	}
	return failure(reply)
}

func ask(conn net.Conn, req wire.Request) (wire.Reply, error) {
	var reply wire.Reply
	if err := wire.Send(conn, req); err != nil {
		return reply, fmt.Errorf("%w: %w", errGone, err)
	}
	if err := wire.Receive(conn, &reply); err != nil {
		return reply, fmt.Errorf("%w: %w", errGone, err)
	}
	return reply, nil
}

func failure(r wire.Reply) error {
	switch r.Failure {
	case "":
		return nil
	case wire.Lost:
		return fmt.Errorf("%w: %s", sandbox.ErrLost, r.Message)
	case wire.Conflict:
		return sandbox.ErrConflict
	}
	return fmt.Errorf("not started: %s", r.Message)
}

// Workspace implements sandbox.Sandbox. Where the worker is root, files written through it become the commands' own when
// the next command starts.
func (b *box) Workspace() (*os.Root, error) {
	root, err := os.OpenRoot(filepath.Join(b.dir, wire.WorkspaceDir))
	if errors.Is(err, fs.ErrNotExist) {
		err = sandbox.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: workspace: %w", b.id, err)
	}
	return root, nil
}

// Frozen implements sandbox.Sandbox.
func (b *box) Frozen(ctx context.Context, f func() error) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return fmt.Errorf("sandbox %s: freeze: %w", b.id, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	reply, err := ask(conn, wire.Request{Op: wire.OpFreeze})
	if err == nil {
		err = failure(reply)
	}
	if err != nil {
		return fmt.Errorf("sandbox %s: freeze: %w", b.id, err)
	}
	if err := f(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // it may have thawed while f worked
		return fmt.Errorf("sandbox %s: freeze: %w", b.id, err)
	}
	return nil
}

// connect finds the supervisor, or starts one.
func (b *box) connect(ctx context.Context) (net.Conn, error) {
	if conn, err := b.dial(); err == nil {
		return conn, nil
	}
	if err := b.wake(ctx); err != nil {
		return nil, err
	}
	conn, err := b.dial()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGone, err)
	}
	return conn, nil
}

// dial connects to the supervisor's socket, by way of a descriptor of its folder: a socket's path may have 108 bytes only.
func (b *box) dial() (net.Conn, error) {
	dir, err := os.Open(b.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return net.Dial("unix", "/proc/self/fd/"+strconv.Itoa(int(dir.Fd()))+"/"+wire.Socket)
}

// alive says whether a supervisor answers the door.
func (b *box) alive() bool {
	conn, err := b.dial()
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"belay/sandbox"
	"belay/sandbox/process/wire"
)

// takeTurn waits until the command may run: the one that writes, and a few that only read.
func (s *supervisor) takeTurn(e *execution) wire.Reply {
	turn := s.writer
	if e.command.ReadOnly {
		turn = s.readers
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-e.stopped:
	case <-s.main.dead:
		return notStarted(errors.New("the sandbox ended"))
	}
	select {
	case <-e.stopped:
		if err := writeOutcome(e.id, outcome{Digest: e.digest, Result: neverStarted}); err != nil {
			return notStarted(err)
		}
		return wire.Reply{Result: neverStarted}
	default:
	}
	r := &job{supervisor: s, execution: e, out: output{
		keep: e.command.KeepOutput, max: e.command.MaxOutput, path: filepath.Join(wire.ExecDir(e.id), outputFile),
	}}
	defer r.release()
	if err := r.start(); err != nil {
		return notStarted(err)
	}
	result, err := r.wait()
	if errors.Is(err, errNoProcess) {
		return notStarted(errors.Join(err, dropClaim(e.id)))
	}
	if err != nil {
		o := outcome{Digest: e.digest, Lost: true}
		return wire.Reply{Failure: wire.Lost, Message: errors.Join(err, writeOutcome(e.id, o)).Error()}
	}
	if err := writeOutcome(e.id, outcome{Digest: e.digest, Result: result}); err != nil {
		return wire.Reply{Failure: wire.Lost, Message: err.Error()}
	}
	return wire.Reply{Result: result}
}

// job is a command on its way through a box.
type job struct {
	*supervisor
	*execution
	box     *box
	state   *os.File // where a session's shell leaves its state
	out     output
	drained chan error
	started time.Time
	ooms    int64
}

// start brings the command to life. After an error it has not started, and its claim is gone.
func (r *job) start() error {
	r.gate.RLock()
	defer r.gate.RUnlock()
	if r.setup.UID != 0 {
		r.adopting.Lock()
		err := adopt(wire.WorkspaceDir, r.setup.UID)
		r.adopting.Unlock()
		if err != nil {
			return err
		}
	}
	r.box = r.main
	if r.command.ReadOnly {
		box, err := newBox(string(r.id), r.setup, r.profile, r.group, true)
		if err != nil {
			return err
		}
		r.box = box
	}
	if err := writeClaim(r.id, r.digest); err != nil {
		return err
	}
	r.ooms, r.started = r.box.limits.OOMKills(), time.Now()
	r.mu.Lock()
	r.busy[r.box] = true
	r.mu.Unlock()
	if err := r.hand(); err != nil {
		return errors.Join(err, dropClaim(r.id))
	}
	return nil
}

// hand gives the command to the agent, with its descriptors, and waits until it has become the program asked for.
func (r *job) hand() error {
	session, err := loadSession(r.command.Session)
	if err != nil {
		return err
	}
	var ours []*os.File
	defer func() {
		for _, f := range ours {
			f.Close()
		}
	}()
	what := becomes(r.command, r.profile.Env)
	entrances, err := r.group.Entrances()
	if err != nil {
		return err
	}
	ours, what.Entrances = append(ours, entrances...), len(entrances)
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	ours = append(ours, null)
	out, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	r.drained = make(chan error, 1)
	go func() { defer out.Close(); r.drained <- r.out.drain(out) }()
	ours = append(ours, outW)
	failure, failureW, err := os.Pipe()
	if err != nil {
		return err
	}
	ours = append(ours, failure, failureW)
	spec, err := json.Marshal(what)
	if err != nil {
		return err
	}
	specFile, err := memory("command", spec)
	if err != nil {
		return err
	}
	ours = append(ours, specFile)
	restore, err := memory("state", session)
	if err != nil {
		return err
	}
	ours = append(ours, restore)
	if r.state, err = memory("state", nil); err != nil {
		return err
	}
	files := append([]*os.File{null, outW, outW, specFile, failureW, restore, r.state}, entrances...)
	if err := r.box.run(files); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	outW.Close()
	failureW.Close()
	said, err := io.ReadAll(io.LimitReader(failure, 4096))
	if err != nil {
		return err
	}
	if len(said) == 0 {
		return nil
	}
	select { // the process that failed ends; its end is not the next command's
	case <-r.box.events:
	case <-r.box.dead:
	}
	return errors.New(string(said))
}

// errNoProcess means that the agent could not make a process for the command.
var errNoProcess = errors.New("no process for the command")

// wait sees the command to its end. An error means that the end is not known.
func (r *job) wait() (sandbox.Result, error) {
	var result sandbox.Result
	timeout := time.NewTimer(r.command.Timeout)
	defer timeout.Stop()
	stop, kill, give := r.stopped, (<-chan time.Time)(nil), (<-chan time.Time)(nil)
	warn := func() error {
		stop, kill = nil, time.After(r.command.Grace)
		timeout.Stop()
		return r.box.signal(unix.SIGTERM)
	}
	for {
		var err error
		select {
		case ev := <-r.box.events:
			return r.finish(result, ev)
		case <-r.box.dead:
			return result, fmt.Errorf("execution %s: the sandbox ended while it ran", r.id)
		case <-timeout.C:
			result.TimedOut = true
			err = warn()
		case <-stop:
			result.Stopped = true
			err = warn()
		case <-kill:
			kill, give = nil, time.After(patience)
			err = r.box.signal(unix.SIGKILL)
		case <-give:
			r.gate.RLock() // a frozen process dies when it is thawed
			r.gate.RUnlock()
			r.box.close()
		}
		if err != nil {
			r.log.Warn("signal", "exec", r.id, "error", err) // the box is dead, which the next turn sees
		}
	}
}

// finish makes the result of a command that has ended, with everything that it started.
func (r *job) finish(result sandbox.Result, ev event) (sandbox.Result, error) {
	if ev.Error != "" {
		return result, fmt.Errorf("execution %s: %w: %s", r.id, errNoProcess, ev.Error)
	}
	result.Exit, result.Signal, result.Left = ev.Exit, ev.Signal, ev.Left
	result.Duration = time.Since(r.started)
	result.OOM = r.box.limits.OOMKills() > r.ooms
	if err := <-r.drained; err != nil {
		r.log.Warn("output", "exec", r.id, "error", err)
	}
	if err := r.out.finish(&result, r.spoolPath(r.id)); err != nil {
		r.log.Warn("output", "exec", r.id, "error", err)
	}
	if r.command.Session != "" && !result.TimedOut && !result.Stopped {
		dir, err := saveSession(r.command.Session, r.state, !r.command.ReadOnly)
		if err != nil {
			return result, err
		}
		result.Dir = dir
	}
	return result, nil
}

// release gives back what the run held.
func (r *job) release() {
	r.mu.Lock()
	delete(r.busy, r.box)
	r.mu.Unlock()
	if r.state != nil {
		r.state.Close()
	}
	if r.box != nil && r.box != r.main {
		r.box.close()
	}
}

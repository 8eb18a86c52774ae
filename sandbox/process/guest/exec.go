//go:build linux

package main

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"belay/sandbox"
	"belay/sandbox/process/wire"
)

// execution is one that this supervisor has been asked for and that has not ended.
type execution struct {
	id      sandbox.ExecID
	command sandbox.Command
	digest  string
	done    chan struct{} // closed when reply is set
	reply   wire.Reply
	stopped chan struct{} // closed by a stop request
	once    sync.Once
}

// exec runs a command, attaches to it or replays it.
func (s *supervisor) exec(id sandbox.ExecID, c sandbox.Command) wire.Reply {
	if err := errors.Join(id.Check(), c.Check()); err != nil {
		return notStarted(err)
	}
	digest := c.Digest()
	s.mu.Lock()
	e, attached := s.running[id]
	if !attached {
		old, found, err := readOutcome(id)
		if err != nil || found {
			s.mu.Unlock()
			return replay(id, digest, old, err)
		}
		e = &execution{id: id, command: c.WithDefaults(), digest: digest, done: make(chan struct{}), stopped: make(chan struct{})}
		s.running[id] = e
		go s.perform(e)
	}
	s.mu.Unlock()
	if e.digest != digest {
		return wire.Reply{Failure: wire.Conflict, Message: string(id)}
	}
	<-e.done
	reply := e.reply
	reply.Result.Attached = attached
	return reply
}

func replay(id sandbox.ExecID, digest string, o outcome, err error) wire.Reply {
	switch {
	case err != nil:
		return wire.Reply{Failure: wire.Lost, Message: err.Error()}
	case o.Digest != "" && o.Digest != digest:
		return wire.Reply{Failure: wire.Conflict, Message: string(id)}
	case o.Lost:
		return wire.Reply{Failure: wire.Lost, Message: fmt.Sprintf("execution %s: its supervisor died while it ran", id)}
	}
	o.Result.Replayed = true
	return wire.Reply{Result: o.Result}
}

func notStarted(err error) wire.Reply {
	return wire.Reply{Failure: wire.NotStarted, Message: err.Error()}
}

// stop ends a command. One that has not been asked for yet is marked, so that it never starts.
func (s *supervisor) stop(id sandbox.ExecID) wire.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.running[id]; ok {
		e.once.Do(func() { close(e.stopped) })
		return wire.Reply{}
	}
	if _, found, err := readOutcome(id); err != nil || found {
		return wire.Reply{}
	}
	if err := writeOutcome(id, outcome{Result: neverStarted}); err != nil {
		return notStarted(err)
	}
	return wire.Reply{}
}

// neverStarted is the result of a command that was stopped before it started.
var neverStarted = sandbox.Result{Exit: 128 + int(unix.SIGTERM), Signal: int(unix.SIGTERM), Stopped: true}

// perform takes an execution from its turn to its result.
func (s *supervisor) perform(e *execution) {
	e.reply = s.takeTurn(e)
	if e.reply.Failure != "" {
		s.log.Warn("execution", "exec", e.id, "failure", e.reply.Failure, "message", e.reply.Message)
	}
	s.mu.Lock()
	delete(s.running, e.id)
	s.mu.Unlock()
	close(e.done)
}

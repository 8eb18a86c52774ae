//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"belay/sandbox"
	"belay/sandbox/process/wire"
)

// The journal says of each execution what is known: a claim, durable before the command starts, and a result, durable
// before anyone is told. A claim without a result, whose supervisor is dead, is a command of unknown end. It is relative to
// the current folder.

const (
	claimFile  = "claim.json"
	resultFile = "result.json"
	outputFile = "output"
)

// claim says that a command may have had effects. What it is stays out: its variables may be secret.
type claim struct {
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
}

// outcome is how an execution ended.
type outcome struct {
	Digest string         `json:"digest,omitempty"` // none: it was stopped before anyone said what it was
	Lost   bool           `json:"lost,omitempty"`
	Result sandbox.Result `json:"result"`
}

// recoverJournal makes the executions that a dead supervisor left, lost. It runs before anything is started.
func recoverJournal() error {
	entries, err := os.ReadDir(wire.ExecsDir)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	for _, e := range entries {
		id := sandbox.ExecID(strings.TrimPrefix(e.Name(), "x-"))
		if _, found, err := readOutcome(id); err != nil {
			return err
		} else if found {
			continue
		}
		var c claim
		err := wire.ReadFile(filepath.Join(wire.ExecDir(id), claimFile), &c)
		if errors.Is(err, fs.ErrNotExist) { // it was never started
			err = os.RemoveAll(wire.ExecDir(id))
		} else if err == nil {
			err = writeOutcome(id, outcome{Digest: c.Digest, Lost: true})
		}
		if err != nil {
			return fmt.Errorf("journal: execution %s: %w", id, err)
		}
	}
	return nil
}

func writeClaim(id sandbox.ExecID, digest string) error {
	if err := makeExecDir(id); err != nil {
		return err
	}
	if err := wire.WriteFile(filepath.Join(wire.ExecDir(id), claimFile), claim{Digest: digest, At: time.Now()}); err != nil {
		return fmt.Errorf("journal: claim %s: %w", id, err)
	}
	return nil
}

// dropClaim takes back the claim of a command that is known not to have started.
func dropClaim(id sandbox.ExecID) error {
	if err := os.RemoveAll(wire.ExecDir(id)); err != nil {
		return fmt.Errorf("journal: drop %s: %w", id, err)
	}
	return wire.SyncDir(wire.ExecsDir)
}

func writeOutcome(id sandbox.ExecID, o outcome) error {
	if err := makeExecDir(id); err != nil {
		return err
	}
	if err := wire.WriteFile(filepath.Join(wire.ExecDir(id), resultFile), o); err != nil {
		return fmt.Errorf("journal: result %s: %w", id, err)
	}
	return nil
}

func readOutcome(id sandbox.ExecID) (outcome, bool, error) {
	var o outcome
	err := wire.ReadFile(filepath.Join(wire.ExecDir(id), resultFile), &o)
	if errors.Is(err, fs.ErrNotExist) {
		return o, false, nil
	}
	if err != nil {
		return o, false, fmt.Errorf("journal: result %s: %w", id, err)
	}
	return o, true, nil
}

func makeExecDir(id sandbox.ExecID) error {
	err := os.Mkdir(wire.ExecDir(id), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = wire.SyncDir(wire.ExecsDir)
	}
	if err != nil {
		return fmt.Errorf("journal: %s: %w", id, err)
	}
	return nil
}

// Package sandbox is the port to isolated execution: it runs a command somewhere that is not the worker, and finds the
// command again by its id after a crash of the worker.
//
// An implementation is a Runtime that passes the conformance suite in sandbox/sandboxtest.
package sandbox

import (
	"context"
	"errors"
	"os"
	"time"
)

// Errors that callers branch on; an implementation wraps them.
var (
	// ErrLost means that the sandbox is gone, or its execution died with it: whether the command took effect is unknown.
	ErrLost = errors.New("sandbox lost")
	// ErrConflict means that an execution id was used before with another command.
	ErrConflict = errors.New("execution id already used for another command")
	// ErrNotFound means that there never was, or no longer is, a sandbox of that id on this host.
	ErrNotFound = errors.New("no such sandbox")
	// ErrUnsupported means that this host can't give what the profile demands.
	ErrUnsupported = errors.New("not possible on this host")
	// ErrBusy means that the host is at its limit of sandboxes; it may work later.
	ErrBusy = errors.New("host is at its limit of sandboxes")
)

// ID names a sandbox on its host: [a-z0-9-], at most 64 bytes. It carries the run and the generation, so a restored
// sandbox never answers for the one it replaces.
type ID string

// ExecID names one execution in a sandbox: [a-zA-Z0-9._-], at most 128 bytes. It never depends on an activity's attempt.
type ExecID string

// Workspace is where the commands in a sandbox find their files.
const Workspace = "/workspace"

// Profile says how a sandbox is confined.
type Profile struct {
	Name       string            `json:"name" yaml:"name"`
	MemoryMiB  int               `json:"memory_mib" yaml:"memory_mib"` // all processes together
	PIDs       int               `json:"pids" yaml:"pids"`
	CPUPercent int               `json:"cpu_percent" yaml:"cpu_percent"` // of one core: 150 is a core and a half
	TmpMiB     int               `json:"tmp_mib" yaml:"tmp_mib"`
	Env        map[string]string `json:"env,omitempty" yaml:"env"`
	// Unconfined lists what the host may lack without the sandbox being refused: "memory", "pids", "cpu", "seccomp". What
	// is listed and lacking becomes a warning, what is not listed and lacking is ErrUnsupported.
	Unconfined []string `json:"unconfined,omitempty" yaml:"unconfined"`
}

// Report is what Probe found out about this host.
type Report struct {
	Level    string   `json:"level"`              // the isolation level that this runtime gives
	Runtime  string   `json:"runtime"`            // what gives it, with its version
	Missing  []string `json:"missing,omitempty"`  // capabilities of Profile.Unconfined that the host lacks
	Warnings []string `json:"warnings,omitempty"` // reason and remedy of each
}

// Runtime makes and finds sandboxes on one host. Every method is safe to repeat.
type Runtime interface {
	// Probe makes a canary sandbox and tries what must not be possible in it. An error says what to install or allow.
	Probe(ctx context.Context, p Profile) (Report, error)
	// Create makes a sandbox with an empty workspace, or finds the one of that id. The profile of an existing one stays.
	Create(ctx context.Context, id ID, p Profile) (Sandbox, error)
	// Open finds a sandbox. It is ErrNotFound when there is none, ErrLost when its processes can't be started again.
	Open(ctx context.Context, id ID) (Sandbox, error)
	// List names the sandboxes of this host.
	List(ctx context.Context) ([]ID, error)
	// Destroy ends everything that runs in a sandbox and removes what it left on the host. An absent one is no error.
	Destroy(ctx context.Context, id ID) error
}

// Sandbox is one isolated place with a workspace, which its commands see as Workspace.
type Sandbox interface {
	// Exec runs a command, or attaches to it when it runs already, or gives its recorded result when it has ended. A
	// cancelled ctx stops the command and everything it started, unless its cause is ErrDetached. An error means that the
	// command's effect is unknown (ErrLost) or that it was not started (every other).
	Exec(ctx context.Context, id ExecID, c Command) (Result, error)
	// Workspace opens the workspace folder for reading and writing from outside, confined to it. The caller closes it.
	Workspace() (*os.Root, error)
	// Frozen calls f while no process in the sandbox runs.
	Frozen(ctx context.Context, f func() error) error
}

// ErrDetached as the cause of a cancelled context makes Exec return at once and leaves the command running, so that a
// worker can stop and the next one attach.
var ErrDetached = errors.New("detached from a running command")

// Command is what to run.
type Command struct {
	// Script is run by bash: "bash -c". Argv is run as it is. One of the two is set.
	Script string   `json:"script,omitempty"`
	Argv   []string `json:"argv,omitempty"`
	// Dir is the folder to start in, absolute as the sandbox sees it; empty: the session's, else Workspace.
	Dir string            `json:"dir,omitempty"`
	Env map[string]string `json:"env,omitempty"`
	// Session names the shell state (working folder, exported variables) that a Script starts from and leaves. Empty: none.
	Session string `json:"session,omitempty"`
	// ReadOnly mounts the workspace read-only. Such a command may run at the same time as others; it starts from its
	// Session's state and leaves none.
	ReadOnly bool `json:"read_only,omitempty"`
	// Timeout ends the command and everything it started: TERM, and KILL after Grace.
	Timeout time.Duration `json:"timeout"`
	Grace   time.Duration `json:"grace,omitempty"` // 2s
	// KeepOutput is how many bytes of output the result holds, the first and the last half of it. What is beyond is in
	// Result.Spool, up to MaxOutput.
	KeepOutput int   `json:"keep_output,omitempty"` // 64 KiB
	MaxOutput  int64 `json:"max_output,omitempty"`  // 64 MiB
}

// Result is how a command ended. A non-zero exit is a result, not an error.
type Result struct {
	Exit     int           `json:"exit"`             // 128+signal when a signal ended it
	Signal   int           `json:"signal,omitempty"` // the signal, if one did
	TimedOut bool          `json:"timed_out,omitempty"`
	Stopped  bool          `json:"stopped,omitempty"` // by a cancelled ctx
	OOM      bool          `json:"oom,omitempty"`     // the kernel killed something for want of memory
	Output   []byte        `json:"output,omitempty"`  // stdout and stderr as they came, head and tail
	Head     int           `json:"head,omitempty"`    // bytes of Output before the gap, where there is one
	Omitted  int64         `json:"omitted,omitempty"` // bytes left out in the gap
	Total    int64         `json:"total"`             // bytes that the command wrote
	Spool    string        `json:"spool,omitempty"`   // host file with the output up to MaxOutput, where Output has a gap
	Dir      string        `json:"dir,omitempty"`     // working folder at the end, for a Session
	Left     int           `json:"left,omitempty"`    // processes that it left behind and that were killed
	Duration time.Duration `json:"duration"`
	Attached bool          `json:"attached,omitempty"` // this call found the command running
	Replayed bool          `json:"replayed,omitempty"` // this call found the command ended
}

//go:build linux

package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"belay/sandbox"
)

// What the folder of a sandbox holds. A sandbox's commands see nothing of it but the workspace.
const (
	ProfileFile    = "profile.json"    // sandbox.Profile; written last when a sandbox is made
	StartLock      = "start.lock"      // held by a worker that starts a supervisor, or destroys the sandbox
	SupervisorLock = "supervisor.lock" // held by the supervisor
	SupervisorFile = "supervisor.json" // Process, the last supervisor
	Socket         = "control.sock"
	WorkspaceDir   = "workspace"
	ExecsDir       = "execs"    // x-<execution id>/{claim.json,result.json,output}
	SessionsDir    = "sessions" // <session>, a script
	BoxesDir       = "boxes"    // <name>.json, a Process: first process of a running box
	CgroupFile     = "cgroup.json"
	AgentsDir      = "agents" // <name>/AgentSocket while a launcher starts an agent
	AgentSocket    = "agent.sock"
)

// Setup is what a worker gives a new supervisor on its standard input.
type Setup struct {
	Dir    string `json:"dir"`    // folder of the sandbox, absolute
	Bwrap  string `json:"bwrap"`  // absolute path
	Cgroup string `json:"cgroup"` // parent for the sandbox's cgroup; empty: found by itself
	Name   string `json:"name"`   // of the sandbox's cgroup, unique on the host
	Filter []byte `json:"filter"` // seccomp program; empty: none
	// UID is who commands are on the host, and who bubblewrap runs as. Zero: the supervisor's own user.
	UID int `json:"uid"`
	// Launcher starts agents in place of bubblewrap, and confines them: Bwrap, Cgroup and Filter then have no meaning.
	Launcher *Launcher `json:"launcher,omitempty"`
}

// Ready is what a new supervisor answers on its standard output, once.
type Ready struct {
	// Missing says what this host lacks, by the names of sandbox.Profile.Unconfined, with the reason.
	Missing map[string]string `json:"missing,omitempty"`
	// Error says why there is no sandbox.
	Error       string `json:"error,omitempty"`
	Unsupported bool   `json:"unsupported,omitempty"` // the error is for want of something in Missing
}

// Op says what a Request asks for.
type Op string

// The operations.
const (
	OpExec   Op = "exec"   // run, attach or replay; answered when the command has ended
	OpStop   Op = "stop"   // end a command, or never start it; answered at once
	OpFreeze Op = "freeze" // nothing runs from the answer until the connection closes
)

// Request is what a worker asks a supervisor, one a connection.
type Request struct {
	Op      Op               `json:"op"`
	Exec    sandbox.ExecID   `json:"exec,omitempty"`
	Command *sandbox.Command `json:"command,omitempty"`
}

// Failure classes what went wrong. The zero value is success.
type Failure string

// The failures.
const (
	Lost       Failure = "lost"        // the command started and its end is unknown
	Conflict   Failure = "conflict"    // the id belongs to another command
	NotStarted Failure = "not_started" // nothing happened
)

// Reply answers a Request.
type Reply struct {
	Result  sandbox.Result `json:"result"`
	Failure Failure        `json:"failure,omitempty"`
	Message string         `json:"message,omitempty"`
}

// MaxMessage bounds a message, in bytes; a result with the most output that may be kept fits.
const MaxMessage = 32 << 20

// Send writes one message.
func Send(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// Receive reads one message.
func Receive(r io.Reader, v any) error {
	return json.NewDecoder(io.LimitReader(r, MaxMessage)).Decode(v)
}

// ExecDir is the folder of one execution, relative to its sandbox's.
func ExecDir(id sandbox.ExecID) string { return filepath.Join(ExecsDir, "x-"+string(id)) }

// WriteFile puts a value, as JSON unless it is bytes, into a file: whole or not at all, and durably once it returns.
func WriteFile(path string, v any) error {
	b, ok := v.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the entries of a folder durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// ReadFile reads a JSON file.
func ReadFile(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

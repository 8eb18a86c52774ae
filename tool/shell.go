package tool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"belay/agent"
	"belay/sandbox"
)

//go:embed shell.md
var shellText string

// Bounds of one shell call, beside MaxText. shell.md says so.
const (
	defaultShellTimeout = 120 * time.Second
	maxShellTimeout     = 3600 * time.Second
	maxCommand          = 64 << 10        // bytes
	shellGrace          = 2 * time.Second // between TERM and KILL
	shellSession        = "main"
)

type shellArgs struct {
	Command   string `json:"command" jsonschema:"minLength=1,maxLength=65536" jsonschema_description:"What bash is to run; may have several lines."`
	Timeout   whole  `json:"timeout,omitempty" jsonschema:"minimum=1,maximum=3600" jsonschema_description:"Seconds after which the command and everything that it started is killed. Default 120, at most 3600; the task may allow less."`
	ReadsOnly bool   `json:"reads_only,omitempty" jsonschema_description:"Set it for a command that changes nothing: the workspace is read-only for it, it leaves no shell state, and it may run at the same time as others. Default false."`
}

func (a shellArgs) timeout() time.Duration {
	return cmp.Or(time.Duration(a.Timeout)*time.Second, defaultShellTimeout)
}

type shell struct{ described }

func newShell() Tool { return shell{describe[shellArgs]("shell", shellText)} }

// Plan of a command: it writes the whole workspace, unless it says that it only reads. What else it may do, policy finds
// out from the command.
func (shell) Plan(_ string, args json.RawMessage) (Plan, error) {
	a, err := readShell(args)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{
		Effect:    agent.EffectSandboxed,
		Risk:      agent.RiskLow,
		Resources: agent.Resources{Writes: []string{sandbox.Workspace}},
		Command:   a.Command,
		Summary:   summary(strings.TrimSpace(a.Command)),
		Timeout:   a.timeout(),
	}
	if a.ReadsOnly {
		p.Effect = agent.EffectPure
		p.Resources = agent.Resources{Reads: []string{sandbox.Workspace}}
	}
	return p, nil
}

func readShell(args json.RawMessage) (shellArgs, error) {
	a, err := read[shellArgs](args)
	switch {
	case err != nil:
		return a, err
	case strings.TrimSpace(a.Command) == "":
		return a, errors.New("command: blank; expected what bash is to run")
	case len(a.Command) > maxCommand:
		return a, fmt.Errorf("command: %d bytes; expected at most %d: write it into a file and run that", len(a.Command), maxCommand)
	case strings.ContainsRune(a.Command, 0):
		return a, errors.New("command: holds a NUL byte; expected a command without")
	}
	return a, nil
}

// Run runs the command, or finds what became of it when this call ran it before: the sandbox knows it by Env.Exec.
func (shell) Run(ctx context.Context, env Env, args json.RawMessage) (agent.Observation, error) {
	a, err := readShell(args)
	if err != nil {
		return invalid(env, err), nil
	}
	timeout := a.timeout()
	if env.Timeout > 0 {
		timeout = min(timeout, env.Timeout)
	}
	r, err := env.Sandbox.Exec(ctx, env.Exec, sandbox.Command{
		Script:     startIn(env.Dir) + a.Command,
		Session:    shellSession,
		ReadOnly:   a.ReadsOnly,
		Timeout:    timeout,
		Grace:      shellGrace,
		KeepOutput: MaxText,
	})
	if err != nil {
		return agent.Observation{}, failure(err, "call %s: run a command", env.Call)
	}
	o := agent.Observation{Call: env.Call, Duration: agent.Duration(r.Duration)}
	if !a.ReadsOnly { // such a call leaves the shell where it was
		o.Dir = r.Dir
	}
	if err := normalised(ctx, env, r, &o); err != nil {
		return agent.Observation{}, err
	}
	conclude(&o, r, a, timeout)
	return o, nil
}

// startIn is the beginning of a script that moves a session without a history to the folder that the task starts in. It
// is part of the script, and decides by the session's own state, so that the same call is always the same command for the
// sandbox, and a session that was lost with its host starts there again.
func startIn(dir string) string {
	if dir == "" || dir == sandbox.Workspace {
		return ""
	}
	return `[ -n "${BELAY_STARTED-}" ] || { cd '` + strings.ReplaceAll(dir, `'`, `'\''`) + `' && export BELAY_STARTED=1; }; `
}

package activities

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"belay/agent"
	"belay/sandbox"
	"belay/store"
	"belay/tool"
)

// ExecuteInput asks to perform one call. It carries the allow that the gate or a reviewer gave.
type ExecuteInput struct {
	Run  agent.RunRef `json:"run"`
	Step int          `json:"step"`
	// Head is the conversation whose last turn asks for the call. It is left out where it is what the run's step led to.
	Head agent.Digest `json:"head,omitempty"`
	Call agent.CallID `json:"call"`
	// Sandbox is left out where it is the run's first one.
	Sandbox sandbox.ID `json:"sandbox,omitempty"`
	// Allow is the digest of the action that was allowed. Approved says who allowed it, where a person had to.
	Allow    agent.Digest   `json:"allow"`
	Approved []agent.UserID `json:"approved,omitempty"`
	// Dir is where the run's shell is; empty: where the task starts.
	Dir string `json:"dir,omitempty"`
	// Edited holds the arguments that replace the model's, in the store.
	Edited agent.Digest `json:"edited,omitempty"`
	// Timeout is what the task allows, where that is less than the call's own.
	Timeout agent.Duration `json:"timeout,omitempty"`
	// Shared says that the call is one of several: the batch ends with a checkpoint for all. A call that runs alone and
	// changes the workspace ends with one of its own.
	Shared bool         `json:"shared,omitempty"`
	Notes  []agent.Note `json:"notes,omitempty"`
}

// Box is the sandbox that the call runs in.
func (in ExecuteInput) Box() sandbox.ID {
	if in.Sandbox == "" && in.Run.Run != "" {
		return SandboxID(in.Run, 1)
	}
	return in.Sandbox
}

// ExecuteOutput is what came of a call, in short.
type ExecuteOutput struct {
	Status      agent.CallStatus `json:"status"`
	Exit        int              `json:"exit,omitempty"` // of a command that ended by itself, and not with 0
	Observation agent.Digest     `json:"observation"`
	// Same is alike for results that say the same: of the same call, or of any call where it failed.
	Same     string         `json:"same,omitempty"`
	Tree     agent.Digest   `json:"tree,omitempty"`
	Duration agent.Duration `json:"duration,omitempty"`
	Skipped  []string       `json:"skipped,omitempty"`
	// Dir is where the run's shell is now, where the call took it elsewhere.
	Dir string `json:"dir,omitempty"`
}

// Execute performs one allowed call. It refuses one whose action is not exactly the allowed one, or which the rules of
// now would not let pass with that allow.
func (a *Activities) Execute(ctx context.Context, in ExecuteInput) (ExecuteOutput, error) {
	t := a.startAttempt(ctx)
	var out ExecuteOutput
	err := t.run(ctx, func(ctx context.Context) (err error) {
		out, err = a.execute(ctx, in, t)
		return err
	})
	return out, err
}

func (a *Activities) execute(ctx context.Context, in ExecuteInput, t *attempt) (ExecuteOutput, error) {
	got, spec, err := a.admitted(ctx, in)
	if err != nil {
		return ExecuteOutput{}, err
	}
	t.most = spec.Limits.MaxRetries
	id := in.Box()
	box, err := a.c.Sandbox.Open(ctx, id)
	if err != nil {
		return ExecuteOutput{}, sandboxError(id, err)
	}
	began := time.Now()
	o, err := got.tool.Run(ctx, a.env(in, spec, box), got.args)
	if err != nil {
		return ExecuteOutput{}, sandboxError(id, err)
	}
	if o.Duration == 0 {
		o.Duration = agent.Duration(time.Since(began))
	}
	out := ExecuteOutput{Status: o.Status, Duration: agent.Duration(time.Duration(o.Duration).Round(time.Millisecond))}
	if out.Same = Likeness(o.Status, o.Text); o.Status == agent.CallOK {
		out.Same = Likeness(o.Status, got.sameness()+o.Text)
	}
	if o.Dir != "" && o.Dir != cmp.Or(in.Dir, spec.dir()) {
		out.Dir = o.Dir
	}
	if o.Exit != nil {
		out.Exit = *o.Exit
	}
	if out.Observation, err = a.keepObservation(ctx, in, o); err != nil {
		return ExecuteOutput{}, err
	}
	if got.plan.Effect == agent.EffectSandboxed && !in.Shared {
		saved, err := a.save(ctx, in.Run, box, id)
		if err != nil {
			return ExecuteOutput{}, err
		}
		out.Tree, out.Skipped = saved.Tree, cutList(saved.Skipped, 20)
	}
	return out, nil
}

// admitted finds the call and holds it against the allow that it came with.
func (a *Activities) admitted(ctx context.Context, in ExecuteInput) (judged, loaded, error) {
	spec, err := a.spec(ctx, in.Run)
	if err != nil {
		return judged{}, spec, err
	}
	call, err := a.theCall(ctx, in)
	if err != nil {
		return judged{}, spec, err
	}
	j := a.judge(in.Run, in.Step, spec, in.Dir)
	got, err := j.look(call)
	if err != nil {
		return judged{}, spec, agent.Errorf(agent.ValidationError, "call %s: %w", in.Call, err)
	}
	switch {
	case !in.Allow.Valid() || got.digest != in.Allow:
		return judged{}, spec, agent.Errorf(agent.PolicyDenied, "call %s: the allow is for action %s, not for %s", in.Call, in.Allow.Short(), got.digest.Short())
	case got.plan.Question != "":
		return judged{}, spec, agent.Errorf(agent.PolicyDenied, "call %s: a question is answered, not run", in.Call)
	case got.decision.Verdict == agent.Deny:
		return judged{}, spec, agent.Errorf(agent.PolicyDenied, "call %s: policy now says deny: %s", in.Call, because(got.decision))
	case !reaches(j.level, got.decision.Sandbox):
		return judged{}, spec, agent.Errorf(agent.PolicyDenied, "call %s: it needs a sandbox of level %s, and this worker gives %s", in.Call, got.decision.Sandbox, j.level)
	case got.decision.Verdict == agent.RequireApproval && !j.approved(got.decision, in.Approved):
		return judged{}, spec, agent.Errorf(agent.PolicyDenied, "call %s: policy now asks for an approval: %s", in.Call, because(got.decision))
	}
	return got, spec, nil
}

func (a *Activities) theCall(ctx context.Context, in ExecuteInput) (agent.ToolCall, error) {
	head, err := a.headAfter(ctx, in.Run, in.Step, in.Head)
	if err != nil {
		return agent.ToolCall{}, err
	}
	calls, err := a.askedFor(ctx, in.Run, head)
	if err != nil {
		return agent.ToolCall{}, err
	}
	for _, c := range calls {
		if c.ID != in.Call {
			continue
		}
		if in.Edited != "" {
			args, err := a.tenant(in.Run).Get(ctx, in.Edited)
			if err != nil {
				return c, fmt.Errorf("edited arguments of call %s: %w", in.Call, err)
			}
			c.Arguments = string(args)
		}
		return c, nil
	}
	return agent.ToolCall{}, agent.Errorf(agent.StateError, "the reply at %s asks for no call %s", head.Short(), in.Call)
}

func (a *Activities) env(in ExecuteInput, spec loaded, box sandbox.Sandbox) tool.Env {
	return tool.Env{
		Call:    in.Call,
		Sandbox: box,
		Exec:    sandbox.ExecID(in.Call),
		Dir:     spec.dir(),
		Timeout: time.Duration(in.Timeout),
		Memory:  memory{tenant: a.tenant(in.Run), run: in.Run},
		Keep: func(ctx context.Context, spool string) (agent.Digest, int64, error) {
			f, err := os.Open(spool)
			if err != nil {
				return "", 0, agent.Errorf(agent.StateError, "whole output of call %s: %w", in.Call, err)
			}
			defer f.Close()
			return a.tenant(in.Run).PutFrom(ctx, f)
		},
	}
}

// memory keeps a tool's values with the run, so that they hold in a restored sandbox too.
type memory struct {
	tenant *store.Tenant
	run    agent.RunRef
}

func (m memory) name(key string) string {
	sum := sha256.Sum256([]byte(key))
	return record(m.run, "memory", hex.EncodeToString(sum[:8]))
}

func (m memory) Get(ctx context.Context, key string) (string, bool, error) {
	b, err := m.tenant.Record(ctx, m.name(key))
	if errors.Is(err, store.ErrNotFound) {
		return "", false, nil
	}
	return string(b), err == nil, err
}

func (m memory) Set(ctx context.Context, key, value string) error {
	return m.tenant.PutRecord(ctx, m.name(key), []byte(value))
}

func (a *Activities) keepObservation(ctx context.Context, in ExecuteInput, o agent.Observation) (agent.Digest, error) {
	o.Call = in.Call
	b, err := json.Marshal(o)
	if err != nil {
		return "", agent.Errorf(agent.StateError, "observation of call %s: %w", in.Call, err)
	}
	d, err := a.tenant(in.Run).Put(ctx, b)
	if err != nil {
		return "", fmt.Errorf("observation of call %s: %w", in.Call, err)
	}
	return d, nil
}

// Likeness is a short hash of what a call led to, alike for results that say the same.
func Likeness(s agent.CallStatus, text string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s", s, text)
	return hex.EncodeToString(h.Sum(nil))[:agent.ShortDigest]
}

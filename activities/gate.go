package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"belay/agent"
	"belay/sandbox"
)

// GateInput asks whether the calls of a reply may run.
type GateInput struct {
	Run  agent.RunRef `json:"run"`
	Step int          `json:"step"`
	// Head is the conversation whose last turn asks for the calls.
	Head agent.Digest `json:"head"`
	// Dir is where the run's shell is; empty: where the task starts.
	Dir string `json:"dir,omitempty"`
	// Edits replaces the arguments of calls, by call; only these calls are judged then.
	Edits map[agent.CallID]json.RawMessage `json:"edits,omitempty"`
	// Policy is what the run began under: a verdict names its policy only where that is another one.
	Policy agent.Digest `json:"policy,omitempty"`
}

// GateOutput holds one verdict per call, in the order of the calls.
type GateOutput struct {
	Verdicts []Verdict `json:"verdicts"`
	// Policy is the digest of the rules that judged, where it is not the one that the run began under.
	Policy agent.Digest `json:"policy,omitempty"`
}

// Gating says what is to happen with a call.
type Gating string

// The outcomes of the gate. The zero value denies.
const (
	GateDeny     Gating = ""
	GateInvalid  Gating = "invalid"  // the model must mend it
	GateApproval Gating = "approval" // a person must allow it
	GateAllow    Gating = "allow"
	GateQuestion Gating = "question" // a person answers it
)

// Verdict is what the gate says about one call.
type Verdict struct {
	Call    agent.CallID `json:"call"`
	Tool    string       `json:"tool"`
	Gate    Gating       `json:"gate,omitempty"`
	Digest  agent.Digest `json:"digest,omitempty"` // of the action; absent for what is invalid
	Effect  agent.Effect `json:"effect,omitempty"`
	Risk    agent.Risk   `json:"risk,omitempty"`
	Summary string       `json:"summary,omitempty"`
	// Resources are left out where they are the whole workspace; see Touches.
	agent.Resources
	Rules []string `json:"rules,omitempty"` // that decided
	// Why says what is wrong, or why policy decided so; left out for what is allowed.
	Why string `json:"why,omitempty"`
	// Reviewers may approve; nobody named: anyone.
	Reviewers []agent.UserID `json:"reviewers,omitempty"`
	// Arguments are shown to whoever decides, cut to MaxShown.
	Arguments string `json:"arguments,omitempty"`
	// Same is alike for calls of one tool with equal arguments, whatever the step. It is left out for what is allowed: then
	// the result tells.
	Same    string         `json:"same,omitempty"`
	Timeout agent.Duration `json:"timeout,omitempty"`
	// Edited holds the arguments that replace the model's, in the store.
	Edited agent.Digest `json:"edited,omitempty"`
}

// Touches is what the call reads and writes. Without a word about it, a call that is pure reads the whole workspace, and
// every other writes it; one that is invalid touches nothing.
func (v Verdict) Touches() agent.Resources {
	switch r := v.Resources; {
	case len(r.Reads)+len(r.Writes) > 0, v.Effect == "":
		return r
	case v.Effect == agent.EffectPure:
		return agent.Resources{Reads: []string{sandbox.Workspace}}
	}
	return agent.Resources{Writes: []string{sandbox.Workspace}}
}

// setResources leaves out what Touches knows by itself.
func (v *Verdict) setResources(r agent.Resources) {
	whole := v.Touches()
	if !slices.Equal(r.Reads, whole.Reads) || !slices.Equal(r.Writes, whole.Writes) {
		v.Resources = r
	}
}

// MaxShown is how much of a call's arguments a reviewer is shown from the history, in bytes. The whole is in the store.
const MaxShown = 8 << 10

// Gate judges the calls of a reply: it validates the arguments, classes effect and risk, and asks policy. It changes
// nothing outside except for keeping edited arguments, and it rides as a local activity.
func (a *Activities) Gate(ctx context.Context, in GateInput) (GateOutput, error) {
	out, err := a.gate(ctx, in)
	return out, a.short(ctx, err)
}

func (a *Activities) gate(ctx context.Context, in GateInput) (GateOutput, error) {
	spec, err := a.spec(ctx, in.Run)
	if err != nil {
		return GateOutput{}, err
	}
	calls, err := a.askedFor(ctx, in.Run, in.Head)
	if err != nil {
		return GateOutput{}, err
	}
	j := a.judge(in.Run, in.Step, spec, in.Dir)
	var out GateOutput
	for _, c := range calls {
		edited, isEdit := in.Edits[c.ID]
		if in.Edits != nil && !isEdit {
			continue
		}
		if isEdit {
			c.Arguments = string(edited)
		}
		v := j.verdict(c)
		if isEdit && v.Gate != GateInvalid {
			if v.Edited, err = a.tenant(in.Run).Put(ctx, edited); err != nil {
				return GateOutput{}, fmt.Errorf("keep the edited arguments of %s: %w", c.ID, err)
			}
		}
		out.Verdicts = append(out.Verdicts, v)
	}
	if d := j.rules.Digest(); d != in.Policy {
		out.Policy = d
	}
	return out, nil
}

// askedFor gives the calls of a conversation's last reply.
func (a *Activities) askedFor(ctx context.Context, run agent.RunRef, head agent.Digest) ([]agent.ToolCall, error) {
	c, err := a.tenant(run).Conversation(ctx, head)
	if err != nil {
		return nil, fmt.Errorf("conversation %s: %w", head.Short(), err)
	}
	last := c.Turns[len(c.Turns)-1].Messages
	return last[len(last)-1].Calls, nil
}

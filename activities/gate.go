package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"belay/agent"
	"belay/config"
	"belay/policy"
	"belay/tool"
)

// GateInput asks whether the calls of a reply may run.
type GateInput struct {
	Run  agent.RunRef `json:"run"`
	Step int          `json:"step"`
	// Head is the conversation whose last turn asks for the calls.
	Head agent.Digest `json:"head"`
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
	agent.Resources
	Rules []string `json:"rules,omitempty"` // that decided
	// Why says what is wrong, or why policy decided so; left out for what is allowed.
	Why string `json:"why,omitempty"`
	// Reviewers may approve; nobody named: anyone.
	Reviewers []agent.UserID `json:"reviewers,omitempty"`
	// Arguments are shown to whoever decides, cut to MaxShown.
	Arguments string `json:"arguments,omitempty"`
	// Same is alike for calls of one tool with equal arguments, whatever the step.
	Same    string         `json:"same,omitempty"`
	Timeout agent.Duration `json:"timeout,omitempty"`
	// Edited holds the arguments that replace the model's, in the store.
	Edited agent.Digest `json:"edited,omitempty"`
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
	j := a.judge(in.Run, in.Step, spec)
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

// judge is the one place where a call is judged: by the gate before it is decided about, and by the executor before it
// runs.
type judge struct {
	run    agent.RunRef
	step   int
	spec   loaded
	rules  *policy.Set
	people config.Reviewers
	level  string // the isolation that this worker gives
}

func (a *Activities) judge(run agent.RunRef, step int, spec loaded) judge {
	b := a.c.Bundle()
	return judge{run: run, step: step, spec: spec, rules: b.Policy, people: b.Reviewers, level: a.c.Level}
}

// judged is a call that can be judged, with everything that was found out about it.
type judged struct {
	tool     tool.Tool
	args     json.RawMessage
	plan     tool.Plan
	digest   agent.Digest
	decision agent.Decision
}

func (j judge) verdict(c agent.ToolCall) Verdict {
	v := Verdict{Call: c.ID, Tool: c.Tool}
	got, err := j.look(c)
	if err != nil {
		v.Gate, v.Why = GateInvalid, err.Error()
		return v
	}
	v.Digest, v.Effect, v.Resources = got.digest, got.plan.Effect, got.plan.Resources
	v.Risk, v.Summary, v.Timeout = got.decision.Risk, got.plan.Summary, agent.Duration(got.plan.Timeout)
	v.Rules, v.Same = deciders(got.decision), sameness(c.Tool, got.args)
	switch {
	case got.decision.Verdict == agent.Deny:
		v.Gate, v.Why = GateDeny, because(got.decision)
	case !reaches(j.level, got.decision.Sandbox):
		v.Gate, v.Why = GateDeny, fmt.Sprintf("it needs a sandbox of level %s, and this worker gives %s", got.decision.Sandbox, j.level)
	case got.plan.Question != "":
		v.Gate, v.Why = GateQuestion, got.plan.Question
	case got.decision.Verdict == agent.RequireApproval:
		v.Gate, v.Why, v.Reviewers = GateApproval, because(got.decision), j.people.Expand(got.decision.Reviewers)
		v.Arguments = cut(string(got.args), MaxShown)
	default:
		v.Gate = GateAllow
	}
	return v
}

// look validates, classes and decides. An error is for the model to mend.
func (j judge) look(c agent.ToolCall) (judged, error) {
	args, err := j.spec.tools.Check(c)
	if err != nil {
		return judged{}, err
	}
	t, _ := j.spec.tools.Lookup(c.Tool) // Check knows it
	plan, err := t.Plan(j.spec.dir(), args)
	if err != nil {
		return judged{}, err
	}
	digest, err := policy.ActionDigest(agent.Action{
		Tool:           c.Tool,
		ToolVersion:    t.Spec().Version,
		Arguments:      args,
		Tenant:         j.run.Tenant,
		FirstRunID:     j.run.Run,
		Step:           j.step,
		SandboxProfile: j.spec.Profile,
	})
	if err != nil {
		return judged{}, err
	}
	return judged{tool: t, args: args, plan: plan, digest: digest, decision: j.rules.Decide(Request(j.spec.Spec, c.Tool, args, plan))}, nil
}

// Request is a call as policy sees it.
func Request(s Spec, name string, args json.RawMessage, p tool.Plan) policy.Request {
	r := policy.Request{
		Tenant:    s.Task.Tenant,
		User:      s.Task.User,
		Agent:     s.Task.Agent,
		Mode:      s.Mode,
		Tool:      name,
		Effect:    p.Effect,
		Risk:      p.Risk,
		Resources: p.Resources,
	}
	if err := json.Unmarshal(args, &r.Arguments); err != nil {
		r.Arguments = nil // rules that look at an argument then fail, which denies
	}
	if p.Command != "" {
		shell := policy.Analyze(p.Command)
		r.Shell = &shell
	}
	return r
}

// checkRequest is an acceptance check as policy sees it: a shell call that the task's author asks for.
func checkRequest(s Spec, command string) policy.Request {
	args, _ := json.Marshal(map[string]string{"command": command}) // strings always marshal
	return Request(s, "shell", args, tool.Plan{
		Effect:    agent.EffectSandboxed,
		Risk:      agent.RiskLow,
		Command:   command,
		Resources: agent.Resources{Writes: []string{"/workspace"}},
	})
}

// deciders names the rules whose effect is the decision.
func deciders(d agent.Decision) []string {
	var ids []string
	for _, r := range d.Reasons {
		if r.Matched && r.Effect == d.Verdict.String() {
			ids = append(ids, r.Rule)
		}
	}
	return slices.Compact(ids)
}

// because gives the reasons of the rules that decided, in one line.
func because(d agent.Decision) string {
	var why []string
	for _, r := range d.Reasons {
		if r.Matched && r.Effect == d.Verdict.String() {
			why = append(why, fmt.Sprintf("%s (%s)", strings.TrimSpace(r.Reason), r.Rule))
		}
	}
	return strings.Join(why, "; ")
}

func sameness(name string, args json.RawMessage) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s", name, args)
	return hex.EncodeToString(h.Sum(nil))[:agent.ShortDigest]
}

// reaches says whether an isolation level is at least the one that is needed.
func reaches(level, need string) bool {
	return slices.Index(policy.Levels(), level) >= slices.Index(policy.Levels(), need)
}

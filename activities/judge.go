package activities

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"belay/agent"
	"belay/config"
	"belay/policy"
	"belay/sandbox"
	"belay/tool"
)

// judge is the one place where a call is judged: by the gate before it is decided about, and by the executor before it
// runs.
type judge struct {
	run    agent.RunRef
	step   int
	spec   loaded
	rules  *policy.Set
	people config.Reviewers
	level  string // the isolation that this worker gives
	dir    string // where the shell is; empty: where the task starts
}

func (a *Activities) judge(run agent.RunRef, step int, spec loaded, dir string) judge {
	b := a.c.Bundle()
	return judge{run: run, step: step, spec: spec, rules: b.Policy, people: b.Reviewers, level: a.c.Level, dir: dir}
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
	v.Digest, v.Effect = got.digest, got.plan.Effect
	v.setResources(got.plan.Resources)
	v.Risk, v.Summary, v.Timeout = got.decision.Risk, got.plan.Summary, agent.Duration(got.plan.Timeout)
	v.Rules, v.Same = deciders(got.decision), got.sameness()
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
		v.Gate, v.Same = GateAllow, ""
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
	return judged{tool: t, args: args, plan: plan, digest: digest, decision: j.rules.Decide(Request(j.spec.Spec, c.Tool, cmp.Or(j.dir, j.spec.dir()), args, plan))}, nil
}

// Request is a call as policy sees it, whose command starts in dir; empty: at the top of the workspace.
func Request(s Spec, name, dir string, args json.RawMessage, p tool.Plan) policy.Request {
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
		shell := policy.Analyze(startingIn(dir) + p.Command)
		r.Shell = &shell
	}
	return r
}

// startingIn is how a script gets to the folder that it starts in, for the analysis to know what its relative paths mean.
func startingIn(dir string) string {
	if dir == "" || dir == sandbox.Workspace {
		return ""
	}
	return "cd -- '" + strings.ReplaceAll(dir, "'", `'\''`) + "'; "
}

// checkRequest is an acceptance check as policy sees it: a shell call that the task's author asks for.
func checkRequest(s Spec, command string) policy.Request {
	args, _ := json.Marshal(map[string]string{"command": command}) // strings always marshal
	return Request(s, "shell", "", args, tool.Plan{
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

// sameness is alike for calls of one tool with equal arguments.
func (j judged) sameness() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s", j.tool.Spec().Name, j.args)
	return hex.EncodeToString(h.Sum(nil))[:agent.ShortDigest]
}

// reaches says whether an isolation level is at least the one that is needed.
func reaches(level, need string) bool {
	return slices.Index(policy.Levels(), level) >= slices.Index(policy.Levels(), need)
}

// approved says whether one of those who approved a call may approve it by the rules of now.
func (j judge) approved(d agent.Decision, by []agent.UserID) bool {
	may := j.people.Expand(d.Reviewers)
	return slices.ContainsFunc(by, func(u agent.UserID) bool { return len(may) == 0 || slices.Contains(may, u) })
}

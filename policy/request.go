package policy

import (
	"path"

	"belay/agent"
)

// Request is one call as policy judges it.
type Request struct {
	Tenant agent.TenantID
	User   agent.UserID
	Agent  string
	// Mode is the agent's confirmation mode; one that is not known counts as agent.ConfirmAlways.
	Mode agent.ConfirmationMode
	Tool string
	// Arguments are the call's, as encoding/json decodes an object.
	Arguments map[string]any
	Effect    agent.Effect
	// Risk is the least that the tool says its call counts for.
	Risk      agent.Risk
	Resources agent.Resources
	// Shell is what Analyze found in the call's command; nil for a call that runs none.
	Shell *Shell
}

// risk is the worse of what the tool says and what the analysis found.
func (r Request) risk() agent.Risk {
	risk := agent.RiskLow.Worse(r.Risk)
	if r.Shell != nil {
		risk = risk.Worse(r.Shell.Risk)
	}
	switch risk {
	case agent.RiskLow, agent.RiskMedium:
		return risk
	}
	return agent.RiskHigh
}

// paths are those that the command was seen to touch. A command's own resources are only the coarse "all of the
// workspace", so they count where there is no command.
func (r Request) paths() []Path {
	if r.Shell != nil {
		return r.Shell.Paths
	}
	var all []Path
	for _, p := range r.Resources.Reads {
		all = append(all, pathOf(path.Clean(p), useRead))
	}
	for _, p := range r.Resources.Writes {
		all = append(all, pathOf(path.Clean(p), useWrite))
	}
	return all
}

// facts are the variables of a condition.
func (r Request) facts() map[string]any {
	shell := Shell{}
	if r.Shell != nil {
		shell = *r.Shell
	}
	args := r.Arguments
	if args == nil {
		args = map[string]any{}
	}
	return map[string]any{
		"tool": r.Tool, "args": args,
		"tenant": string(r.Tenant), "user": string(r.User), "agent": r.Agent, "mode": string(r.Mode),
		"effect": string(r.Effect), "risk": int64(r.risk().Level()),
		"paths": r.paths(), "shell": shell,
	}
}

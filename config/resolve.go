package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"belay/agent"
	"belay/model"
	"belay/sandbox"
	"belay/strictyaml"
	"belay/tool"
)

// Resolved is what one task runs under.
type Resolved struct {
	Agent  Agent
	Tenant Tenant
	// Limits are all set: the task's, where it tightens the agent's, where those tighten the Ceiling.
	Limits agent.Limits
	// Ceiling is what no raise may exceed.
	Ceiling agent.Limits
	Model   model.Config
	Tools   *tool.Set
	Profile sandbox.Profile
	// Versions lacks Runtime, which only the program knows.
	Versions agent.Versions
}

// Resolve finds what a task runs under. A task that names an unknown agent or asks for a looser limit than it may have is
// InvalidInput, one whose tenant is not served here or may not use the agent or its models is Unauthorized. The task has
// been validated.
func (b *Bundle) Resolve(task agent.Task) (Resolved, error) {
	t, ok := b.Tenants[task.Tenant]
	if !ok {
		return Resolved{}, agent.Errorf(agent.Unauthorized, "tenant: %q: not served here; %s", task.Tenant, strictyaml.Suggest(string(task.Tenant), sortedNames(b.Tenants)))
	}
	a, ok := b.Agents[task.Agent]
	if !ok {
		return Resolved{}, agent.Errorf(agent.InvalidInput, "agent: %q: no such agent; %s", task.Agent, strictyaml.Suggest(task.Agent, sortedNames(b.Agents)))
	}
	if err := b.permit(t, a); err != nil {
		return Resolved{}, err
	}
	if err := task.Limits.Within(a.Limits, fmt.Sprintf("which agent %q allows", a.Name)); err != nil {
		return Resolved{}, agent.Errorf(agent.InvalidInput, "limits.%w", err)
	}
	if err := task.Limits.Within(t.Ceiling, fmt.Sprintf("the ceiling of tenant %q", t.Name)); err != nil {
		return Resolved{}, agent.Errorf(agent.InvalidInput, "limits.%w", err)
	}
	limits := t.Ceiling.Tighten(a.Limits).Tighten(task.Limits)
	limits.OnLimit = cmp.Or(limits.OnLimit, agent.OnLimitStop)
	tools, err := tool.Default().Subset(a.Tools)
	if err != nil {
		return Resolved{}, agent.Errorf(agent.StateError, "agent %q: %w", a.Name, err)
	}
	r := Resolved{
		Agent: a, Tenant: t, Limits: limits, Ceiling: t.Ceiling,
		Model: b.Models[a.Model], Tools: tools, Profile: b.Profiles[a.Sandbox],
	}
	r.Versions = agent.Versions{
		Agent:  a.Digest(),
		Model:  r.Model.Model,
		Prompt: digestOf([]byte(a.Prompt)),
		Tools:  tools.Digest(),
		Policy: b.Policy.Digest(),
	}
	return r, nil
}

// permit says whether a tenant's tasks may use an agent, and every model that the agent may come to ask.
func (b *Bundle) permit(t Tenant, a Agent) error {
	if !allows(t.Agents, a.Name) {
		return agent.Errorf(agent.Unauthorized, "agent: %q: not for tenant %q; expected one of %s", a.Name, t.Name, strings.Join(t.Agents, ", "))
	}
	chain, err := b.Chain(a.Model)
	if err != nil {
		return err
	}
	for _, m := range chain {
		if !allows(t.Models, m.Name) {
			return agent.Errorf(agent.Unauthorized, "agent: %q asks model %q, which is not for tenant %q; expected one of %s", a.Name, m.Name, t.Name, strings.Join(t.Models, ", "))
		}
	}
	return nil
}

// Digest names the definition as it holds: with its prompt, and with what its file left out.
func (a Agent) Digest() agent.Digest {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err) // text and finite numbers, as the loader checked
	}
	return digestOf(b)
}

func digestOf(b []byte) agent.Digest {
	sum := sha256.Sum256(b)
	return agent.Digest(hex.EncodeToString(sum[:]))
}

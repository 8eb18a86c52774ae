package config

import (
	"belay/agent"
	"belay/model"
	"belay/policy"
	"belay/sandbox"
	"belay/strictyaml"
)

// Bundle is a validated configuration: every name in it is the name of something in it. It never changes, and nobody may
// change what its maps hold.
type Bundle struct {
	Agents    map[string]Agent
	Models    map[string]model.Config
	Tenants   map[agent.TenantID]Tenant
	Profiles  map[string]sandbox.Profile
	Reviewers Reviewers
	Policy    *policy.Set

	digest  agent.Digest
	webhook string
}

// Digest names the files that the bundle was read from, every byte of them. What a Place adds does not count.
func (b *Bundle) Digest() agent.Digest { return b.digest }

// Webhook is the URL that notifications are posted to; empty: none. Only a bundle that has its Place knows it.
func (b *Bundle) Webhook() string { return b.webhook }

// Profile finds a sandbox profile. A run may ask for one that a later configuration no longer has: a StateError.
func (b *Bundle) Profile(name string) (sandbox.Profile, error) {
	p, ok := b.Profiles[name]
	if !ok {
		return sandbox.Profile{}, agent.Errorf(agent.StateError, "sandbox profile %.40q: not in the configuration; %s", name, strictyaml.Suggest(name, sortedNames(b.Profiles)))
	}
	return p, nil
}

// Chain gives a model and those to ask, in order, when it keeps failing: its fallbacks, each followed by its own. A run may
// ask for a model that a later configuration no longer has: a StateError.
func (b *Bundle) Chain(name string) ([]model.Config, error) {
	if _, ok := b.Models[name]; !ok {
		return nil, agent.Errorf(agent.StateError, "model %.40q: not in the configuration; %s", name, strictyaml.Suggest(name, sortedNames(b.Models)))
	}
	var chain []model.Config
	seen := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		chain = append(chain, b.Models[name])
		for _, next := range b.Models[name].Fallback {
			add(next)
		}
	}
	add(name)
	return chain, nil
}

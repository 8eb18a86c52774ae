package config

import (
	"fmt"
	"maps"

	"belay/agent"
	"belay/strictyaml"
)

// Place is where a bundle is put to use: what one worker adds to the files, so that the same files serve a laptop, the demo
// and a cluster. The zero value adds nothing.
type Place struct {
	// Namespace and TaskQueue are what the worker serves; tenants that are served elsewhere are left out of its bundle.
	Namespace, TaskQueue string
	// Model names the model that every agent asks, whatever its definition says.
	Model string
	// ModelBaseURL is the endpoint of every model, whatever its definition says. Such an endpoint often wants no key: a model
	// whose key variable is not set is asked without one.
	ModelBaseURL string
	// ModelID is the endpoint's own name for the model that every definition stands for.
	ModelID string
	// Getenv reads the variables that the files name. Nil: none is set, and none is asked for.
	Getenv func(string) string
}

// In gives the bundle as it holds in a place. It is an error when nothing of it can be used there.
func (b *Bundle) In(p Place) (*Bundle, error) {
	placed := *b
	placed.Tenants = maps.Clone(b.Tenants)
	maps.DeleteFunc(placed.Tenants, func(_ agent.TenantID, t Tenant) bool { return !p.serves(t) })
	if len(placed.Tenants) == 0 {
		return nil, fmt.Errorf("%s: none is served in namespace %q on task queue %q; expected at least one", tenantsDir, p.Namespace, p.TaskQueue)
	}
	if err := placed.useModels(p); err != nil {
		return nil, err
	}
	if env := b.Reviewers.Notify.WebhookEnv; env != "" && p.Getenv != nil {
		if placed.webhook = p.Getenv(env); placed.webhook == "" {
			return nil, fmt.Errorf("%s: notify.webhook_env: %s is not set; expected the URL to post to", reviewersFile, env)
		}
	}
	return &placed, nil
}

func (p Place) serves(t Tenant) bool {
	return (t.Namespace == "" || p.Namespace == "" || t.Namespace == p.Namespace) &&
		(t.TaskQueue == "" || p.TaskQueue == "" || t.TaskQueue == p.TaskQueue)
}

func (b *Bundle) useModels(p Place) error {
	if p.Model != "" {
		if _, ok := b.Models[p.Model]; !ok {
			return fmt.Errorf("model %q: not in the configuration; %s", p.Model, strictyaml.Suggest(p.Model, sortedNames(b.Models)))
		}
		b.Agents = maps.Clone(b.Agents)
		for name, a := range b.Agents {
			a.Model = p.Model
			b.Agents[name] = a
		}
	}
	b.Models = maps.Clone(b.Models)
	for _, name := range sortedNames(b.Models) {
		m := b.Models[name]
		if p.ModelBaseURL != "" {
			m.BaseURL = p.ModelBaseURL
			if p.Getenv == nil || p.Getenv(m.APIKeyEnv) == "" {
				m.APIKeyEnv = ""
			}
		}
		if p.ModelID != "" {
			m.Model = p.ModelID
		}
		if errs := m.Validate(); len(errs) > 0 {
			return fmt.Errorf("model %q: %w", name, errs[0])
		}
		b.Models[name] = m
	}
	return nil
}

package main

import (
	"fmt"
	"net/http"
	"sync"

	"belay/agent"
	"belay/config"
	"belay/model"
	"belay/model/openai"
)

// models makes the clients of the named models, each once for as long as its definition stays the same.
type models struct {
	bundle func() *config.Bundle
	getenv func(string) string
	http   *http.Client

	mu   sync.Mutex
	made map[agent.Digest]model.Model
}

func newModels(bundle func() *config.Bundle, getenv func(string) string) *models {
	return &models{bundle: bundle, getenv: getenv, http: &http.Client{Transport: newTransport()}, made: map[agent.Digest]model.Model{}}
}

// newTransport keeps enough connections open for many tasks that talk to one endpoint.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	return t
}

// byName gives the model of that name, as the configuration of now defines it.
func (m *models) byName(name string) (model.Model, error) {
	b := m.bundle()
	cfg, ok := b.Models[name]
	if !ok {
		return nil, agent.Errorf(agent.StateError, "model %q is no longer configured", name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := agent.Digest(name) + b.Digest()
	if got, ok := m.made[id]; ok {
		return got, nil
	}
	key := ""
	if cfg.APIKeyEnv != "" {
		if key = m.getenv(cfg.APIKeyEnv); key == "" {
			return nil, agent.Errorf(agent.Unauthorized, "model %s: the environment variable %s with its key is not set", name, cfg.APIKeyEnv)
		}
	}
	made, err := openai.New(cfg, key, m.http)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", name, err)
	}
	m.made[id] = made
	return made, nil
}

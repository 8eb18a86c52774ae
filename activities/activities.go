// Package activities holds every side effect of a run, one method each. Each is safe to repeat: what it makes outside has
// an id that does not depend on the attempt, and a repeated attempt finds what an earlier one left.
//
// Inputs and outputs are small: content travels as digests, so a run's history grows by a constant per step. A fact that
// only the workflow knows travels as a note in the next input, which is how the history tells it.
package activities

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.temporal.io/sdk/client"

	"belay/agent"
	"belay/config"
	"belay/model"
	"belay/sandbox"
	"belay/store"
)

// Activities is the receiver of all activities. It exports nothing else, so it can be registered as it is.
type Activities struct {
	c     Config
	specs *lru.Cache[agent.RunRef, loaded]
	heads *lru.Cache[stepRef, agent.Digest]

	probing sync.Mutex
	reports map[string]probe // by profile
}

// Config is what the activities work with. Every field is required unless it says otherwise.
type Config struct {
	// Bundle gives the configuration that is in force now.
	Bundle func() *config.Bundle
	Store  *store.Store
	// Model gives the model of that name.
	Model   func(name string) (model.Model, error)
	Sandbox sandbox.Runtime
	// Level is the isolation level that Sandbox gives.
	Level string
	// HostQueue is the task queue that only this host serves.
	HostQueue string
	// IndexDir is a folder of this host for the stat caches of workspaces.
	IndexDir string
	// WorkspaceRoots are the folders below which workspace sources may lie.
	WorkspaceRoots []string
	// Retry says how each category of failure is tried again.
	Retry agent.RetryTable
	// Temporal is for sealing closed histories and for reconciling; the loop itself does not need it.
	Temporal client.Client
	// Project turns the history of one closed run into events. The first one gets the number seq.
	Project func(ctx context.Context, workflowID, runID string, seq int) ([]agent.Event, error)
	// SearchAttributes says whether the namespace has the attributes that workflows upsert.
	SearchAttributes bool
	// Version names the running program.
	Version string
	HTTP    *http.Client
	Log     *slog.Logger
}

// How many runs' specs, and steps' heads, a worker keeps at hand.
const (
	keptSpecs = 256
	keptHeads = 1024
)

// New makes the activities.
func New(c Config) (*Activities, error) {
	specs, err := lru.New[agent.RunRef, loaded](keptSpecs)
	if err != nil {
		return nil, err
	}
	heads, err := lru.New[stepRef, agent.Digest](keptHeads)
	if err != nil {
		return nil, err
	}
	return &Activities{c: c, specs: specs, heads: heads, reports: map[string]probe{}}, nil
}

func (a *Activities) tenant(r agent.RunRef) *store.Tenant { return a.c.Store.Tenant(r.Tenant) }

// record names a record of a run in the store.
func record(r agent.RunRef, parts ...string) string {
	return path.Join(append([]string{"runs", string(r.Run)}, parts...)...)
}

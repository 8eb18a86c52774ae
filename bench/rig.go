package main

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
	"belay/config"
	"belay/events"
	"belay/model"
	"belay/sandbox/sandboxtest"
	"belay/store"
	"belay/testserver"
	"belay/workflows"
)

// rig is what everything is measured on: a dev server with Belay's settings and its database in a file, and in this
// process one pair of workers, set up as belay-worker sets up its own, that serve Belay and the control alike. Belay's
// activities are the real ones, over a store in a folder; the model and the sandbox answer at once.
type rig struct {
	server  *testserver.Server
	client  client.Client
	bundle  *config.Bundle
	store   *store.Store
	folder  string // of the store
	act     *activities.Activities
	workers []worker.Worker
	tasks   atomic.Int64 // so far, for their ids
}

// The queues, which both workloads share.
const (
	queue     = workflows.TaskQueue
	hostID    = "5eedbeef"
	hostQueue = "belay-host-" + hostID
)

func newRig(ctx context.Context, dir string) (*rig, error) {
	r := &rig{folder: filepath.Join(dir, "store")}
	var err error
	if r.bundle, err = benchConfig(); err != nil {
		return nil, err
	}
	if r.store, err = store.Open(ctx, r.folder); err != nil {
		return nil, err
	}
	if r.server, err = testserver.Start(ctx, dir); err != nil {
		return nil, err
	}
	if r.client, err = r.server.Dial(); err != nil {
		r.close()
		return nil, err
	}
	if r.act, err = r.activities(r.store, dir); err != nil {
		r.close()
		return nil, err
	}
	if err := r.startWorkers(belayCache); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// benchConfig is the configuration that is shipped, with an agent that may use what its tenant may at most.
func benchConfig() (*config.Bundle, error) {
	root, err := testserver.Root()
	if err != nil {
		return nil, err
	}
	b, err := config.LoadDir(filepath.Join(root, "deploy", "config"))
	if err != nil {
		return nil, err
	}
	a := b.Agents["default"]
	a.Limits = b.Tenants["default"].Ceiling
	b.Agents["default"] = a
	return b, nil
}

// activities are the real ones over a store.
func (r *rig) activities(s *store.Store, dir string) (*activities.Activities, error) {
	text, err := sourceText()
	if err != nil {
		return nil, err
	}
	boxes := sandboxtest.NewFake(filepath.Join(dir, "sandboxes"))
	boxes.Handle = printer{text}.handle
	return activities.New(activities.Config{
		Bundle:           func() *config.Bundle { return r.bundle },
		Store:            s,
		Model:            func(string) (model.Model, error) { return canned{}, nil },
		Sandbox:          boxes,
		Level:            "process",
		HostQueue:        hostQueue,
		IndexDir:         filepath.Join(dir, "index"),
		Retry:            workflows.Retries(),
		Temporal:         r.client,
		SearchAttributes: true,
		Version:          "bench",
		HTTP:             http.DefaultClient,
		Log:              slog.New(slog.DiscardHandler),
		Project: func(ctx context.Context, workflowID, runID string, seq int) ([]agent.Event, error) {
			return events.Project(ctx, r.client, workflowID, runID, seq)
		},
	})
}

// sourceText is what commands print in a benchmark: this repository's Go files, which are as compressible as what agents
// read.
func sourceText() (string, error) {
	root, err := testserver.Root()
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(name, ".") && name != "." {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		b, err := os.ReadFile(filepath.Join(root, name))
		text.Write(b)
		return err
	})
	return text.String(), err
}

// How many workflows a worker keeps in memory: a belay-worker that may hold 64 sandboxes, and the SDK's own workers.
const (
	belayCache = 2*64 + 2
	sdkCache   = 10_000
)

// startWorkers starts the two workers of a belay-worker, with its options but for the size of the cache.
func (r *rig) startWorkers(cache int, with ...interceptor.WorkerInterceptor) error {
	worker.SetStickyWorkflowCacheSize(cache)
	worker.SetBinaryChecksum("v0.1.0") // as long as that of a release
	options := worker.Options{
		Identity:                         hostID,
		MaxHeartbeatThrottleInterval:     activities.Heartbeat,
		DefaultHeartbeatThrottleInterval: activities.Heartbeat,
		StickyScheduleToStartTimeout:     2 * time.Second,
		MaxConcurrentWorkflowTaskPollers: 4,
		MaxConcurrentActivityTaskPollers: 4,
		Interceptors:                     with,
	}
	tasks := worker.New(r.client, queue, options)
	tasks.RegisterWorkflowWithOptions(workflows.AgentTask, workflow.RegisterOptions{Name: workflows.TypeAgentTask})
	tasks.RegisterWorkflowWithOptions(workflows.RunLedger, workflow.RegisterOptions{Name: workflows.TypeRunLedger})
	options.DisableWorkflowWorker = true
	host := worker.New(r.client, hostQueue, options)
	for _, w := range []worker.Worker{tasks, host} {
		w.RegisterActivity(r.act)
	}
	registerBare(tasks, host)
	for _, w := range []worker.Worker{tasks, host} {
		if err := w.Start(); err != nil {
			return err
		}
		r.workers = append(r.workers, w)
	}
	return nil
}

func activityNamed(name string) activity.RegisterOptions { return activity.RegisterOptions{Name: name} }

// restartWorkers starts the workers anew, with nothing in their cache.
func (r *rig) restartWorkers(cache int, with ...interceptor.WorkerInterceptor) error {
	r.stopWorkers()
	return r.startWorkers(cache, with...)
}

func (r *rig) stopWorkers() {
	for _, w := range r.workers {
		w.Stop()
	}
	r.workers = nil
}

func (r *rig) close() {
	r.stopWorkers()
	if r.client != nil {
		r.client.Close()
	}
	r.server.Kill()
	r.store.Close() //nolint:errcheck // its folder is removed next
}

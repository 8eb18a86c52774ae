package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"belay/activities"
	"belay/agent"
	"belay/config"
	"belay/events"
	"belay/store"
	"belay/workflows"
)

// version is set by the build.
var version = "dev"

// run serves until ctx ends. Everything that is wrong with the settings, the configuration or the host is an error here,
// before the first task is taken.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "scripted-model" {
		return serveScripted(ctx, args[1:], stderr)
	}
	if len(args) > 0 && args[0] == "reap-all" {
		return reapAll(ctx, args[1:], stdout)
	}
	s, err := readSettings(args, stdout)
	if err != nil {
		return err
	}
	logger, err := newLogger(s, stderr)
	if err != nil {
		return err
	}
	opts, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return fmt.Errorf("connection to Temporal: %w", err)
	}
	opts.Logger = log.NewStructuredLogger(logger)
	opts.Namespace = cmp.Or(opts.Namespace, client.DefaultNamespace)
	live, err := follow(ctx, s, opts.Namespace, getenv, logger)
	if err != nil {
		return err
	}
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		return fmt.Errorf("reach Temporal at %s: %w", opts.HostPort, err)
	}
	defer c.Close()
	return serve(ctx, s, live, c, opts.Namespace, getenv, logger)
}

func serve(ctx context.Context, s settings, live *config.Live, c client.Client, namespace string, getenv func(string) string, logger *slog.Logger) error {
	content, err := store.Open(ctx, s.Store)
	if err != nil {
		return err
	}
	defer content.Close()
	boxes, level, err := newSandboxes(ctx, s, live, logger)
	if err != nil {
		return err
	}
	host, err := hostQueue(s.State)
	if err != nil {
		return err
	}
	act, err := activities.New(activities.Config{
		Bundle:           live.Current,
		Store:            content,
		Model:            newModels(live.Current, getenv).byName,
		Sandbox:          boxes,
		Level:            level,
		HostQueue:        host,
		IndexDir:         filepath.Join(s.State, "index"),
		WorkspaceRoots:   s.WorkspaceRoots,
		Retry:            workflows.Retries(),
		Temporal:         c,
		SearchAttributes: ensureSearchAttributes(ctx, c, namespace, logger),
		Version:          version,
		HTTP:             &http.Client{Timeout: 30 * time.Second},
		Log:              logger,
		Project: func(ctx context.Context, workflowID, runID string, seq int) ([]agent.Event, error) {
			return events.Project(ctx, c, workflowID, runID, seq)
		},
	})
	if err != nil {
		return err
	}
	if err := ensureSchedule(ctx, c, s.TaskQueue); err != nil {
		logger.Warn("tasks that are terminated get no ledger", "error", err)
	}
	go reaper{c: c, boxes: boxes, indexDir: filepath.Join(s.State, "index"), log: logger}.run(ctx)
	return work(ctx, c, s, host, act, logger)
}

// work runs the two workers until ctx ends. Both stop at the same time, so that a stop takes no longer than the slower one.
func work(ctx context.Context, c client.Client, s settings, host string, act *activities.Activities, logger *slog.Logger) error {
	tasks, hostOnly := newWorkers(c, s, host, act)
	if err := hostOnly.Start(); err != nil {
		return fmt.Errorf("worker on %s: %w", host, err)
	}
	if err := tasks.Start(); err != nil {
		hostOnly.Stop()
		return fmt.Errorf("worker on %s: %w", s.TaskQueue, err)
	}
	logger.Info("belay-worker serves", "queue", s.TaskQueue, "host", host, "version", version)
	<-ctx.Done()
	logger.Info("belay-worker stops")
	var both sync.WaitGroup
	both.Go(tasks.Stop)
	both.Go(hostOnly.Stop)
	both.Wait()
	return nil
}

// follow loads the configuration and keeps up with its folder.
func follow(ctx context.Context, s settings, namespace string, getenv func(string) string, logger *slog.Logger) (*config.Live, error) {
	live, err := config.Follow(os.DirFS(s.Config), config.Place{
		Namespace: namespace, TaskQueue: s.TaskQueue, ModelBaseURL: s.ModelBaseURL, ModelID: s.ModelID, Getenv: getenv,
	})
	if err != nil {
		return nil, fmt.Errorf("configuration in %s:\n%w", s.Config, err)
	}
	go live.Run(ctx, s.ReloadEvery, func(b *config.Bundle, err error) {
		if err != nil {
			logger.Error("the configuration is bad; the last good one stays in force", "error", err)
			return
		}
		logger.Info("configuration reloaded", "digest", b.Digest().Short())
	})
	return live, nil
}

// hostQueuePrefix is before a host's id in the name of its queue.
const hostQueuePrefix = "belay-host-"

// hostQueue names the queue that only this host serves. It is kept in the state folder, so a worker that comes back
// serves what its sandboxes wait for.
func hostQueue(state string) (string, error) {
	path := filepath.Join(state, "host-id")
	if b, err := os.ReadFile(path); err == nil {
		return hostQueuePrefix + string(b), nil
	}
	id := uuid.NewString()[:8]
	if err := os.MkdirAll(state, 0o755); err != nil {
		return "", fmt.Errorf("state folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if os.IsExist(err) {
		return hostQueue(state)
	}
	if err != nil {
		return "", fmt.Errorf("host id: %w", err)
	}
	if _, err := f.WriteString(id); err != nil {
		return "", fmt.Errorf("host id: %w", err)
	}
	return hostQueuePrefix + id, f.Close()
}

func newLogger(s settings, out io.Writer) (*slog.Logger, error) {
	level, err := zap.ParseAtomicLevel(s.LogLevel)
	if err != nil {
		return nil, fmt.Errorf("BELAY_LOG_LEVEL: %q: expected debug, info, warn or error", s.LogLevel)
	}
	if s.LogFormat != "console" && s.LogFormat != "json" {
		return nil, fmt.Errorf("BELAY_LOG_FORMAT: %q: expected console or json", s.LogFormat)
	}
	return slog.New(zapslog.NewHandler(newCore(s.LogFormat, level, out))), nil
}

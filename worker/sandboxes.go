package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"belay/config"
	"belay/sandbox"
	"belay/sandbox/docker"
	"belay/sandbox/process"
)

// newSandboxes makes the sandbox runtime and tries it: a host that can't hold a sandbox takes no task. The string is the
// isolation level that it gives; no other is ever tried in its place.
func newSandboxes(ctx context.Context, s settings, live *config.Live, logger *slog.Logger) (sandbox.Runtime, string, error) {
	boxes, level, err := newRuntime(s, logger)
	if err != nil {
		return nil, "", err
	}
	for name, profile := range live.Current().Profiles {
		report, err := boxes.Probe(ctx, profile)
		if err != nil {
			return nil, "", fmt.Errorf("sandbox profile %s: %w", name, err)
		}
		for _, w := range report.Warnings {
			logger.Warn("sandbox", "profile", name, "warning", w)
		}
	}
	logger.Info("sandboxes can be made", "kind", s.Sandbox, "level", level)
	return boxes, level, nil
}

// newRuntime makes the runtime that the settings name. Each kind has a folder of its own, so that none ever opens a sandbox
// that was made with more isolation than it has.
func newRuntime(s settings, logger *slog.Logger) (sandbox.Runtime, string, error) {
	switch s.Sandbox {
	case "process":
		r, err := process.New(process.Config{StateDir: filepath.Join(s.State, "sandboxes"), MaxSandboxes: s.MaxSandboxes})
		return r, "process", err
	case "docker":
		if s.DockerImage == "" {
			return nil, "", fmt.Errorf("BELAY_DOCKER_IMAGE: empty; expected the image that sandboxes show, since BELAY_SANDBOX is docker")
		}
		r, err := docker.New(docker.Config{
			Host: s.DockerHost, Image: s.DockerImage, Runtime: s.DockerRuntime,
			StateDir: filepath.Join(s.State, "docker"+s.DockerRuntime), MaxSandboxes: s.MaxSandboxes, Logger: logger,
		})
		if err != nil {
			return nil, "", err
		}
		return r, r.Level(), nil
	}
	return nil, "", fmt.Errorf("BELAY_SANDBOX: %q: expected process or docker", s.Sandbox)
}

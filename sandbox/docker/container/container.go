// Package container is what package docker and its launcher agree on: how a sandbox looks as a container.
package container

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"belay/sandbox"
	"belay/sandbox/process/wire"
)

// Labels of a container, by which it is found again: the id of its sandbox, and the state folder in which that is unique.
const (
	SandboxLabel = "belay.sandbox"
	StateLabel   = "belay.state"
)

// Where an agent finds itself and its supervisor.
const (
	guestPath   = "/run/belay-sandbox"
	controlPath = "/run/belay"
	home        = "/home/agent"
)

// Spec is what all containers of a runtime have in common.
type Spec struct {
	Host     string `json:"host"`
	Image    string `json:"image"`
	Runtime  string `json:"runtime,omitempty"`
	StateDir string `json:"state_dir"`
}

// Client connects to the daemon, whichever version of its API it has.
func (s Spec) Client() (*client.Client, error) {
	c, err := client.New(client.WithHost(s.Host), client.WithUserAgent("belay"))
	if err != nil {
		return nil, fmt.Errorf("docker daemon %s: %w", s.Host, err)
	}
	return c, nil
}

// Start starts the container of an agent, which the daemon removes when the agent ends.
func (s Spec) Start(ctx context.Context, c *client.Client, l wire.Launch) error {
	made, err := c.ContainerCreate(ctx, client.ContainerCreateOptions{
		Name:       "belay-" + string(l.Sandbox) + "-" + strings.ToLower(rand.Text()[:8]),
		Config:     s.config(l),
		HostConfig: s.hostConfig(l),
	})
	if err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	if _, err := c.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
		// The daemon may have removed it already. What can't be removed is found by its labels later.
		_, _ = c.ContainerRemove(context.WithoutCancel(ctx), made.ID, client.ContainerRemoveOptions{Force: true})
		return fmt.Errorf("start container: %w", err)
	}
	return nil
}

func (s Spec) config(l wire.Launch) *container.Config {
	return &container.Config{
		Image:           s.Image,
		Hostname:        "sandbox",
		User:            fmt.Sprintf("%d:%d", l.UID, l.GID),
		Entrypoint:      []string{guestPath, "agent", controlPath + "/" + wire.AgentSocket},
		Cmd:             []string{},
		WorkingDir:      "/",
		NetworkDisabled: true,
		Healthcheck:     &container.HealthConfig{Test: []string{"NONE"}},
		Labels:          map[string]string{SandboxLabel: string(l.Sandbox), StateLabel: s.StateDir},
	}
}

func (s Spec) hostConfig(l wire.Launch) *container.HostConfig {
	tmp := fmt.Sprintf("rw,exec,nosuid,nodev,mode=1777,size=%dm", l.Profile.TmpMiB)
	pids, memory, noInit := int64(l.Profile.PIDs+wire.AgentThreads), int64(l.Profile.MemoryMiB)<<20, false
	return &container.HostConfig{
		NetworkMode:    "none",
		IpcMode:        "private",
		CgroupnsMode:   "private",
		Runtime:        s.Runtime,
		ReadonlyRootfs: true,
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges"},
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		AutoRemove:     true,
		Init:           &noInit,
		LogConfig:      container.LogConfig{Type: "none"},
		ShmSize:        int64(l.Profile.TmpMiB) << 20,
		Tmpfs:          map[string]string{"/tmp": tmp, home: tmp},
		Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: l.Guest, Target: guestPath, ReadOnly: true},
			{Type: mount.TypeBind, Source: l.Control, Target: controlPath, ReadOnly: true},
			{Type: mount.TypeBind, Source: l.Workspace, Target: sandbox.Workspace, ReadOnly: l.ReadOnly},
		},
		Resources: container.Resources{
			Memory: memory, MemorySwap: memory, PidsLimit: &pids, NanoCPUs: int64(l.Profile.CPUPercent) * 10_000_000,
		},
	}
}

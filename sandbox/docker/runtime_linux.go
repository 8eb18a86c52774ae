package docker

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	moby "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"belay/sandbox"
	"belay/sandbox/docker/container"
	"belay/sandbox/process"
	"belay/sandbox/process/wire"
)

//go:generate env CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o launch/belay-container ./launch

// The folder's only sure file says why; see there.
//
//go:embed launch/belay-container*
var embedded embed.FS

const defaultHost = "unix:///var/run/docker.sock"

// levels are the isolation levels, in the words of policy, by Config.Runtime.
var levels = map[string]string{"": "container", "runsc": "gvisor", "kata": "microvm"}

// Runtime is a sandbox.Runtime. It is safe for concurrent use, also by several workers with one state folder.
type Runtime struct {
	shared *process.Runtime
	spec   container.Spec
	daemon *client.Client
}

var _ sandbox.Runtime = (*Runtime)(nil)

// New prepares the state folder. Whether the daemon can make sandboxes, Probe says.
func New(c Config) (*Runtime, error) {
	c.Host = cmp.Or(c.Host, defaultHost)
	if !strings.HasPrefix(c.Host, "unix:///") {
		return nil, fmt.Errorf("docker sandboxes: host %q: expected unix:/// and the path of a socket; the daemon must be on this host", c.Host)
	}
	if c.Image == "" {
		return nil, errors.New("docker sandboxes: image: empty; expected the name of an image with bash and coreutils")
	}
	if _, ok := levels[c.Runtime]; !ok {
		return nil, fmt.Errorf("docker sandboxes: runtime %q: expected nothing, runsc or kata", c.Runtime)
	}
	if c.StateDir == "" {
		return nil, errors.New("docker sandboxes: state folder: empty; expected a path")
	}
	dir, err := filepath.Abs(c.StateDir)
	if err != nil {
		return nil, fmt.Errorf("docker sandboxes: state folder %s: %w", c.StateDir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("docker sandboxes: %w", err)
	}
	spec := container.Spec{Host: c.Host, Image: c.Image, Runtime: c.Runtime, StateDir: dir}
	launcher := wire.Launcher{Program: c.Launcher}
	if launcher.Program == "" {
		if launcher.Program, err = wire.Install(embedded, "launch/belay-container", dir); err != nil {
			return nil, fmt.Errorf("docker sandboxes: %w", err)
		}
	}
	if launcher.Spec, err = json.Marshal(spec); err != nil {
		return nil, fmt.Errorf("docker sandboxes: %w", err)
	}
	daemon, err := spec.Client()
	if err != nil {
		return nil, fmt.Errorf("docker sandboxes: %w", err)
	}
	shared, err := process.New(process.Config{
		StateDir: dir, MaxSandboxes: c.MaxSandboxes, Guest: c.Guest, UID: c.UID, Launcher: &launcher, Logger: c.Logger,
	})
	if err != nil {
		return nil, errors.Join(err, daemon.Close())
	}
	return &Runtime{shared: shared, spec: spec, daemon: daemon}, nil
}

// Level is the isolation level that the containers give, in the words of policy.
func (r *Runtime) Level() string { return levels[r.spec.Runtime] }

// Create implements sandbox.Runtime.
func (r *Runtime) Create(ctx context.Context, id sandbox.ID, p sandbox.Profile) (sandbox.Sandbox, error) {
	if _, _, err := r.check(ctx, p); err != nil {
		return nil, fmt.Errorf("create sandbox %.80q: %w", string(id), err)
	}
	return r.shared.Create(ctx, id, p)
}

// Open implements sandbox.Runtime. A container that has vanished is started again, over the same workspace; what ran in it is
// lost.
func (r *Runtime) Open(ctx context.Context, id sandbox.ID) (sandbox.Sandbox, error) {
	return r.shared.Open(ctx, id)
}

// List implements sandbox.Runtime. It names also those of which only a container is left.
func (r *Runtime) List(ctx context.Context) ([]sandbox.ID, error) {
	ids, err := r.shared.List(ctx)
	if err != nil {
		return nil, err
	}
	containers, err := r.containers(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	all := map[sandbox.ID]bool{}
	for _, id := range ids {
		all[id] = true
	}
	for _, c := range containers {
		if c.State != moby.StateRemoving && c.State != moby.StateExited {
			all[sandbox.ID(c.Labels[container.SandboxLabel])] = true
		}
	}
	return slices.Collect(maps.Keys(all)), nil
}

// containers lists those of a sandbox, or with an empty id all of ours.
func (r *Runtime) containers(ctx context.Context, id sandbox.ID) ([]moby.Summary, error) {
	filters := make(client.Filters).Add("label", container.StateLabel+"="+r.spec.StateDir)
	if id != "" {
		filters.Add("label", container.SandboxLabel+"="+string(id))
	}
	list, err := r.daemon.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	return list.Items, nil
}

// removal is how long the daemon may take to remove a container.
const removal = 30 * time.Second

// Destroy implements sandbox.Runtime. It is also an error when the daemon can't be asked whether a container is left.
func (r *Runtime) Destroy(ctx context.Context, id sandbox.ID) error {
	if err := r.shared.Destroy(ctx, id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	for {
		left, err := r.containers(ctx, id)
		if err != nil {
			return fmt.Errorf("destroy sandbox %s: %w", id, err)
		}
		if len(left) == 0 {
			return nil
		}
		for _, c := range left {
			_, err := r.daemon.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true})
			// The daemon may be removing it already, because its agent ended.
			if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
				return fmt.Errorf("destroy sandbox %s: remove container %s: %w", id, c.ID, err)
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("destroy sandbox %s: %d containers are left: %w", id, len(left), context.Cause(ctx))
		}
	}
}

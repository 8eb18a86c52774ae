package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"belay/sandbox"
)

// runtimeRemedies say how a daemon gets a runtime.
var runtimeRemedies = map[string]string{
	"runsc": "install gVisor (https://gvisor.dev/docs/user_guide/install) and run `runsc install -- --host-uds=open --network=none`, then restart the daemon",
	"kata":  "install Kata Containers and name it kata under \"runtimes\" in /etc/docker/daemon.json, then restart the daemon",
}

// Probe implements sandbox.Runtime.
func (r *Runtime) Probe(ctx context.Context, p sandbox.Profile) (sandbox.Report, error) {
	report := sandbox.Report{Level: r.Level()}
	info, missing, err := r.check(ctx, p)
	if err != nil {
		return report, fmt.Errorf("probe: %w", err)
	}
	name := r.spec.Runtime
	if name == "" {
		name = info.DefaultRuntime
	}
	report.Runtime = fmt.Sprintf("Docker %s, %s, Linux %s", info.ServerVersion, name, info.KernelVersion)
	for _, m := range missing {
		report.Missing = append(report.Missing, m)
		report.Warnings = append(report.Warnings, m+": not limited: the Docker daemon says that it can't")
	}
	if r.spec.Runtime != "" { // a kernel of its own takes the place of the host's filter
		p.Unconfined = append(slices.Clone(p.Unconfined), "seccomp")
	}
	id := sandbox.ID("probe-" + strings.ToLower(rand.Text()))
	_, err = r.shared.Try(ctx, id, p)
	if err = errors.Join(err, r.Destroy(context.WithoutCancel(ctx), id)); err != nil {
		if r.spec.Runtime != "" && errors.Is(err, sandbox.ErrUnsupported) {
			return report, fmt.Errorf("probe: runtime %s can't hold a sandbox: it must let the agent reach a unix socket of the host (runsc: the argument --host-uds=open) and get descriptors over it: %w", name, err)
		}
		return report, fmt.Errorf("probe: %w", err)
	}
	return report, nil
}

// check asks the daemon for what a sandbox needs, and gives what it can't do and the profile lets it lack.
func (r *Runtime) check(ctx context.Context, p sandbox.Profile) (system.Info, []string, error) {
	got, err := r.daemon.Info(ctx, client.InfoOptions{})
	if err != nil {
		return system.Info{}, nil, fmt.Errorf("%w: %w; %s", sandbox.ErrUnsupported, err, r.daemonRemedy(err))
	}
	info := got.Info
	if _, ok := info.Runtimes[r.spec.Runtime]; !ok && r.spec.Runtime != "" {
		return info, nil, fmt.Errorf("%w: the Docker daemon at %s has no runtime %s; %s", sandbox.ErrUnsupported, r.spec.Host, r.spec.Runtime, runtimeRemedies[r.spec.Runtime])
	}
	_, err = r.daemon.ImageInspect(ctx, r.spec.Image)
	if errdefs.IsNotFound(err) {
		return info, nil, fmt.Errorf("%w: the Docker daemon at %s has no image %s; docker pull %s, or build it: nothing is pulled on its own", sandbox.ErrUnsupported, r.spec.Host, r.spec.Image, r.spec.Image)
	}
	if err != nil {
		return info, nil, fmt.Errorf("image %s: %w", r.spec.Image, err)
	}
	missing := lacks(info)
	for _, m := range missing {
		if !slices.Contains(p.Unconfined, m) {
			return info, nil, fmt.Errorf("%w: the Docker daemon at %s can't limit %s; allow it in the profile by unconfined: [%s]", sandbox.ErrUnsupported, r.spec.Host, m, m)
		}
	}
	return info, missing, nil
}

// lacks names what a daemon can't limit, by the names of sandbox.Profile.Unconfined.
func lacks(info system.Info) []string {
	var missing []string
	for _, c := range []struct {
		name string
		has  bool
	}{
		{"memory", info.MemoryLimit},
		{"pids", info.PidsLimit},
		{"cpu", info.CPUCfsPeriod && info.CPUCfsQuota},
		{"seccomp", slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.HasPrefix(o, "name=seccomp") && !strings.Contains(o, "unconfined") })},
	} {
		if !c.has {
			missing = append(missing, c.name)
		}
	}
	return missing
}

func (r *Runtime) daemonRemedy(err error) string {
	if errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied") {
		return "let the worker's user use the socket, which makes it as powerful as root: usermod -aG docker"
	}
	return fmt.Sprintf("start the daemon that serves %s, or install one: apt-get install docker.io", r.spec.Host)
}

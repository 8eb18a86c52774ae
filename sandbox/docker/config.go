package docker

import "log/slog"

// Config says which daemon keeps the sandboxes, and how.
type Config struct {
	// Host is the daemon's address, "unix://" and the path of a socket: it must be on this host, for it mounts our folders.
	// Empty: unix:///var/run/docker.sock.
	Host string
	// Image is what commands find around their workspace. Required.
	Image string
	// Runtime is the daemon's name of what runs the containers. Empty is its runc, which gives the level "container"; "runsc"
	// gives "gvisor" and "kata" gives "microvm". The agent in them must reach a unix socket of the host and get descriptors
	// over it, which Probe finds out: gVisor does with its argument --host-uds=open.
	Runtime string
	// StateDir holds the sandboxes: workspaces, journals, outputs. Required. It must outlive the worker, and be the same for
	// the next one.
	StateDir string
	// MaxSandboxes is how many may exist at once; one more is sandbox.ErrBusy. Zero: 64.
	MaxSandboxes int
	// UID is whom commands run as where the worker is root. Zero: 1900000000, which no distribution hands out.
	UID int
	// Guest and Launcher are paths of programs to use instead of those built in.
	Guest, Launcher string
	// Logger gets what happens to supervisors. Nil: nothing is logged.
	Logger *slog.Logger
}

package process

import (
	"log/slog"

	"belay/sandbox/process/wire"
)

// Config says how sandboxes are kept on this host.
type Config struct {
	// StateDir holds the sandboxes: workspaces, journals, outputs. Required. It must outlive the worker, and be the same for
	// the next one.
	StateDir string
	// MaxSandboxes is how many may exist at once; one more is sandbox.ErrBusy. Zero: 64.
	MaxSandboxes int
	// Bwrap is the path of bubblewrap. Empty: it is looked for where systems install it.
	Bwrap string
	// Guest is the path of a belay-sandbox program to use instead of the one built in.
	Guest string
	// Cgroup is the folder, below /sys/fs/cgroup, of a version 2 control group whose controllers are ours to give to groups
	// below it. Empty: the parent of the worker's own group. It has no meaning on version 1.
	Cgroup string
	// UID is whom commands run as on the host where the worker is root. Zero: 1900000000, which no distribution hands out.
	UID int
	// Launcher starts agents in place of bubblewrap: package docker is built on it. Nil: bubblewrap.
	Launcher *wire.Launcher
	// Logger gets what happens to supervisors. Nil: nothing is logged.
	Logger *slog.Logger
}

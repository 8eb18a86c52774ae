//go:build !linux

package docker

import (
	"fmt"
	"runtime"

	"belay/sandbox"
)

// Runtime is never made on this system.
type Runtime struct{ sandbox.Runtime }

// New says what to use instead.
func New(Config) (*Runtime, error) {
	return nil, fmt.Errorf("docker sandboxes need a worker on Linux, beside the daemon, and this is %s; %w", runtime.GOOS, sandbox.ErrUnsupported)
}

// Level is what Probe would report.
func (*Runtime) Level() string { return "" }

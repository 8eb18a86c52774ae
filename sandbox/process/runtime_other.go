//go:build !linux

package process

import (
	"fmt"
	"runtime"

	"belay/sandbox"
)

// Runtime is never made on this system.
type Runtime struct{ sandbox.Runtime }

// New says what to use instead.
func New(Config) (*Runtime, error) {
	return nil, fmt.Errorf("process sandboxes need Linux and this is %s: run belay-worker in a Linux virtual machine or container; %w", runtime.GOOS, sandbox.ErrUnsupported)
}

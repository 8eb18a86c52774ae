//go:build linux

package main

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Roles, the program's first argument.
const (
	roleSupervisor = "supervisor"
	roleLaunch     = "launch"
	roleAgent      = "agent"
	roleCommand    = "command"
)

func main() {
	if err := play(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "belay-sandbox:", err)
		os.Exit(1)
	}
}

// play takes the role that the first argument names.
func play(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("this program is started by belay-worker; it has no use of its own")
	}
	// A descriptor that some ancestor forgot to close must not travel on into a sandbox.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close inherited descriptors: %w", err)
	}
	switch args[0] {
	case roleSupervisor:
		return supervise()
	case roleLaunch:
		return launch(args[1:])
	case roleAgent:
		return agent(args[1:])
	case roleCommand:
		return command()
	}
	return fmt.Errorf("unknown role %q", args[0])
}

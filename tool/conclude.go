package tool

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"belay/agent"
	"belay/sandbox"
)

// conclude gives an observation the status of a command, and its text a last line in brackets that says how the command
// ended. How long it took is not in the text: the same command with the same outcome must look the same.
func conclude(o *agent.Observation, r sandbox.Result, a shellArgs, timeout time.Duration) {
	if strings.TrimSpace(o.Text) == "" {
		o.Text = "(no output)"
	}
	var ended []string
	switch {
	case r.TimedOut:
		o.Status = agent.CallTimeout
		ended = append(ended, timedOut(a, timeout))
	case r.Stopped:
		o.Status = agent.CallCancelled
		ended = append(ended, "stopped from outside; the command and everything it started was killed")
	case r.Signal != 0:
		o.Status = agent.CallFailed
		ended = append(ended, "killed by "+signalName(r.Signal))
	default:
		o.Status = agent.CallOK
		if r.Exit != 0 {
			o.Status = agent.CallFailed
		}
		exit := r.Exit
		o.Exit = &exit
		ended = append(ended, exitText(exit))
	}
	if r.OOM {
		ended = append(ended, "the sandbox ran out of memory and the kernel killed what took it: use less, or do it in parts")
	}
	if a.ReadsOnly && o.Status == agent.CallFailed {
		ended = append(ended, "the workspace was read-only, as reads_only asked")
	}
	if r.Left > 0 {
		was := map[bool]string{true: "was", false: "were"}[r.Left == 1]
		ended = append(ended, plural(r.Left, "process")+" that it left behind "+was+" killed: nothing outlives a call")
	}
	if r.Dir != "" && r.Dir != sandbox.Workspace && !a.ReadsOnly {
		ended = append(ended, "in "+visibleName(r.Dir))
	}
	o.Text = strings.TrimSuffix(o.Text, "\n") + "\n[" + cut(strings.Join(ended, "; "), 500) + "]"
}

func timedOut(a shellArgs, timeout time.Duration) string {
	text := fmt.Sprintf("timeout: killed after %s with everything it started", timeout)
	if asked := a.timeout(); timeout < asked {
		return text + fmt.Sprintf("; it asked for %s, and this task allows no more than %s", asked, timeout)
	}
	return text + fmt.Sprintf("; the timeout may be raised to %s where the task allows it", maxShellTimeout)
}

// exitText is an exit status, with what a status above 128 usually means.
func exitText(exit int) string {
	if exit > 128 && exit <= 128+64 {
		return fmt.Sprintf("exit %d, as of a command killed by %s", exit, signalName(exit-128))
	}
	return fmt.Sprintf("exit %d", exit)
}

func signalName(n int) string {
	return fmt.Sprintf("signal %d (%s)", n, syscall.Signal(n))
}

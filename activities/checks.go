package activities

import (
	"context"
	"fmt"
	"strings"
	"time"

	"belay/agent"
	"belay/sandbox"
)

// ChecksInput asks to run the acceptance checks of a task.
type ChecksInput struct {
	Run     agent.RunRef   `json:"run"`
	Step    int            `json:"step"`
	Round   int            `json:"round"`
	Sandbox sandbox.ID     `json:"sandbox"`
	Timeout agent.Duration `json:"timeout,omitempty"`
	Notes   []agent.Note   `json:"notes,omitempty"`
}

// ChecksOutput says how each check ended.
type ChecksOutput struct {
	Checks []agent.CheckResult `json:"checks"`
	// Text tells the model what failed; empty when everything passed.
	Text string `json:"text,omitempty"`
}

// shownOutput is how much of a failed check's output the model is told, in bytes: its end.
const shownOutput = 4 << 10

// RunChecks runs the acceptance checks one after another, each through the same rules as the model's calls.
func (a *Activities) RunChecks(ctx context.Context, in ChecksInput) (ChecksOutput, error) {
	t := a.startAttempt(ctx)
	var out ChecksOutput
	err := t.run(ctx, func(ctx context.Context) (err error) {
		out, err = a.runChecks(ctx, in)
		return err
	})
	return out, err
}

func (a *Activities) runChecks(ctx context.Context, in ChecksInput) (ChecksOutput, error) {
	spec, err := a.spec(ctx, in.Run)
	if err != nil {
		return ChecksOutput{}, err
	}
	checks := spec.Task.Acceptance.Checks
	if err := a.allowChecks(a.c.Bundle().Policy, spec.Spec, checks); err != nil {
		return ChecksOutput{}, err
	}
	box, err := a.c.Sandbox.Open(ctx, in.Sandbox)
	if err != nil {
		return ChecksOutput{}, sandboxError(in.Sandbox, err)
	}
	var out ChecksOutput
	var failed strings.Builder
	for i, command := range checks {
		res, err := box.Exec(ctx, sandbox.ExecID(fmt.Sprintf("check-%d-%d", in.Round, i+1)), sandbox.Command{
			Script:  command,
			Timeout: time.Duration(in.Timeout),
		})
		if err != nil {
			return ChecksOutput{}, sandboxError(in.Sandbox, fmt.Errorf("check %q: %w", command, err))
		}
		if ctx.Err() != nil {
			return ChecksOutput{}, ctx.Err()
		}
		c := agent.CheckResult{Command: command, Status: checkStatus(res), Exit: res.Exit}
		if c.Output, err = a.tenant(in.Run).Put(ctx, res.Output); err != nil {
			return ChecksOutput{}, fmt.Errorf("output of check %q: %w", command, err)
		}
		out.Checks = append(out.Checks, c)
		if c.Status != agent.CallOK {
			fmt.Fprintf(&failed, "The check %q ended with %s (exit %d):\n%s\n\n", command, c.Status, res.Exit, tail(string(res.Output), shownOutput))
		}
	}
	out.Text = failed.String()
	return out, nil
}

func checkStatus(r sandbox.Result) agent.CallStatus {
	switch {
	case r.TimedOut:
		return agent.CallTimeout
	case r.Exit != 0:
		return agent.CallFailed
	}
	return agent.CallOK
}

func tail(s string, n int) string {
	if len(s) > n {
		s = "…" + s[len(s)-n:]
	}
	return strings.ToValidUTF8(s, "�")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"belay/agent"
)

// called runs the command without a server.
func called(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	var out strings.Builder
	env := func(name string) string { return map[string]string{"USER": "ana"}[name] }
	err = run(t.Context(), append(args, "--address", "127.0.0.1:1"), env, strings.NewReader(stdin), &out, io.Discard)
	return out.String(), err
}

// Bad usage and bad input are answered in one line, before anything is asked of a server.
func TestBadUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"shw", `unknown verb "shw"; did you mean "show"?`},
		{"zzzzzzzzzzzz", `unknown verb "zzzzzzzzzzzz"; expected one of answer, approve, cancel, completion, config, decide, diff, edit, events, export, list, message, pause, pending, policy, raise, reject, resume, run, show, start, watch`},
		{"show", `show: <id> is missing; usage: belay show <id> [flags]`},
		{"show|a|b", `show: unexpected argument "b"; usage: belay show <id> [flags]`},
		{"show|a|--run", `show: unknown flag --run; did you mean --run-id?`},
		{"list|--limit|many", `list: --limit: "many"; expected a whole number`},
		{"list|--limit|0", `--limit: 0; expected at least 1`},
		{"list|--tenant|Acme Inc", `--tenant: "Acme Inc"; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
		{"list|--state|waitin", `--state: "waitin"; did you mean "waiting"?`},
		{"list|--state|nonsense", `--state: "nonsense"; expected one of queued, running, paused, waiting, finished, error, stuck, cancelled`},
		{"pause|", `pause: <id> is empty; usage: belay pause <id> [flags]`},
		{"pending|", `pending: [id] is empty; usage: belay pending [id] [flags]`},
		{"completion|tcsh", `unknown verb "tcsh"; did you mean "bash"?`},
		{"start", `goal: missing; expected the outcome that you ask for`},
		{"start|g|--goal|h", `goal: given twice: "g" and --goal "h"`},
		{"start|g|--file|task.json", `goal: given twice: "g" and in --file task.json`},
		{"start|--file|task.json|--agent|coder", `--agent: has no place with --file, whose task says it`},
		{"run|--file|task.json|--goal|g", `--goal: has no place with --file, whose task says it`},
		{"start|g|--limit|max_step=3", `limits.max_step: unknown field; did you mean "max_steps"?`},
		{"start|g|--limit|max_steps=many", `limits.max_steps: "many"; expected a whole number`},
		{"start|g|--limit|max_steps=3|--limit|max_steps=4", `--limit: max_steps is given twice`},
		{"start|g|--limit|3", `--limit: "3"; expected name=value`},
		{"start|g|--label|x", `--label: "x"; expected name=value`},
		{"start|g|--label|a=1|--label|a=2", `--label: a is given twice`},
		{"start|g|--priority|abc", `start: --priority: "abc"; expected a whole number`},
		{"start|g|--priority|0", `--priority: 0; expected at least 1`},
		{"start|g|--quorum|0", `--quorum: 0; expected at least 1`},
		{"start|g|--quorum|2|--reviewer|ana", `acceptance.quorum: 2; expected 1 to the number of reviewers, 1`},
		{"start|g|--check-rounds|21", `acceptance.check_rounds: 21; expected 1 to 20`},
		{"start|g|--expires-after|soon", `acceptance.expires_after: "soon"; expected a duration such as "90s" or "2h"`},
		{"start|g|--priority|9", `priority: 9; expected 1 (most urgent) to 5`},
		{"start|g|--reviewer|Bo", `acceptance.reviewers[0]: "Bo"; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
		{"start|--file|-", `-: goal: missing; expected the outcome that you ask for`},
		{"approve|a", `approve: <call> is missing; usage: belay approve <id> <call> [flags]`},
		{"approve|a|c1|--yes", `--yes: needs --digest, so that nothing is decided that nobody looked at`},
		{"approve|a|c1|--by|Ana", `--by: "Ana"; expected who says it: up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
		{"edit|a|c1|--arguments|[1]", `--arguments: [1]; expected a JSON object`},
		{"edit|a|c1|--yes|--digest|x", `--yes: needs --arguments`},
		{"message|a|hi|--by|", `--by: missing, and USER is not set; expected who says it`},
		{"raise|a|--limit|x", `--limit: "x"; expected name=value`},
		{"decide|a|fine", `decide: decision: "fine"; expected accepted, conditional, rejected or rerun`},
		{"decide|a|conditional", `decide: conditions: missing; a conditional decision names at least one`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			_, err := called(t, "{}", strings.Split(tt.args, "|")...)
			if err == nil || err.Error() != tt.want {
				t.Errorf("%v\nwant %s", err, tt.want)
			}
			if got := exitCode(err); got != exitUsage {
				t.Errorf("exit code %d, want %d", got, exitUsage)
			}
		})
	}
}

// Every verb that needs Temporal exits 3 without it.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"start g", "run g", "list", "show a", "watch a", "events a", "diff a", "export a", "pending", "pending a", "approve a c1",
		"reject a c1", "edit a c1 --arguments {}", "answer a q1 x", "message a x", "pause a", "resume a", "raise a --limit max_steps=3", "cancel a",
		"decide a accepted",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			out, err := called(t, "", strings.Fields(args)...)
			if got := exitCode(err); got != exitUnreachable || strings.ContainsRune(err.Error(), '\n') {
				t.Errorf("exit code %d, want %d: %v", got, exitUnreachable, err)
			}
			if out != "" {
				t.Errorf("printed %q", out)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	refusal := temporal.NewNonRetryableApplicationError("not that digest", string(agent.Unauthorized), nil)
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{errors.New("x"), exitNotWell},
		{usagef("x"), exitUsage},
		{fmt.Errorf("around: %w", refusedf("x")), exitRefused},
		{agent.Errorf(agent.InvalidInput, "x"), exitUsage},
		{agent.Errorf(agent.StateError, "x"), exitNotWell},
		{fmt.Errorf("describe: %w", serviceerror.NewUnavailable("x")), exitUnreachable},
		{spelledOut(fmt.Errorf("list tasks: %w", serviceerror.NewNamespaceNotFound("nope"))), exitUsage},
		{spelledOut(nil), exitDone},
		{fmt.Errorf("task: %w", errEnded), exitRefused},
		{answerOf("a", nil), exitDone},
		{answerOf("a", refusal), exitRefused},
		{answerOf("a", serviceerror.NewNotFound("x")), exitUsage},
		{answerOf("a", serviceerror.NewDeadlineExceeded("x")), exitNotWell},
		{answerOf("a", serviceerror.NewWorkflowNotReady("x")), exitNotWell},
		{answerOf("a", serviceerror.NewUnavailable("x")), exitUnreachable},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%v: exit code %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  agent.Event
		code int
		want string
	}{
		{"final answer", agent.Event{Type: agent.EventTaskCompleted}, exitDone, ""},
		{"stuck", agent.Event{Type: agent.EventTaskFailed, Fields: map[string]any{"termination_reason": "stuck", "error": "in circles"}},
			exitNotWell, "the task ended as stuck: in circles"},
		{"policy", agent.Event{Type: agent.EventTaskFailed, Fields: map[string]any{"termination_reason": "policy_denied", "error": "no"}},
			exitRefused, "the task ended as policy_denied: no"},
		{"tenant", agent.Event{Type: agent.EventTaskFailed, Fields: map[string]any{"error_type": "Unauthorized", "error": "no"}},
			exitRefused, "the task ended as Unauthorized: no"},
		{"bad input", agent.Event{Type: agent.EventTaskFailed, Fields: map[string]any{"error_type": "InvalidInput", "error": "goal: missing"}},
			exitUsage, "the task ended as InvalidInput: goal: missing"},
		{"cancelled", agent.Event{Type: agent.EventTaskCancelled, Fields: map[string]any{"termination_reason": "cancelled"}},
			exitNotWell, "the task ended as cancelled: no reason was given"},
		{"no end", agent.Event{}, exitNotWell, "the task's history ended without an end of the task"},
	} {
		err := outcome(tt.end)
		if got := exitCode(err); got != tt.code {
			t.Errorf("%s: exit code %d, want %d", tt.name, got, tt.code)
		}
		if err != nil && err.Error() != tt.want {
			t.Errorf("%s: %v; want %s", tt.name, err, tt.want)
		}
	}
}

// Whoever leaves a task that goes on got what was asked for.
func TestDetached(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	c := cli{stderr: &said}
	if err := c.detached(t.Context(), "fix-calc", io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) || said.Len() > 0 {
		t.Errorf("%v, said %q; want the error, since nobody left", err, said.String())
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if err := c.detached(left, "fix-calc", context.Canceled); err != nil || !strings.Contains(said.String(), "belay cancel fix-calc") {
		t.Errorf("%v, said %q; want no error, and how to cancel", err, said.String())
	}
}

// A ledger that takes no decision says so before anything is shown or asked.
func TestDecidable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		l    agent.Ledger
		want string
	}{
		{agent.Ledger{Decision: agent.Pending}, ""},
		{agent.Ledger{Decision: agent.Conditional, DecidedBy: []agent.UserID{"ana"}}, ""},
		{agent.Ledger{Decision: agent.DecisionNone}, `no decision was asked for about "fix": its task named no reviewers`},
		{agent.Ledger{Decision: agent.Accepted, DecidedBy: []agent.UserID{"ana"}}, `the decision about "fix" is final: accepted by ana`},
		{agent.Ledger{Decision: agent.Expired}, `the decision about "fix" is final: expired`},
	} {
		err := decidable("fix", tt.l, nil)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want || exitCode(err) != exitRefused) {
			t.Errorf("%s: %v; want %q", tt.l.Decision, err, tt.want)
		}
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	for in, yes := range map[string]bool{"y\n": true, "YES\n": true, "yes": true, "n\n": false, "\n": false, "": false, "yesterday\n": false} {
		c := cli{stdin: strings.NewReader(in), stderr: io.Discard}
		if err := c.confirm("really?"); (err == nil) != yes {
			t.Errorf("%q: %v", in, err)
		}
	}
}

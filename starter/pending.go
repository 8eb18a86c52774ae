package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"belay/agent"
	"belay/workflows"
)

// waiting is one thing that waits for people, and the task that it belongs to.
type waiting struct {
	WorkflowID string `json:"workflow_id"`
	workflows.Pending
}

func (c *cli) pendingVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "pending [id]",
		Short:             "Show what waits for people, of one task or of all",
		Example:           "  belay pending\n  belay pending fix-calc --json",
		Args:              takes("[id]"),
		ValidArgsFunction: c.completeTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			if len(args) == 1 {
				list, err := s.pending(cmd.Context(), args[0])
				switch {
				case errors.Is(err, errEnded) && !c.asJSON:
					c.say("%s", err)
					return nil
				case err != nil && !errors.Is(err, errEnded):
					return err
				}
				return c.waitings(list)
			}
			return c.allPending(cmd.Context(), s)
		},
	}
}

// allPending shows what waits in any task. One task that does not answer hides no other.
func (c *cli) allPending(ctx context.Context, s *session) error {
	rows, err := s.list(ctx, fmt.Sprintf(`WorkflowType=%q AND ExecutionStatus="Running" AND BelayState="waiting"`, workflows.TypeAgentTask), 1000)
	if err != nil && exitCode(err) == exitUsage { // no search attributes here: every open task is asked
		rows, err = s.list(ctx, fmt.Sprintf(`WorkflowType=%q AND ExecutionStatus="Running"`, workflows.TypeAgentTask), 1000)
	}
	if err != nil {
		return err
	}
	var all []waiting
	silent := 0
	for _, r := range rows {
		list, err := s.pending(ctx, r.WorkflowID)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, errEnded) { // since it was listed
			fmt.Fprintln(c.stderr, "belay:", err)
			silent++
		}
		all = append(all, list...)
	}
	if silent == 0 || len(all) > 0 {
		if err := c.waitings(all); err != nil {
			return err
		}
	}
	if silent > 0 {
		return fmt.Errorf("%d tasks did not answer", silent)
	}
	return nil
}

// pending asks a task what waits for people. Nothing of a task that has ended does, which is errEnded.
func (s *session) pending(ctx context.Context, id string) ([]waiting, error) {
	var list []workflows.Pending
	if err := askOpen(ctx, s, id, "", workflows.QueryPending, &list); err != nil {
		switch why := s.running(ctx, id); {
		case agent.TypeOf(why) == agent.InvalidInput: // no task
			return nil, why
		case errors.Is(err, errEnded):
			return nil, fmt.Errorf("task %q: nothing waits for anyone, %w", id, err)
		}
		return nil, err
	}
	var all []waiting
	for _, p := range list {
		all = append(all, waiting{id, p})
	}
	return all, nil
}

func (c *cli) waitings(list []waiting) error {
	if c.asJSON {
		for _, w := range list {
			if err := c.object(w); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		c.say("Nothing waits for anyone.")
	}
	for i, w := range list {
		if i > 0 {
			c.say("")
		}
		c.say("%s\n%s", w, pairs{{"  answer", w.answer()}, {"  or", w.Command}})
	}
	return nil
}

// answer is the verb of this command that answers.
func (w waiting) answer() string {
	id := shellQuoted(w.WorkflowID)
	switch w.Kind {
	case "question":
		return fmt.Sprintf(`belay answer %s %s "…"`, id, w.Question)
	case "limit":
		return fmt.Sprintf("belay raise %s --limit %s=…", id, w.Limit)
	}
	return fmt.Sprintf("belay approve %s %s", id, w.Call)
}

// String shows an action as whoever decides must see it: in full.
func (w waiting) String() string {
	switch w.Kind {
	case "question":
		return fmt.Sprintf("%s asks (%s):\n%s\n%s", w.WorkflowID, w.Question, indented(w.Text, "  "), pairs{{"  until", until(w.Until)}})
	case "limit":
		return fmt.Sprintf("%s is parked: %s\n%s", w.WorkflowID, clean(w.Text), pairs{{"  until", until(w.Until)}})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s wants to run %s: %s\n", w.WorkflowID, w.Call, line(w.Text, 200))
	fmt.Fprintf(&b, "%s\n%s", pairs{
		{"  tool", w.Tool},
		{"  risk", fmt.Sprintf("%s, effect %s", w.Risk, w.Effect)},
		{"  because", w.Reason},
		{"  rules", names(w.Rules)},
		{"  may decide", orAnyone(w.Reviewers)},
		{"  until", until(w.Until)},
		{"  digest", w.Digest},
	}, arguments(w.Arguments))
	return b.String()
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// call finds one pending call of a task, with its arguments in full.
func (s *session) call(ctx context.Context, id string, call agent.CallID) (waiting, error) {
	list, err := s.pending(ctx, id)
	if err != nil {
		return waiting{}, err
	}
	var others []string
	for _, w := range list {
		if w.Kind == "approval" && w.Call == call {
			return s.whole(ctx, w)
		}
		if w.Kind == "approval" {
			others = append(others, string(w.Call))
		}
	}
	if len(others) == 0 {
		return waiting{}, refusedf("call %q of %q does not wait for a decision; no call does", call, id)
	}
	return waiting{}, refusedf("call %q of %q does not wait for a decision; expected one of %s", call, id, strings.Join(others, ", "))
}

// whole fetches the arguments of a call from the conversation, where they are too long for the history.
func (s *session) whole(ctx context.Context, w waiting) (waiting, error) {
	if json.Valid([]byte(w.Arguments)) {
		return w, nil
	}
	if s.absent != nil {
		return w, fmt.Errorf("arguments of call %s in full: %w", w.Call, s.absent)
	}
	var st workflows.Status
	if err := ask(ctx, s, w.WorkflowID, "", workflows.QueryState, &st); err != nil {
		return w, err
	}
	talk, err := s.store.Tenant(st.Tenant).Conversation(ctx, st.Head)
	if err != nil {
		return w, fmt.Errorf("arguments of call %s in full (BELAY_STORE): %w", w.Call, err)
	}
	for i := len(talk.Turns) - 1; i >= 0; i-- {
		for _, m := range talk.Turns[i].Messages {
			for _, c := range m.Calls {
				if c.ID == w.Call {
					w.Arguments = c.Arguments
					return w, nil
				}
			}
		}
	}
	return w, agent.Errorf(agent.StateError, "arguments of call %s in full: not in the conversation %s", w.Call, st.Head.Short())
}

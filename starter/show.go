package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"belay/agent"
	"belay/events"
	"belay/store"
	"belay/workflows"
)

func (c *cli) showVerb() *cobra.Command {
	var runID string
	cmd := &cobra.Command{
		Use:               "show <id>",
		Short:             "Show where a task stands, or its ledger when it has ended",
		Example:           "  belay show fix-calc",
		Args:              takes("<id>"),
		ValidArgsFunction: c.completeTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			found, err := s.tasks.Find(cmd.Context(), args[0], runID)
			if err != nil {
				return err
			}
			if found.Open {
				return c.showStatus(cmd.Context(), s, found)
			}
			l, err := s.ledger(cmd.Context(), found)
			if err != nil {
				return err
			}
			return c.showLedger(l)
		},
	}
	cmd.Flags().StringVar(&runID, "run-id", "", "run, where the id was used several times; default: the last")
	return cmd
}

func (c *cli) showStatus(ctx context.Context, s *session, found events.Found) error {
	var st workflows.Status
	if err := ask(ctx, s, found.WorkflowID, found.RunID, workflows.QueryState, &st); err != nil {
		return err
	}
	if c.asJSON {
		return c.object(st)
	}
	c.say("%s", pairs{
		{"task", st.WorkflowID},
		{"state", stateText(st)},
		{"goal", st.Goal},
		{"step", fmt.Sprintf("%d of %d", st.Step, st.Limits.MaxSteps)},
		{"spent", spent(st.Usage, st.Limits)},
		{"time", fmt.Sprintf("%s of %s", time.Duration(st.Worked).Round(time.Second), st.Limits.TaskTimeout)},
		{"agent", st.Agent},
		{"for", fmt.Sprintf("%s (tenant %s)", st.User, st.Tenant)},
		{"risk so far", st.Risk},
		{"checkpoint", st.Tree.Short()},
		{"ledger", st.Ledger},
		{"Web UI", c.link(st.WorkflowID)},
	})
	for _, r := range st.Refused {
		c.say("refused: %s by %s: %s", r.Verb, clean(string(r.By)), clean(r.Reason))
	}
	if st.Paused != nil {
		c.say("\n%s", pausedText(st))
	}
	if st.Pending == 0 {
		return nil
	}
	var list []workflows.Pending
	if err := ask(ctx, s, found.WorkflowID, found.RunID, workflows.QueryPending, &list); err != nil {
		return err
	}
	for _, p := range list {
		c.say("\nwaits for %s: %s\n  %s", orAnyone(p.Reviewers), line(p.Text, 200), waiting{st.WorkflowID, p}.answer())
	}
	return nil
}

// stateText is a task's state, and why it ends, once it does.
func stateText(st workflows.Status) string {
	if st.Reason == "" {
		return string(st.State)
	}
	return fmt.Sprintf("%s: %s", st.State, st.Reason)
}

// pausedText says who paused a task, why, and how it goes on.
func pausedText(st workflows.Status) string {
	why := ""
	if st.Paused.Reason != "" {
		why = ": " + line(st.Paused.Reason, 200)
	}
	return fmt.Sprintf("paused by %s%s\n  belay resume %s", st.Paused.By, why, shellQuoted(st.WorkflowID))
}

func orAnyone(list []agent.UserID) string {
	if len(list) == 0 {
		return "anyone"
	}
	return names(list)
}

// ledger reads a task's ledger from the store, or else from the ledger's own workflow, or else from the result that the task
// left: whichever this machine gets at.
func (s *session) ledger(ctx context.Context, found events.Found) (agent.Ledger, error) {
	l, err := s.tasks.Ledger(ctx, found)
	if !errors.Is(err, store.ErrNotFound) {
		return l, err
	}
	silent := ask(ctx, s, agent.LedgerWorkflowID(found.WorkflowID, found.Run.Run), "", workflows.QueryLedger, &l)
	if silent == nil {
		return l, nil
	}
	var reason string
	for e, err := range s.tasks.Read(ctx, found) {
		if err != nil {
			return l, err
		}
		if neverRan(e) {
			return l, outcome(e)
		}
		if ends(e) {
			reason = text(e.Fields["termination_reason"])
		}
	}
	switch {
	case agent.TypeOf(silent) == agent.InvalidInput: // there is no such workflow
		return l, coded{exitNotWell, fmt.Errorf("task %q has ended (%s); its ledger follows within a minute, as long as a worker runs", found.WorkflowID, reason)}
	case s.absent != nil:
		return l, fmt.Errorf("ledger of %q: %w, and %w", found.WorkflowID, s.absent, silent)
	}
	return l, fmt.Errorf("task %q has no ledger in BELAY_STORE, and %w", found.WorkflowID, silent)
}

// neverRan says whether an event is the end of a task that was refused before anything ran. It has no ledger.
func neverRan(e agent.Event) bool { return ends(e) && e.Fields["termination_reason"] == nil }

func (c *cli) showLedger(l agent.Ledger) error {
	if c.asJSON {
		return c.object(l)
	}
	end := string(l.TerminationReason)
	if l.Limit != "" {
		end += " (" + string(l.Limit) + ")"
	}
	c.say("%s", pairs{
		{"task", l.WorkflowID},
		{"goal", l.Goal},
		{"state", fmt.Sprintf("%s: %s", l.ExecutionState, end)},
		{"error", l.Error},
		{"outcome", l.ProposedOutcome},
		{"criteria", bullets(l.Criteria)},
		{"checks", checks(l.Checks)},
		{"workspace", workspace(l.WorkspaceRef)},
		{"usage", fmt.Sprintf("%d steps · %d tokens · $%.4f · %d calls · %s", l.Usage.Steps, l.Usage.Tokens(), l.Usage.CostUSD, l.Usage.ToolCalls,
			time.Duration(l.Usage.Wall).Round(time.Second))},
		{"decision", decision(l)},
		{"comment", l.Comment},
		{"conditions", bullets(l.Conditions)},
		{"reviewers", names(l.Reviewers)},
		{"next", l.NextAction},
		{"supersedes", l.Supersedes},
		{"superseded by", l.SupersededBy},
		{"refused", bullets(l.Refused)},
	})
	if !l.Decision.Final() {
		c.say("\ndecide: belay decide %s accepted", shellQuoted(l.WorkflowID))
	}
	return nil
}

func bullets(list []string) (s string) {
	for _, e := range list {
		s += "- " + e + "\n"
	}
	return s
}

func checks(list []agent.CheckResult) (s string) {
	for _, r := range list {
		s += fmt.Sprintf("%s (exit %d): %s\n", r.Status, r.Exit, r.Command)
	}
	return s
}

func workspace(w agent.WorkspaceRef) string {
	if w.Tree == "" {
		return w.Source
	}
	return fmt.Sprintf("%s: %s to %s", w.Source, w.Base.Short(), w.Tree.Short())
}

func decision(l agent.Ledger) string {
	if len(l.DecidedBy) == 0 {
		return string(l.Decision)
	}
	return fmt.Sprintf("%s by %s", l.Decision, names(l.DecidedBy))
}

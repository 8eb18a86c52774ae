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
		{"state", st.State},
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
	if st.Pending > 0 {
		c.say("waits for %s; see belay pending %s", orAnyone(st.WaitingFor), shellQuoted(st.WorkflowID))
	}
	return nil
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
	id := agent.LedgerWorkflowID(found.WorkflowID, found.Run.Run)
	if err := ask(ctx, s, id, "", workflows.QueryLedger, &l); err == nil {
		return l, nil
	}
	for e, err := range s.tasks.Read(ctx, found) {
		if err != nil {
			return l, err
		}
		if ends(e) && e.Fields["termination_reason"] == nil {
			return l, outcome(e) // it was refused before anything ran, and has no ledger
		}
	}
	return l, agent.Errorf(agent.StateError, "task %q: no ledger in %s, and workflow %q does not answer", found.WorkflowID, "BELAY_STORE", id)
}

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

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"belay/agent"
	"belay/workflows"
)

// ledgerPrefix starts the workflow ids of ledgers.
const ledgerPrefix = "ledger/"

func (c *cli) decideVerb() *cobra.Command {
	var d decider
	var comment, next string
	var conditions []string
	cmd := &cobra.Command{
		Use:               "decide <id> <decision>",
		Short:             "Decide about a task's outcome: accepted, conditional, rejected or rerun",
		Example:           "  belay decide fix-calc accepted --comment 'reads well' --next-action merge",
		Args:              takes("<id>", "<decision>"),
		ValidArgsFunction: c.completeDecision,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.who(); err != nil {
				return err
			}
			return c.decide(cmd.Context(), args[0], d.yes, agent.LedgerDecide{
				Decision: agent.LedgerDecision(args[1]), By: agent.UserID(d.by), Comment: comment, Conditions: conditions, NextAction: next,
			})
		},
	}
	d.register(cmd, c)
	f := cmd.Flags()
	f.BoolVar(&d.yes, "yes", false, "do not ask")
	f.StringVar(&comment, "comment", "", "comment for the record")
	f.StringArrayVar(&conditions, "condition", nil, "what must still be met; may be repeated")
	f.StringVar(&next, "next-action", "", "what is to be done next, such as merge")
	return cmd
}

// isLedger says whether an id is that of a ledger's workflow.
func isLedger(id string) bool { return strings.HasPrefix(id, ledgerPrefix) }

// decide shows a ledger, asks, and sends the decision about it. The id is the task's or the ledger's own.
func (c *cli) decide(ctx context.Context, id string, yes bool, d agent.LedgerDecide) error {
	raw, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if _, err := agent.DecodeDecide(raw); err != nil {
		return err
	}
	s, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	ledgerID, l, err := s.undecided(ctx, id)
	if err != nil {
		return err
	}
	if !yes {
		shown := *c
		shown.stdout, shown.asJSON = c.stderr, false
		if err := shown.showLedger(l); err != nil {
			return err
		}
		if err := c.confirm(fmt.Sprintf("%s as %s?", d.Decision, d.By)); err != nil {
			return err
		}
	}
	if err := update(ctx, s, ledgerID, string(agent.VerbDecide), raw, &l); err != nil {
		return err
	}
	if c.asJSON {
		return c.object(l)
	}
	if l.Decision != d.Decision {
		c.say("Recorded. The decision is %s: %d must accept.", l.Decision, l.Quorum)
		return nil
	}
	c.say("Recorded: %s.", decision(l))
	return nil
}

// undecided finds the workflow of a ledger, by the task's id or its own, and what it says. A ledger that takes no decision, or
// no other one, is refused.
func (s *session) undecided(ctx context.Context, id string) (ledgerID string, l agent.Ledger, err error) {
	if isLedger(id) {
		err = ask(ctx, s, id, "", workflows.QueryLedger, &l)
		return id, l, decidable(id, l, err)
	}
	found, err := s.tasks.Find(ctx, id, "")
	if err != nil {
		return "", l, err
	}
	if found.Open {
		return "", l, refusedf("task %q has not ended: there is nothing to decide about", id)
	}
	ledgerID = agent.LedgerWorkflowID(found.WorkflowID, found.Run.Run)
	if l, err = s.tasks.Ledger(ctx, found); err == nil && l.Decision.Final() {
		return ledgerID, l, decidable(id, l, nil) // it stays so, and its workflow need not answer
	}
	err = ask(ctx, s, ledgerID, "", workflows.QueryLedger, &l)
	if agent.TypeOf(err) == agent.InvalidInput { // the server has no such workflow, or none any more
		l, err = s.ledger(ctx, found)
	}
	return ledgerID, l, decidable(id, l, err)
}

// decidable says why no decision can be taken about a ledger that was read, unless err says it already.
func decidable(id string, l agent.Ledger, err error) error {
	switch {
	case err != nil:
		return err
	case l.Decision == agent.DecisionNone:
		return refusedf("no decision was asked for about %q: its task named no reviewers", id)
	case l.Decision.Final():
		return refusedf("the decision about %q is final: %s", id, decision(l))
	}
	return nil
}

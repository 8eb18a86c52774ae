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
	ledgerID, err := s.ledgerID(ctx, id)
	if err != nil {
		return err
	}
	if !yes {
		var l agent.Ledger
		if err := ask(ctx, s, ledgerID, "", workflows.QueryLedger, &l); err != nil {
			return err
		}
		shown := *c
		shown.stdout, shown.asJSON = c.stderr, false
		if err := shown.showLedger(l); err != nil {
			return err
		}
		if err := c.confirm(fmt.Sprintf("%s as %s?", d.Decision, d.By)); err != nil {
			return err
		}
	}
	var l agent.Ledger
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

// ledgerID finds the workflow of a task's ledger.
func (s *session) ledgerID(ctx context.Context, id string) (string, error) {
	if isLedger(id) {
		return id, nil
	}
	found, err := s.tasks.Find(ctx, id, "")
	if err != nil {
		return "", err
	}
	if found.Open {
		return "", refusedf("task %q has not ended: there is nothing to decide about", id)
	}
	return agent.LedgerWorkflowID(found.WorkflowID, found.Run.Run), nil
}

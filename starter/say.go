package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"belay/agent"
)

// control sends what a verb without a call says.
func (c *cli) control(ctx context.Context, d *decider, verb agent.Verb, id string, body map[string]any) error {
	if err := d.who(); err != nil {
		return err
	}
	body["by"] = d.by
	s, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	return c.tell(ctx, s, id, verb, body)
}

func (c *cli) answerVerb() *cobra.Command {
	var d decider
	cmd := &cobra.Command{
		Use:               "answer <id> <question> <text>",
		Short:             "Answer a question that the agent asks",
		Example:           "  belay answer fix-calc q1 'use the second variant'",
		Args:              takes("<id>", "<question>", "<text>"),
		ValidArgsFunction: c.completeQuestion,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.control(cmd.Context(), &d, agent.VerbAnswer, args[0], map[string]any{"question": args[1], "text": args[2]})
		},
	}
	d.register(cmd, c)
	return cmd
}

func (c *cli) messageVerb() *cobra.Command {
	var d decider
	cmd := &cobra.Command{
		Use:               "message <id> <text>",
		Short:             "Tell the agent something, which it reads before its next step",
		Example:           "  belay message fix-calc 'leave the public API as it is'",
		Args:              takes("<id>", "<text>"),
		ValidArgsFunction: c.completeTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.control(cmd.Context(), &d, agent.VerbMessage, args[0], map[string]any{"text": args[1]})
		},
	}
	d.register(cmd, c)
	return cmd
}

// pauseVerb is pause or resume, which say the same things.
func (c *cli) pauseVerb(verb agent.Verb) *cobra.Command {
	var d decider
	var reason string
	short := "Let nothing new start in a task until it is resumed"
	if verb == agent.VerbResume {
		short = "Let a paused task go on"
	}
	cmd := &cobra.Command{
		Use:               fmt.Sprintf("%s <id>", verb),
		Short:             short,
		Example:           fmt.Sprintf("  belay %s fix-calc --reason 'deploy at noon'", verb),
		Args:              takes("<id>"),
		ValidArgsFunction: c.completeTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.control(cmd.Context(), &d, verb, args[0], map[string]any{"reason": reason})
		},
	}
	d.register(cmd, c)
	cmd.Flags().StringVar(&reason, "reason", "", "reason for the record")
	return cmd
}

func (c *cli) raiseVerb() *cobra.Command {
	var d decider
	var limits []string
	cmd := &cobra.Command{
		Use:               "raise <id> --limit name=value",
		Short:             "Raise a limit that parked a task, within its tenant's ceiling",
		Example:           "  belay raise fix-calc --limit max_cost_usd=5",
		Args:              takes("<id>"),
		ValidArgsFunction: c.completeTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			raised, err := assignments("--limit", limits)
			if err != nil {
				return err
			}
			return c.control(cmd.Context(), &d, agent.VerbRaise, args[0], map[string]any{"limits": raised})
		},
	}
	d.register(cmd, c)
	cmd.Flags().StringArrayVar(&limits, "limit", nil, "limit as name=value; may be repeated")
	return cmd
}

func (c *cli) cancelVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "cancel <id>",
		Short:             "Cancel a task: what runs is stopped, and the task writes its ledger",
		Example:           "  belay cancel fix-calc",
		Args:              takes("<id>"),
		ValidArgsFunction: c.completeTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			if err := s.running(cmd.Context(), args[0]); err != nil {
				return err
			}
			if err := s.CancelWorkflow(cmd.Context(), args[0], ""); err != nil {
				return answerOf(args[0], err)
			}
			if c.asJSON {
				return c.object(map[string]any{"workflow_id": args[0], "cancel_requested": true})
			}
			c.say("Asked %s to cancel.", args[0])
			return nil
		},
	}
}

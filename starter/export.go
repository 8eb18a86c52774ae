package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"belay/agent"
)

func (c *cli) exportVerb() *cobra.Command {
	var runID string
	cmd := &cobra.Command{
		Use:   "export <id>",
		Short: "Write a whole run as JSON Lines: its events, its conversation and its ledger",
		Long: "export writes a whole run as JSON Lines. Each line has a field record: event (the fields of an event), message (turn, role, text,\n" +
			"calls, call) or ledger (the fields of the ledger, when the task has ended).",
		Example:           "  belay export fix-calc > fix-calc.jsonl",
		Args:              takes("<id>"),
		ValidArgsFunction: c.completeTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			return c.export(cmd.Context(), s, args[0], runID)
		},
	}
	cmd.Flags().StringVar(&runID, "run-id", "", "run, where the id was used several times; default: the last")
	return cmd
}

func (c *cli) export(ctx context.Context, s *session, id, runID string) error {
	found, err := s.tasks.Find(ctx, id, runID)
	if err != nil {
		return err
	}
	if s.absent != nil {
		return s.absent
	}
	ledger := !found.Open
	var p checkpoints
	for e, err := range s.tasks.Read(ctx, found) {
		if err != nil {
			return err
		}
		p.see(e)
		ledger = ledger && !neverRan(e)
		if err := c.record("event", e); err != nil {
			return err
		}
	}
	talk, err := s.store.Tenant(found.Run.Tenant).Conversation(ctx, p.head)
	if err != nil {
		return fmt.Errorf("conversation of %s (BELAY_STORE): %w", id, err)
	}
	for n, turn := range talk.Turns {
		for _, m := range turn.Messages {
			if err := c.record("message", numbered{n + 1, m}); err != nil {
				return err
			}
		}
	}
	if !ledger {
		return nil
	}
	l, err := s.ledger(ctx, found)
	if err != nil {
		return err
	}
	return c.record("ledger", l)
}

// numbered is a message and the turn that it is part of.
type numbered struct {
	Turn int `json:"turn"`
	agent.Message
}

// record writes a value with the field that says what it is.
func (c *cli) record(kind string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	if fields["record"], err = json.Marshal(kind); err != nil {
		return err
	}
	return c.object(fields)
}

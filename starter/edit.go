package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"belay/agent"
)

func (c *cli) editVerb() *cobra.Command {
	var d decider
	var args, comment string
	cmd := &cobra.Command{
		Use:   "edit <id> <call>",
		Short: "Let a pending call run with other arguments",
		Long: "edit replaces the arguments of a pending call. The new action is judged by policy like any other, and runs if that allows it\n" +
			"with this approval. Without --arguments your editor (VISUAL, EDITOR) opens with the present ones.",
		Example:           "  belay edit fix-calc c3 --arguments '{\"command\":\"rm -rf build\"}'",
		Args:              takes("<id>", "<call>"),
		ValidArgsFunction: c.completeCall,
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.edit(cmd.Context(), &d, a[0], agent.CallID(a[1]), args, comment)
		},
	}
	d.registerCall(cmd, c)
	cmd.Flags().StringVar(&args, "arguments", "", "the arguments to run instead, as a JSON object")
	cmd.Flags().StringVar(&comment, "comment", "", "comment for the record")
	return cmd
}

func (c *cli) edit(ctx context.Context, d *decider, id string, call agent.CallID, args, comment string) error {
	if args == "" {
		if d.yes {
			return usagef("--yes: needs --arguments")
		}
		if err := d.check(); err != nil {
			return err
		}
		s, err := c.connect(ctx)
		if err != nil {
			return err
		}
		w, err := s.call(ctx, id, call)
		s.close()
		if err != nil {
			return err
		}
		if args, err = c.inEditor(ctx, pretty([]byte(w.Arguments))); err != nil {
			return err
		}
		if d.digest == "" {
			d.digest = string(w.Digest)
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(args), &object); err != nil {
		return usagef("--arguments: %s; expected a JSON object", line(args, 40))
	}
	return c.decideCall(ctx, d, agent.VerbEdit, id, call, map[string]any{"arguments": object, "comment": comment})
}

// inEditor lets the user change a text, and gives what came of it.
func (c *cli) inEditor(ctx context.Context, text string) (string, error) {
	editor := strings.Fields(c.getenv("VISUAL"))
	if len(editor) == 0 {
		editor = strings.Fields(c.getenv("EDITOR"))
	}
	if len(editor) == 0 {
		return "", usagef("--arguments: missing, and neither VISUAL nor EDITOR is set")
	}
	dir, err := os.MkdirTemp("", "belay-edit-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "arguments.json")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, editor[0], append(editor[1:], file)...) //nolint:gosec // the user's own editor
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, c.stderr, c.stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("editor %s: %w", editor[0], err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(b)) == strings.TrimSpace(text) {
		return "", coded{exitNotWell, errors.New("nothing was sent: the arguments are as they were")}
	}
	return string(b), nil
}

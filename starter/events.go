package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"belay/agent"
)

func (c *cli) eventsVerb() *cobra.Command {
	var runID string
	var follow bool
	cmd := &cobra.Command{
		Use:               "events <id>",
		Short:             "Show what happened in a task, from its beginning",
		Example:           "  belay events fix-calc\n  belay events fix-calc --follow\n  belay events fix-calc --json | jq 'select(.type==\"POLICY_DENIED\")'",
		Args:              takes("<id>"),
		ValidArgsFunction: c.completeTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			s, err := c.connect(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			found, err := s.tasks.Find(ctx, args[0], runID)
			if err != nil {
				return err
			}
			all := s.tasks.Read(ctx, found)
			if follow {
				all = s.tasks.Follow(ctx, found)
			}
			for e, err := range all {
				if err != nil {
					return stopped(ctx, err)
				}
				if err := c.event(e); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&runID, "run-id", "", "run, where the id was used several times; default: the last")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more until the task ends")
	return cmd
}

// event shows one event.
func (c *cli) event(e agent.Event) error {
	if c.asJSON {
		return c.object(e)
	}
	c.say("%s  %s", e.Time.Local().Format(time.TimeOnly), eventText(e))
	return nil
}

// eventText is an event on one line: its step, its type, what it is about, and what is told in a few words.
func eventText(e agent.Event) string {
	var words []string
	add := func(format string, v any) {
		if s := line(text(v), 160); s != "" {
			words = append(words, fmt.Sprintf(format, s))
		}
	}
	f := e.Fields
	for _, k := range []string{"call", "question", "tool", "activity"} {
		add("%s", f[k])
	}
	for _, k := range []string{"kind", "decision", "verb", "status", "termination_reason"} {
		add("%s", f[k])
	}
	for _, k := range []string{"goal", "summary", "outcome", "text", "why", "reason", "error", "comment"} {
		add("· %s", f[k])
	}
	for _, k := range []string{"risk", "by", "said_by", "decided_by", "reviewers", "limit", "exit", "duration", "attempt", "calls", "tree", "sandbox"} {
		if s := line(text(f[k]), 60); s != "" && !(k == "sandbox" && f["call"] != nil) {
			words = append(words, k+"="+short(k, s))
		}
	}
	if usage, ok := f["usage"].(map[string]any); ok {
		words = append(words, usageText(usage))
	}
	step := ""
	if e.Step > 0 {
		step = fmt.Sprintf("s%d", e.Step)
	}
	return strings.TrimSpace(fmt.Sprintf("%-4s %-19s %s", step, e.Type, strings.Join(words, " ")))
}

// short cuts the digests that a line has room for.
func short(key, value string) string {
	if key == "tree" {
		return agent.Digest(value).Short()
	}
	return value
}

// text is a field's value as a word.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		var s []string
		for _, e := range v {
			s = append(s, text(e))
		}
		return strings.Join(s, ",")
	}
	return fmt.Sprint(v)
}

func usageText(fields map[string]any) string {
	var u agent.Usage
	if b, err := json.Marshal(fields); err != nil || json.Unmarshal(b, &u) != nil {
		return ""
	}
	return fmt.Sprintf("(%d tokens, $%.4f)", u.Tokens(), u.CostUSD)
}

// checkpoints are the workspace before the first step of a task and the last one that was stored, and the conversation's end.
type checkpoints struct {
	base, tree, head agent.Digest
}

// see takes what an event tells of them.
func (p *checkpoints) see(e agent.Event) {
	switch e.Type {
	case agent.EventCheckpointCreated:
		p.tree = agent.Digest(text(e.Fields["tree"]))
		p.base = cmp.Or(p.base, p.tree)
	case agent.EventModelCompleted:
		p.head = cmp.Or(agent.Digest(text(e.Fields["head"])), p.head)
	}
}

package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"belay/agent"
	"belay/workflows"
)

// completeTime bounds what a shell waits for while it completes a word.
const completeTime = 2 * time.Second

// completion gives the words that may stand in one place.
type completion func(ctx context.Context, s *session, args []string) []string

// completed makes a completion of a list of places. Whatever goes wrong completes nothing.
func (c *cli) completed(places ...completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(places) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		var err error
		if c.set, err = readSettings(); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := c.connect(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer s.close()
		var words []string
		for _, w := range places[len(args)](ctx, s, args) {
			if strings.HasPrefix(w, prefix) {
				words = append(words, w)
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func (c *cli) completeTask(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completed(taskIDs)(cmd, args, prefix)
}

func (c *cli) completeCall(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completed(taskIDs, pendingIDs("approval"))(cmd, args, prefix)
}

func (c *cli) completeQuestion(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completed(taskIDs, pendingIDs("question"))(cmd, args, prefix)
}

func (c *cli) completeDecision(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return []cobra.Completion{string(agent.Accepted), string(agent.Conditional), string(agent.Rejected), string(agent.Rerun)}, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completed(taskIDs)(cmd, args, prefix)
}

// taskIDs are the ids of the tasks that started last.
func taskIDs(ctx context.Context, s *session, _ []string) (ids []string) {
	rows, err := s.list(ctx, `WorkflowType="`+workflows.TypeAgentTask+`"`, 100)
	if err != nil {
		return nil
	}
	for _, r := range rows {
		ids = append(ids, r.WorkflowID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// pendingIDs are the ids of what waits in the task that was named.
func pendingIDs(kind string) completion {
	return func(ctx context.Context, s *session, args []string) (ids []string) {
		list, err := s.pending(ctx, args[0])
		if err != nil {
			return nil
		}
		for _, w := range list {
			switch {
			case w.Kind != kind:
			case w.Question != "":
				ids = append(ids, string(w.Question))
			default:
				ids = append(ids, string(w.Call))
			}
		}
		return ids
	}
}

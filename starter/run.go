package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"belay/agent"
	"belay/events"
)

func (c *cli) runVerb() *cobra.Command {
	var t taskFlags
	cmd := &cobra.Command{
		Use:   "run [goal]",
		Short: "Start a task and show what happens until it ends",
		Long: "run starts a task, shows what happens until it ends, and exits 0 if it ended with a final answer. Ctrl-C leaves the task\n" +
			"running, says how to cancel it, and exits 0 too.",
		Example: "  belay run \"make the failing test pass\" --workspace examples/calc",
		Args:    takes("[goal]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, task, err := t.read(args, c.stdin)
			if err != nil {
				return err
			}
			s, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			started, err := c.start(cmd.Context(), s, t.workflowID(task.Goal), raw, task)
			if err != nil {
				return err
			}
			if !c.asJSON {
				c.say("Started %s\n%s\n", started.WorkflowID, started.UI)
			}
			return c.stream(cmd.Context(), s, started)
		},
	}
	t.register(cmd)
	return cmd
}

// stream shows the events of a task until it ends, and says how it ended.
func (c *cli) stream(ctx context.Context, s *session, started startedTask) error {
	found, err := s.tasks.Find(ctx, started.WorkflowID, started.RunID)
	if err != nil {
		return c.detached(ctx, started.WorkflowID, err)
	}
	last, err := c.follow(ctx, s, found)
	if err != nil {
		return c.detached(ctx, started.WorkflowID, err)
	}
	return outcome(last)
}

// follow shows every event as it happens and gives the one that ended the task.
func (c *cli) follow(ctx context.Context, s *session, found events.Found) (end agent.Event, err error) {
	for e, err := range s.tasks.Follow(ctx, found) {
		if err != nil {
			return end, err
		}
		if err := c.event(e); err != nil {
			return end, err
		}
		if ends(e) {
			end = e
		}
		if verb := answering(found.WorkflowID, e); verb != "" && !c.asJSON {
			c.say("          answer with: %s", verb)
		}
	}
	return end, nil
}

// answering is the verb that answers, where an event says that the task waits for a person.
func answering(id string, e agent.Event) string {
	w := waiting{WorkflowID: id}
	w.Call, w.Question, w.Limit = agent.CallID(text(e.Fields["call"])), agent.QuestionID(text(e.Fields["question"])), agent.LimitName(text(e.Fields["limit"]))
	switch {
	case e.Type == agent.EventApprovalRequested && w.Question != "":
		w.Kind = "question"
	case e.Type == agent.EventApprovalRequested:
		w.Kind = "approval"
	case e.Type == agent.EventLimitReached && text(e.Fields["on_limit"]) == string(agent.OnLimitAsk):
		w.Kind = "limit"
	default:
		return ""
	}
	return w.answer()
}

// ends says whether an event is the end of a task.
func ends(e agent.Event) bool {
	switch e.Type {
	case agent.EventTaskCompleted, agent.EventTaskFailed, agent.EventTaskCancelled:
		return true
	}
	return false
}

// outcome is what the end of a task means to whoever waited for it: nil for a final answer.
func outcome(end agent.Event) error {
	reason, text := end.Fields["termination_reason"], end.Fields["error"]
	if reason == nil {
		reason = end.Fields["error_type"]
	}
	code := exitNotWell
	switch {
	case end.Type == agent.EventTaskCompleted:
		return nil
	case end.Type == "":
		return errors.New("the task's history ended without an end of the task")
	case end.Fields["error_type"] == string(agent.InvalidInput):
		code = exitUsage
	case reason == string(agent.ReasonPolicyDenied), reason == string(agent.PolicyDenied), reason == string(agent.Unauthorized):
		code = exitRefused
	}
	if text == nil {
		text = "no reason was given"
	}
	return coded{code, fmt.Errorf("the task ended as %v: %s", reason, line(fmt.Sprint(text), 500))}
}

// detached says, when it was the user who stopped waiting, that the task goes on: what was asked for was done.
func (c *cli) detached(ctx context.Context, id string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	id = shellQuoted(id)
	fmt.Fprintf(c.stderr, "Detached; the task goes on. Watch it: belay watch %s – cancel it: belay cancel %s\n", id, id)
	return nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"belay/agent"
	"belay/workflows"
)

func (c *cli) startVerb() *cobra.Command {
	var t taskFlags
	cmd := &cobra.Command{
		Use:   "start [goal]",
		Short: "Start a task and leave it running",
		Long: "start starts a task and leaves it running. A task that is refused at once, because of its agent, its workspace or its checks,\n" +
			"is reported; start waits for that until the task gets going, for 2 seconds at the most.",
		Example: "  belay start \"make the failing test pass\" --workspace examples/calc --check 'go test ./...'\n  belay start --file task.json --id fix-calc",
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
			if err := s.refusal(cmd.Context(), started); err != nil {
				return err
			}
			if c.asJSON {
				return c.object(started)
			}
			c.say("Started %s\n\n%s\n\nThe same by hand:\n%s", started.WorkflowID, pairs{
				{"watch it", "belay watch " + shellQuoted(started.WorkflowID)},
				{"Web UI", started.UI},
			}, started.Command)
			return nil
		},
	}
	t.register(cmd)
	return cmd
}

// startedTask says what was started, and how.
type startedTask struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Command    string `json:"command"` // of the temporal CLI, which does the same
	UI         string `json:"ui"`
}

// start starts a task, as long as none of that id runs.
func (c *cli) start(ctx context.Context, s *session, id string, raw []byte, task agent.Task) (startedTask, error) {
	run, err := s.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       id,
		TaskQueue:                                c.set.TaskQueue,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            line(task.Goal, 60),
		Priority:                                 temporal.Priority{PriorityKey: task.Priority},
	}, workflows.TypeAgentTask, json.RawMessage(raw))
	if _, running := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); running {
		return startedTask{}, usagef("--id: a workflow %q is running already", id)
	}
	if err != nil {
		return startedTask{}, fmt.Errorf("start %s: %w", id, err)
	}
	var input bytes.Buffer
	if err := json.Compact(&input, raw); err != nil {
		return startedTask{}, fmt.Errorf("input of %s: %w", id, err)
	}
	command := fmt.Sprintf("temporal workflow start --type %s --task-queue %s --workflow-id %s --input %s",
		workflows.TypeAgentTask, shellQuoted(c.set.TaskQueue), shellQuoted(id), shellQuoted(input.String()))
	return startedTask{WorkflowID: id, RunID: run.GetRunID(), Command: command, UI: c.link(id)}, nil
}

// refusalTime is how long a task that was started is watched for its refusal.
const refusalTime = 2 * time.Second

// refusal waits until a task gets going, and says why it ended if it ended before. A task that takes its time, or can't be
// read, was started all the same.
func (s *session) refusal(ctx context.Context, started startedTask) error {
	ctx, cancel := context.WithTimeout(ctx, refusalTime)
	defer cancel()
	found, err := s.tasks.Find(ctx, started.WorkflowID, started.RunID)
	if err != nil {
		return nil
	}
	for e, err := range s.tasks.Follow(ctx, found) {
		switch {
		case err != nil, e.Type == agent.EventCheckpointCreated, e.Type == agent.EventModelInvoked:
			return nil
		case ends(e):
			return outcome(e)
		}
	}
	return nil
}

// link is where the Web UI shows a workflow.
func (c *cli) link(id string) string {
	namespace := c.namespace
	if namespace == "" {
		namespace = c.getenv("TEMPORAL_NAMESPACE")
	}
	if namespace == "" {
		namespace = client.DefaultNamespace
	}
	return fmt.Sprintf("%s/namespaces/%s/workflows/%s", strings.TrimRight(c.set.UI, "/"), url.PathEscape(namespace), url.PathEscape(id))
}

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"belay/workflows"
)

// watchEvery is how often watch looks.
const watchEvery = time.Second

func (c *cli) watchVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "watch <id>",
		Short: "Watch a task live: its step, what runs, what is spent, and what waits for whom",
		Long: "watch shows a task live until it ends: its step, what runs now, what is spent against the limits, and what waits for whom.\n" +
			"On a terminal it draws in place, and q leaves; elsewhere it prints a line for every change.",
		Example:           "  belay watch fix-calc",
		Args:              takes("<id>"),
		ValidArgsFunction: c.completeTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			if _, err := s.tasks.Find(cmd.Context(), args[0], ""); err != nil {
				return err
			}
			first, err := s.look(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if first.open() {
				if err := c.watch(cmd.Context(), s, first); err != nil {
					return stopped(cmd.Context(), err)
				}
			}
			return c.watched(cmd.Context(), s, args[0])
		},
	}
}

// watch shows an open task until it ends, or until the user leaves.
func (c *cli) watch(ctx context.Context, s *session, first view) error {
	if !c.asJSON && drawable(c.stdout) && terminal(c.stdin) {
		return draw(ctx, s, first, c.stdin, c.stdout)
	}
	last := ""
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for v := first; ; {
		if now := v.brief(); now != last {
			last = now
			if err := c.change(v); err != nil {
				return err
			}
		}
		if !v.open() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		next, err := s.look(ctx, first.Status.WorkflowID)
		if err != nil {
			return err
		}
		v = next.after(v)
	}
}

func (c *cli) change(v view) error {
	if c.asJSON {
		return c.object(v)
	}
	c.say("%s  %s", v.At.Local().Format(time.TimeOnly), v.brief())
	return nil
}

// watched shows how the task ended, if it has.
func (c *cli) watched(ctx context.Context, s *session, id string) error {
	found, err := s.tasks.Find(ctx, id, "")
	if err != nil || found.Open || ctx.Err() != nil {
		return stopped(ctx, err)
	}
	l, err := s.ledger(ctx, found)
	if err != nil {
		return err
	}
	return c.showLedger(l)
}

// view is a task at one moment.
type view struct {
	At      time.Time           `json:"at"`
	Status  workflows.Status    `json:"status"`
	Pending []workflows.Pending `json:"pending,omitempty"`
	Running []running           `json:"running,omitempty"`
	// Silent says why the task itself did not answer.
	Silent string `json:"silent,omitempty"`

	closed bool
}

// running is one activity that has not ended.
type running struct {
	What    string    `json:"what"`
	Since   time.Time `json:"since"`
	Attempt int32     `json:"attempt"`
	Waiting bool      `json:"waiting,omitempty"` // for a worker, or for its next attempt
	Error   string    `json:"error,omitempty"`   // of the attempt before
}

func (v view) open() bool { return !v.closed }

// after is v with what a task said before, while it says nothing.
func (v view) after(before view) view {
	if v.Silent != "" && v.Status.State == "" {
		v.Status = before.Status
	}
	return v
}

// look asks the server what runs, and the task how it stands. A task whose worker is gone shows what the server knows.
func (s *session) look(ctx context.Context, id string) (view, error) {
	d, err := s.DescribeWorkflow(ctx, id, "")
	if err != nil {
		found, err := s.tasks.Find(ctx, id, "") // the server may have forgotten it
		return view{Status: workflows.Status{WorkflowID: id}, closed: !found.Open}, err
	}
	info := d.RawResponse.GetWorkflowExecutionInfo()
	v := view{At: time.Now(), Status: workflows.Status{WorkflowID: id}, closed: info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING}
	if v.closed {
		return v, nil
	}
	runID := info.GetExecution().GetRunId()
	summaries := map[string]string{}
	if len(d.RawResponse.GetPendingActivities()) > 0 {
		summaries = s.summaries(ctx, id, runID)
	}
	for _, a := range d.RawResponse.GetPendingActivities() {
		v.Running = append(v.Running, runningOf(a, summaries[a.GetActivityId()]))
	}
	if err := ask(ctx, s, id, runID, workflows.QueryState, &v.Status); err != nil {
		v.Silent = err.Error()
		return v, ctx.Err()
	}
	if v.Status.Pending > 0 {
		if err := ask(ctx, s, id, runID, workflows.QueryPending, &v.Pending); err != nil {
			v.Silent = err.Error()
		}
	}
	return v, ctx.Err()
}

// summaries are the words for the activities that were scheduled last, by their ids: a description does not hold them.
func (s *session) summaries(ctx context.Context, id, runID string) map[string]string {
	words := map[string]string{}
	got, err := s.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: s.namespace, Execution: &common.WorkflowExecution{WorkflowId: id, RunId: runID}, MaximumPageSize: 50,
	})
	if err != nil {
		return words // their types will do
	}
	for _, e := range got.GetHistory().GetEvents() {
		a := e.GetActivityTaskScheduledEventAttributes()
		var word string
		if a != nil && converter.GetDefaultDataConverter().FromPayload(e.GetUserMetadata().GetSummary(), &word) == nil {
			words[a.GetActivityId()] = word
		}
	}
	return words
}

func runningOf(a *workflow.PendingActivityInfo, summary string) running {
	r := running{What: summary, Attempt: a.GetAttempt(), Since: a.GetScheduledTime().AsTime(), Error: a.GetLastFailure().GetMessage()}
	if r.What == "" {
		r.What = a.GetActivityType().GetName()
	}
	if a.GetLastStartedTime() != nil {
		r.Since = a.GetLastStartedTime().AsTime()
	}
	r.Waiting = a.GetState() == enums.PENDING_ACTIVITY_STATE_SCHEDULED
	return r
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"belay/agent"
	"belay/workflows"
)

// listFlags choose tasks by their search attributes.
type listFlags struct {
	state, tenant, user, agent, waitingFor, query string
	open                                          bool
	limit                                         int
}

func (c *cli) listVerb() *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tasks, the newest first",
		Long: "list lists tasks, the newest first. What a task has used is in the list when it has ended (- before): \"belay show\" asks an\n" +
			"open task itself. --state and --waiting-for look for what is so now: who waits or runs is open.",
		Example: "  belay list --open\n  belay list --waiting-for ana\n  belay list --state stuck --tenant acme --json",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := l.visibility()
			if err != nil {
				return err
			}
			s, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			rows, err := s.list(cmd.Context(), query, l.limit)
			if err != nil {
				return err
			}
			return c.rows(rows)
		},
	}
	f := cmd.Flags()
	f.StringVar(&l.state, "state", "", "execution state: "+strings.Join(stateNames(), " "))
	f.StringVar(&l.tenant, "tenant", "", "who pays")
	f.StringVar(&l.user, "user", "", "who asked")
	f.StringVar(&l.agent, "agent", "", "agent definition")
	f.StringVar(&l.waitingFor, "waiting-for", "", "reviewer")
	f.StringVar(&l.query, "query", "", "condition in Temporal's list filter language")
	f.BoolVar(&l.open, "open", false, "only tasks that have not ended")
	f.IntVar(&l.limit, "limit", 50, "how many at the most")
	return cmd
}

// stateFilter finds the tasks that stateOf gives one state. A task that was terminated could not say that it does not wait any
// more, so what a task said last counts only while it is open.
type stateFilter struct {
	state agent.ExecutionState
	query string
}

func stateFilters() (all []stateFilter) {
	for _, open := range []agent.ExecutionState{agent.StateQueued, agent.StateRunning, agent.StatePaused, agent.StateWaiting} {
		all = append(all, stateFilter{open, fmt.Sprintf(`ExecutionStatus="Running" AND BelayState=%q`, open)})
	}
	const failed = `ExecutionStatus IN ("Failed", "Terminated", "TimedOut")`
	return append(all,
		stateFilter{agent.StateFinished, `ExecutionStatus="Completed"`},
		stateFilter{agent.StateErrored, failed + ` AND (BelayState IS NULL OR BelayState!="stuck")`},
		stateFilter{agent.StateStuck, failed + ` AND BelayState="stuck"`},
		stateFilter{agent.StateCancelled, `ExecutionStatus="Canceled"`},
	)
}

func stateNames() (names []string) {
	for _, f := range stateFilters() {
		names = append(names, string(f.state))
	}
	return names
}

// filter is the part of a query that asks for a state.
func (l listFlags) filter() (string, error) {
	for _, f := range stateFilters() {
		if string(f.state) == l.state {
			return " AND " + f.query, nil
		}
	}
	switch near := agent.Nearest(l.state, stateNames()); {
	case l.state == "":
		return "", nil
	case near != "":
		return "", usagef("--state: %q; did you mean %q?", l.state, near)
	}
	return "", usagef("--state: %q; expected one of %s", l.state, strings.Join(stateNames(), ", "))
}

// visibility is the query for Temporal's visibility store.
func (l listFlags) visibility() (string, error) {
	if l.limit < 1 {
		return "", usagef("--limit: %d; expected at least 1", l.limit)
	}
	state, err := l.filter()
	if err != nil {
		return "", err
	}
	query := fmt.Sprintf("WorkflowType=%q", workflows.TypeAgentTask) + state
	if l.open || l.waitingFor != "" {
		query += ` AND ExecutionStatus="Running"`
	}
	for _, f := range []struct{ flag, attribute, value string }{
		{"tenant", "BelayTenant", l.tenant}, {"user", "BelayUser", l.user},
		{"agent", "BelayAgent", l.agent}, {"waiting-for", "BelayWaitingFor", l.waitingFor},
	} {
		if f.value == "" {
			continue
		}
		if !agent.ValidName(f.value) {
			return "", usagef("--%s: %q; expected %s", f.flag, f.value, agent.NameForm)
		}
		query += fmt.Sprintf(" AND %s=%q", f.attribute, f.value)
	}
	if l.query != "" {
		query += " AND (" + l.query + ")"
	}
	return query, nil
}

// row is one task in a list. What the namespace has no search attributes for is missing, and so is what an open task has used:
// its attributes are as old as its state.
type row struct {
	WorkflowID string               `json:"workflow_id"`
	RunID      string               `json:"run_id"`
	State      agent.ExecutionState `json:"state"`
	Open       bool                 `json:"open"`
	Tenant     string               `json:"tenant,omitempty"`
	Agent      string               `json:"agent,omitempty"`
	User       string               `json:"user,omitempty"`
	WaitingFor []string             `json:"waiting_for,omitempty"`
	Risk       string               `json:"risk,omitempty"`
	Steps      int64                `json:"steps,omitempty"`
	CostUSD    float64              `json:"cost_usd,omitempty"`
	StartedAt  time.Time            `json:"started_at"`
	ClosedAt   *time.Time           `json:"closed_at,omitempty"`
}

// list reads up to limit tasks from the visibility store.
func (s *session) list(ctx context.Context, query string, limit int) ([]row, error) {
	rows := []row{}
	var page []byte
	for {
		got, err := s.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: query, PageSize: int32(min(limit-len(rows), 1000)), NextPageToken: page,
		})
		if _, bad := errors.AsType[*serviceerror.InvalidArgument](err); bad {
			return nil, usagef("the namespace can't answer the query: %w (are the Belay search attributes registered?)", err)
		}
		if err != nil {
			return nil, fmt.Errorf("list tasks: %w", err)
		}
		for _, e := range got.GetExecutions() {
			rows = append(rows, rowOf(e))
		}
		if page = got.GetNextPageToken(); len(page) == 0 || len(rows) >= limit {
			return rows[:min(limit, len(rows))], nil
		}
	}
}

func rowOf(e *workflow.WorkflowExecutionInfo) row {
	r := row{
		WorkflowID: e.GetExecution().GetWorkflowId(), RunID: e.GetExecution().GetRunId(), StartedAt: e.GetStartTime().AsTime(),
		Open: e.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}
	if e.GetCloseTime() != nil {
		t := e.GetCloseTime().AsTime()
		r.ClosedAt = &t
	}
	for name, to := range map[string]any{
		workflows.AttrState.GetName(): &r.State, workflows.AttrTenant.GetName(): &r.Tenant, workflows.AttrAgent.GetName(): &r.Agent,
		workflows.AttrUser.GetName(): &r.User, workflows.AttrWaiting.GetName(): &r.WaitingFor, workflows.AttrRisk.GetName(): &r.Risk,
		workflows.AttrSteps.GetName(): &r.Steps, workflows.AttrCost.GetName(): &r.CostUSD,
	} {
		if p, ok := e.GetSearchAttributes().GetIndexedFields()[name]; ok {
			_ = converter.GetDefaultDataConverter().FromPayload(p, to) // an attribute of another type stays empty
		}
	}
	r.State = stateOf(e.GetStatus(), r.State)
	if r.Open {
		r.Steps, r.CostUSD = 0, 0
	} else {
		r.WaitingFor = nil
	}
	return r
}

// stateOf is the state of a task by what its search attribute says last, and by how the server says that it ended: a task
// that was terminated could not say anything.
func stateOf(status enums.WorkflowExecutionStatus, said agent.ExecutionState) agent.ExecutionState {
	switch status {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		if said == "" {
			return agent.StateRunning
		}
		return said
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return agent.StateFinished
	case enums.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return agent.StateCancelled
	}
	if said == agent.StateStuck {
		return said
	}
	return agent.StateErrored
}

func (c *cli) rows(rows []row) error {
	var b strings.Builder
	b.WriteString("TASK\tSTATE\tSTEPS\tCOST\tUSER\tWAITS FOR\tSTARTED\n")
	for _, r := range rows {
		if c.asJSON {
			if err := c.object(r); err != nil {
				return err
			}
			continue
		}
		steps, cost := "-", "-"
		if !r.Open {
			steps, cost = fmt.Sprint(r.Steps), fmt.Sprintf("$%.4f", r.CostUSD)
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", clean(r.WorkflowID), r.State, steps, cost, r.User, names(r.WaitingFor),
			r.StartedAt.Local().Format(time.DateTime))
	}
	if !c.asJSON {
		fmt.Fprint(c.stdout, aligned(b.String()))
	}
	return nil
}

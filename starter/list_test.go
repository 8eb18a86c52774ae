package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"belay/agent"
)

func TestStateOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status enums.WorkflowExecutionStatus
		said   agent.ExecutionState
		want   agent.ExecutionState
	}{
		{enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "", agent.StateRunning},
		{enums.WORKFLOW_EXECUTION_STATUS_RUNNING, agent.StatePaused, agent.StatePaused},
		{enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, "", agent.StateFinished},
		{enums.WORKFLOW_EXECUTION_STATUS_CANCELED, agent.StateRunning, agent.StateCancelled},
		{enums.WORKFLOW_EXECUTION_STATUS_FAILED, agent.StateStuck, agent.StateStuck},
		{enums.WORKFLOW_EXECUTION_STATUS_FAILED, "", agent.StateErrored},
		{enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, agent.StateRunning, agent.StateErrored},
	} {
		if got := stateOf(tt.status, tt.said); got != tt.want {
			t.Errorf("%s, said %q: %q, want %q", tt.status, tt.said, got, tt.want)
		}
	}
}

// A task that was terminated still has the attributes of a waiting one; whoever looks for waiting ones does not mean it.
func TestVisibility(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flags listFlags
		want  string
	}{
		{listFlags{}, ``},
		{listFlags{open: true}, ` AND ExecutionStatus="Running"`},
		{listFlags{state: "waiting"}, ` AND ExecutionStatus="Running" AND BelayState="waiting"`},
		{listFlags{waitingFor: "ana"}, ` AND ExecutionStatus="Running" AND BelayWaitingFor="ana"`},
		{listFlags{state: "finished"}, ` AND ExecutionStatus="Completed"`},
		{listFlags{state: "error"}, ` AND ExecutionStatus IN ("Failed", "Terminated", "TimedOut") AND (BelayState IS NULL OR BelayState!="stuck")`},
		{listFlags{state: "stuck", tenant: "acme", query: "BelaySteps > 3 OR BelaySteps = 0"},
			` AND ExecutionStatus IN ("Failed", "Terminated", "TimedOut") AND BelayState="stuck" AND BelayTenant="acme" AND (BelaySteps > 3 OR BelaySteps = 0)`},
	} {
		tt.flags.limit = 5
		got, err := tt.flags.visibility()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(`WorkflowType="AgentTask"`+tt.want, got); d != "" {
			t.Error(d)
		}
	}
}

// What an open task has used is not known from its attributes, and nobody is waited for by one that has ended.
func TestRows(t *testing.T) {
	t.Parallel()
	fields := map[string]*common.Payload{}
	for name, v := range map[string]any{"BelayState": "waiting", "BelaySteps": 3, "BelayCostUSD": 0.25, "BelayWaitingFor": []string{"ana"}} {
		p, err := converter.GetDefaultDataConverter().ToPayload(v)
		if err != nil {
			t.Fatal(err)
		}
		fields[name] = p
	}
	task := func(id string, s enums.WorkflowExecutionStatus) row {
		return rowOf(&workflow.WorkflowExecutionInfo{
			Execution: &common.WorkflowExecution{WorkflowId: id}, Status: s, StartTime: timestamppb.New(time.Unix(0, 0)),
			SearchAttributes: &common.SearchAttributes{IndexedFields: fields},
		})
	}
	var out strings.Builder
	c := cli{stdout: &out}
	if err := c.rows([]row{task("open", enums.WORKFLOW_EXECUTION_STATUS_RUNNING), task("killed", enums.WORKFLOW_EXECUTION_STATUS_TERMINATED)}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for l := range strings.Lines(out.String()) {
		words := strings.Fields(l)
		got = append(got, strings.Join(words[:len(words)-1], " "))
	}
	day := time.Unix(0, 0).Local().Format(time.DateOnly)
	want := []string{"TASK STATE STEPS COST USER WAITS FOR", "open waiting - - ana " + day, "killed error 3 $0.2500 " + day}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

package workflows

import (
	"errors"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
)

// ReconcileLedgers gives a ledger to every task that ended without running code: terminated, or timed out by the server.
// A schedule runs it.
func ReconcileLedgers(ctx workflow.Context) (started int, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: shortTime, RetryPolicy: outerRetries()})
	var act *activities.Activities
	var found activities.Orphans
	if err := workflow.ExecuteActivity(ctx, act.FindOrphans).Get(ctx, &found); err != nil {
		return 0, err
	}
	for _, o := range found.Orphans {
		in := LedgerInput{Ledger: o.Ledger, Run: o.Run, Close: o.Close, Sealed: o.Sealed, SearchAttributes: o.SearchAttributes}
		child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID:            agent.LedgerWorkflowID(o.Ledger.WorkflowID, o.Ledger.RunID),
			WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
			ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_ABANDON,
			TypedSearchAttributes: in.attributes(),
		})
		err := workflow.ExecuteChildWorkflow(child, TypeRunLedger, in).GetChildWorkflowExecution().Get(ctx, nil)
		if _, there := errors.AsType[*temporal.ChildWorkflowExecutionAlreadyStartedError](err); there {
			continue
		}
		if err != nil {
			return started, err
		}
		started++
	}
	return started, nil
}

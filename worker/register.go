package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/workflows"
)

// searchAttributes are the ones that workflows upsert.
var searchAttributes = map[string]enums.IndexedValueType{
	workflows.AttrState.GetName():    enums.INDEXED_VALUE_TYPE_KEYWORD,
	workflows.AttrTenant.GetName():   enums.INDEXED_VALUE_TYPE_KEYWORD,
	workflows.AttrAgent.GetName():    enums.INDEXED_VALUE_TYPE_KEYWORD,
	workflows.AttrUser.GetName():     enums.INDEXED_VALUE_TYPE_KEYWORD,
	workflows.AttrWaiting.GetName():  enums.INDEXED_VALUE_TYPE_KEYWORD_LIST,
	workflows.AttrRisk.GetName():     enums.INDEXED_VALUE_TYPE_KEYWORD,
	workflows.AttrDecision.GetName(): enums.INDEXED_VALUE_TYPE_KEYWORD,
	workflows.AttrSteps.GetName():    enums.INDEXED_VALUE_TYPE_INT,
	workflows.AttrCost.GetName():     enums.INDEXED_VALUE_TYPE_DOUBLE,
}

// ensureSearchAttributes registers what the namespace lacks. Where the worker may not, tasks go on without.
func ensureSearchAttributes(ctx context.Context, c client.Client, namespace string, log *slog.Logger) bool {
	have, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		log.Warn("search attributes can't be read; tasks run without them", "error", err)
		return false
	}
	missing := map[string]enums.IndexedValueType{}
	for name, kind := range searchAttributes {
		got, there := have.GetCustomAttributes()[name]
		if there && got != kind {
			log.Warn("search attribute has another type; tasks run without them", "name", name, "type", got, "expected", kind)
			return false
		}
		if !there {
			missing[name] = kind
		}
	}
	if len(missing) == 0 {
		return true
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: missing})
	if err != nil && !strings.Contains(err.Error(), "already exist") {
		log.Warn("search attributes can't be registered; tasks run without them", "missing", names(missing), "error", err)
		return false
	}
	log.Info("search attributes registered", "names", names(missing))
	return true
}

func names(m map[string]enums.IndexedValueType) []string {
	var list []string
	for n := range m {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// ensureSchedule makes the schedule that gives ledgers to tasks that were terminated.
func ensureSchedule(ctx context.Context, c client.Client, queue string) error {
	_, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID:      workflows.ReconcileSchedule,
		Spec:    client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: workflows.ReconcileEvery}}},
		Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP,
		Action: &client.ScheduleWorkflowAction{
			ID:                       workflows.ReconcileSchedule,
			Workflow:                 workflows.TypeReconcile,
			TaskQueue:                queue,
			WorkflowExecutionTimeout: time.Hour,
		},
	})
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("schedule %s: %w", workflows.ReconcileSchedule, err)
	}
	return nil
}

// newWorkers makes the two workers of this process: one for the tasks, and one for what only this host can do.
func newWorkers(c client.Client, s settings, host string, act *activities.Activities) (tasks, hostOnly worker.Worker) {
	// A task that waits for people costs memory only while it is among the last used: without its place here it is made
	// from its history again when somebody answers. Tasks at work need a place, and those on this host have a sandbox here.
	worker.SetStickyWorkflowCacheSize(2*s.MaxSandboxes + 2)
	worker.SetBinaryChecksum(version) // histories name it six times a step; the SDK's own is the digest of the program's file
	tasks = worker.New(c, s.TaskQueue, worker.Options{
		Identity:                         identity(host),
		WorkerStopTimeout:                s.StopTimeout,
		MaxHeartbeatThrottleInterval:     activities.Heartbeat,
		DefaultHeartbeatThrottleInterval: activities.Heartbeat,
		StickyScheduleToStartTimeout:     s.StickyTimeout,
		MaxConcurrentWorkflowTaskPollers: 4,
		MaxConcurrentActivityTaskPollers: 4,
	})
	tasks.RegisterWorkflowWithOptions(workflows.AgentTask, workflow.RegisterOptions{Name: workflows.TypeAgentTask})
	tasks.RegisterWorkflowWithOptions(workflows.RunLedger, workflow.RegisterOptions{Name: workflows.TypeRunLedger})
	tasks.RegisterWorkflowWithOptions(workflows.ReconcileLedgers, workflow.RegisterOptions{Name: workflows.TypeReconcile})
	tasks.RegisterActivity(act)
	hostOnly = worker.New(c, host, worker.Options{
		Identity:                         identity(host),
		WorkerStopTimeout:                s.StopTimeout,
		MaxHeartbeatThrottleInterval:     activities.Heartbeat,
		DefaultHeartbeatThrottleInterval: activities.Heartbeat,
		MaxConcurrentActivityTaskPollers: 4,
		DisableWorkflowWorker:            true,
	})
	hostOnly.RegisterActivity(act)
	return tasks, hostOnly
}

// identity is the host's id. Histories name it eight times a step, so it is shorter than the SDK's own, which holds the
// name of the machine.
func identity(host string) string { return strings.TrimPrefix(host, hostQueuePrefix) }

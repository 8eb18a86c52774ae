package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"belay/agent"
	"belay/workflows"
)

// workload is what is measured, or its control.
type workload struct {
	name string
	// start starts one task of so many steps.
	start func(ctx context.Context, r *rig, id string, steps int) (client.WorkflowRun, error)
	// ledger names the workflow that a task leaves behind.
	ledger func(client.WorkflowRun) string
}

var (
	belay = workload{
		name: "Belay",
		start: func(ctx context.Context, r *rig, id string, steps int) (client.WorkflowRun, error) {
			return r.startTask(ctx, id, fmt.Sprintf(goalSteps, steps, 0))
		},
		ledger: func(run client.WorkflowRun) string {
			return agent.LedgerWorkflowID(run.GetID(), agent.RunID(run.GetRunID()))
		},
	}
	bare = workload{
		name: "bare",
		start: func(ctx context.Context, r *rig, id string, steps int) (client.WorkflowRun, error) {
			return r.client.ExecuteWorkflow(ctx, startOptions(id), typeBareTask, bareInput{Steps: steps, Host: hostQueue})
		},
		ledger: func(run client.WorkflowRun) string { return ledgerOf(run.GetID()) },
	}
)

func startOptions(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: queue}
}

// startTask starts an AgentTask as the Temporal CLI does.
func (r *rig) startTask(ctx context.Context, id, goal string) (client.WorkflowRun, error) {
	input, err := json.Marshal(map[string]string{"goal": goal})
	if err != nil {
		return nil, err
	}
	return r.client.ExecuteWorkflow(ctx, startOptions(id), workflows.TypeAgentTask, json.RawMessage(input))
}

// newID names the next task.
func (r *rig) newID(name string) string { return fmt.Sprintf("%s-%d", name, r.tasks.Add(1)) }

// sample is what some tasks took together.
type sample struct {
	wall  time.Duration // from the first start to the last end
	cpu   usage         // until their ledgers had ended too
	tasks int
}

// play runs tasks of a workload, so many at one time, and waits for their ledgers.
func (r *rig) play(ctx context.Context, w workload, tasks, atOnce, steps int) (sample, error) {
	before, err := r.usage()
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	runs := make([]client.WorkflowRun, tasks)
	errs := make([]error, tasks)
	free := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range tasks {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if runs[i], errs[i] = w.start(ctx, r, r.newID(w.name), steps); errs[i] == nil {
				errs[i] = runs[i].Get(ctx, nil)
			}
		})
	}
	all.Wait()
	s := sample{wall: time.Since(began), tasks: tasks}
	for i, err := range errs {
		if err == nil {
			err = r.client.GetWorkflow(ctx, w.ledger(runs[i]), "").Get(ctx, nil)
		}
		if err != nil {
			return s, fmt.Errorf("task %d of %s: %w", i, w.name, err)
		}
	}
	after, err := r.usage()
	s.cpu = after.since(before)
	return s, err
}

// dispatches counts how the activities of one task and its ledger were dispatched, by queue; local ones under their own
// name. The control must be dispatched in the same ways.
func (r *rig) dispatches(ctx context.Context, w workload, steps int) (map[string]int, error) {
	run, err := w.start(ctx, r, r.newID(w.name), steps)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, id := range []string{run.GetID(), w.ledger(run)} {
		if err := r.client.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			return nil, err
		}
		iter := r.client.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for iter.HasNext() {
			e, err := iter.Next()
			if err != nil {
				return nil, err
			}
			if s := e.GetActivityTaskScheduledEventAttributes(); s != nil {
				counts[s.GetTaskQueue().GetName()]++
			}
			if e.GetMarkerRecordedEventAttributes().GetMarkerName() == "LocalActivity" {
				counts["local"]++
			}
		}
	}
	return counts, nil
}

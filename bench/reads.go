package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"go.temporal.io/sdk/testsuite"

	"belay/activities"
	"belay/agent"
	"belay/store"
)

const (
	figWarm = "store reads for the context, worker that has the task"
	figCold = "store reads for the context, worker that never met it"
)

// contextReads counts what a model call at turn 400 reads from the store, beside one at turn 20. It needs no server: the
// activity is called as a worker calls it.
func contextReads(ctx context.Context, _ *rig, o options, rep *report) error {
	dir, err := os.MkdirTemp("", "belay-bench-reads-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	early, err := readsAt(ctx, dir, o.steps)
	if err != nil {
		return err
	}
	late, err := readsAt(ctx, dir, o.long)
	if err != nil {
		return err
	}
	at := func(r reads, n int64) string { return fmt.Sprintf("%d at turn %d", n, r.turn) }
	rep.add(
		row{figWarm, at(late, late.warm), at(early, early.warm), float64(late.warm) / float64(early.warm), goal{atMost: 1}},
		row{figCold, at(late, late.cold), at(early, early.cold), float64(late.cold) / float64(early.cold), goal{}},
	)
	return nil
}

// reads is what one model call read from the store.
type reads struct {
	turn       int
	warm, cold int64
}

// readsAt makes a conversation of so many turns and asks the model once more, on the worker that made it and on another.
func readsAt(ctx context.Context, dir string, turn int) (reads, error) {
	r := reads{turn: turn}
	warm, err := newReader(ctx, dir)
	if err != nil {
		return r, err
	}
	defer warm.store.Close() //nolint:errcheck // a folder
	in, err := warm.converse(ctx, turn)
	if err != nil {
		return r, err
	}
	if r.warm, err = warm.call(in); err != nil {
		return r, err
	}
	cold, err := newReader(ctx, dir)
	if err != nil {
		return r, err
	}
	defer cold.store.Close() //nolint:errcheck // a folder
	in.Step++                // the reply of the step before is kept
	r.cold, err = cold.call(in)
	return r, err
}

// reader is a worker's activities without a worker.
type reader struct {
	store *store.Store
	act   *activities.Activities
	env   *testsuite.TestActivityEnvironment
}

func newReader(ctx context.Context, dir string) (*reader, error) {
	r := &rig{}
	var err error
	if r.bundle, err = benchConfig(); err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	act, err := r.activities(s, dir)
	if err != nil {
		return nil, err
	}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(act)
	return &reader{store: s, act: act, env: env}, nil
}

// converse prepares a run whose conversation has so many turns, and gives the input of its next model call.
func (r *reader) converse(ctx context.Context, turns int) (activities.ModelInput, error) {
	ref := agent.RunRef{Tenant: "default", Run: agent.RunID(fmt.Sprintf("turns-%d", turns))}
	in := activities.ModelInput{Run: ref, Step: turns, MaxOutput: 1024}
	task := agent.Task{Goal: fmt.Sprintf(goalSteps, turns+2, observed), Agent: "default", Tenant: "default", User: "bench"}
	prepared, err := r.env.ExecuteActivity(r.act.Prepare, activities.PrepareInput{Run: ref, Task: task})
	if err != nil {
		return in, err
	}
	var out activities.Prepared
	if err := prepared.Get(&out); err != nil {
		return in, err
	}
	in.Head = out.Head
	tenant := r.store.Tenant(ref.Tenant)
	text, err := sourceText()
	if err != nil {
		return in, err
	}
	for n := 1; n < turns; n++ {
		messages := []agent.Message{{Role: agent.RoleAssistant, Calls: []agent.ToolCall{{ID: agent.NewCallID(n), Tool: "shell", Arguments: "{}"}}}}
		if n > 1 {
			result := agent.Message{Role: agent.RoleTool, Call: agent.NewCallID(n - 1), Text: fmt.Sprint(n) + text[:observed]}
			messages = append([]agent.Message{result}, messages...)
		}
		if in.Head, err = tenant.Append(ctx, in.Head, agent.Turn{Messages: messages}); err != nil {
			return in, err
		}
	}
	call := agent.NewCallID(turns - 1)
	observation, err := json.Marshal(agent.Observation{Call: call, Status: agent.CallOK, Text: text[:observed]})
	if err != nil {
		return in, err
	}
	result := activities.Result{Call: call}
	if result.Observation, err = tenant.Put(ctx, observation); err != nil {
		return in, err
	}
	in.Results = []activities.Result{result}
	return in, nil
}

// call makes one model call and counts what it reads.
func (r *reader) call(in activities.ModelInput) (int64, error) {
	before := r.store.Stats()
	if _, err := r.env.ExecuteActivity(r.act.CallModel, in); err != nil {
		return 0, err
	}
	return r.store.Stats().Reads - before.Reads, nil
}

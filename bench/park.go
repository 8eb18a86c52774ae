package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"belay/workflows"
)

// parkable starts one task that comes to wait for a person, and says when it does.
type parkable struct {
	name  string
	start func(ctx context.Context, r *rig, id string) (client.WorkflowRun, error)
	waits func(ctx context.Context, r *rig, id string) (bool, error)
}

var (
	parkedTask = parkable{
		name: "parked",
		start: func(ctx context.Context, r *rig, id string) (client.WorkflowRun, error) {
			return r.startTask(ctx, id, goalPark)
		},
		waits: func(ctx context.Context, r *rig, id string) (bool, error) {
			var p []workflows.Pending
			err := r.query(ctx, id, workflows.QueryPending, &p)
			return len(p) > 0, err
		},
	}
	parkedBare = parkable{
		name: "bare-parked",
		start: func(ctx context.Context, r *rig, id string) (client.WorkflowRun, error) {
			return r.client.ExecuteWorkflow(ctx, startOptions(id), typeBareParked, bareInput{Host: hostQueue})
		},
		waits: func(ctx context.Context, r *rig, id string) (bool, error) {
			var parked bool
			err := r.query(ctx, id, queryParked, &parked)
			return parked, err
		},
	}
)

func (r *rig) query(ctx context.Context, id, name string, into any) error {
	v, err := r.client.QueryWorkflow(ctx, id, "", name)
	if err != nil {
		return err
	}
	return v.Get(into)
}

// memory is what this process holds after everything that it can let go of is gone.
type memory struct{ live, resident int64 } // live: objects and stacks

func memoryNow() (m memory, err error) {
	for range 3 { // finalizers and pools let go in steps
		runtime.GC()
	}
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	m.live = int64(s.HeapAlloc + s.StackInuse)
	m.resident, err = residentBytes()
	return m, err
}

// holding parks n tasks and gives the memory that each takes, in bytes. It leaves the workers with an empty cache.
func (r *rig) holding(ctx context.Context, p parkable, n int) (memory, error) {
	before, err := memoryNow()
	if err != nil {
		return memory{}, err
	}
	runs := make([]client.WorkflowRun, n)
	errs := make([]error, n)
	free := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i := range n {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			runs[i], errs[i] = r.park(ctx, p)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return memory{}, err
	}
	after, err := memoryNow()
	if err != nil {
		return memory{}, err
	}
	for _, run := range runs {
		if err := r.client.TerminateWorkflow(ctx, run.GetID(), "", "measured"); err != nil {
			return memory{}, err
		}
	}
	r.stopWorkers()
	worker.PurgeStickyWorkflowCache()
	each := memory{live: (after.live - before.live) / int64(n), resident: (after.resident - before.resident) / int64(n)}
	return each, r.startWorkers()
}

// park starts one task and waits until it waits.
func (r *rig) park(ctx context.Context, p parkable) (client.WorkflowRun, error) {
	run, err := p.start(ctx, r, r.newID(p.name))
	if err != nil {
		return nil, err
	}
	for {
		waits, err := p.waits(ctx, r, run.GetID())
		if waits {
			return run, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("task %s does not come to wait: %w", run.GetID(), errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

const figParked = "worker memory per parked task"

// park measures what a task costs a worker while it waits for a person.
func park(ctx context.Context, r *rig, o options, rep *report) error {
	for _, p := range []parkable{parkedTask, parkedBare} { // what the first ones make for all
		if _, err := r.holding(ctx, p, 16); err != nil {
			return err
		}
	}
	var ours, theirs, ratios, residents, resident []float64
	for i := range o.pairs {
		a, err := r.holding(ctx, parkedTask, o.parked)
		if err != nil {
			return err
		}
		b, err := r.holding(ctx, parkedBare, o.parked)
		if err != nil {
			return err
		}
		rep.say("pair %d: %s a task beside %s; resident %s beside %s", i+1, readable(a.live), readable(b.live), readable(a.resident), readable(b.resident))
		ours, theirs = append(ours, float64(a.live)), append(theirs, float64(b.live))
		ratios = append(ratios, float64(a.live)/float64(b.live))
		residents, resident = append(residents, float64(a.resident)), append(resident, float64(b.resident))
	}
	rep.add(row{
		what:    figParked,
		belay:   readable(int64(median(ours))),
		control: fmt.Sprintf("%s (ratios %s)", readable(int64(median(theirs))), spread(ratios)),
		value:   median(ratios),
		goal:    goal{atMost: 1.5},
	})
	rep.note("%d tasks a sample were parked. By resident memory, which moves with the collector, a parked task takes %s beside %s.", o.parked,
		readable(int64(median(residents))), readable(int64(median(resident))))
	return nil
}

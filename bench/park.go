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

	"belay/workflows"
)

// parkable starts one task that comes to wait for a person, and says when it does.
type parkable struct {
	name  string
	start func(ctx context.Context, r *rig, id string) (client.WorkflowRun, error)
	waits func(ctx context.Context, r *rig, id string) (bool, error)
	// cache is how many workflows its worker keeps in memory.
	cache int
}

// A task of Belay parks on a worker that is set up as belay-worker is: it keeps the tasks last used in memory and makes
// the others from their histories again when somebody answers. The control parks on a worker of the SDK's as it comes.
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
		cache: belayCache,
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
		cache: sdkCache,
	}
)

func (r *rig) query(ctx context.Context, id, name string, into any) error {
	v, err := r.client.QueryWorkflow(ctx, id, "", name)
	if err != nil {
		return err
	}
	return v.Get(into)
}

// memoryNow is what this process holds, in objects and stacks, after everything that it can let go of is gone.
func memoryNow() int64 {
	runtime.GC()
	runtime.GC() // pools let go at the second time
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc + s.StackInuse)
}

// settled waits until evicted workflows have ended, each of which was some goroutines.
func settled(ctx context.Context) error {
	for before := -1; ; {
		now := runtime.NumGoroutine()
		if now == before {
			return nil
		}
		before = now
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// holding parks n tasks and gives the bytes by which each made its worker grow.
func (r *rig) holding(ctx context.Context, p parkable, cache, n int) (float64, error) {
	if err := r.restartWorkers(cache); err != nil {
		return 0, err
	}
	if err := settled(ctx); err != nil {
		return 0, err
	}
	before := memoryNow()
	runs, err := r.parkMany(ctx, p, n)
	if err != nil {
		return 0, err
	}
	if err := settled(ctx); err != nil {
		return 0, err
	}
	each := float64(memoryNow()-before) / float64(n)
	for _, run := range runs {
		if err := r.client.TerminateWorkflow(ctx, run.GetID(), "", "measured"); err != nil {
			return 0, err
		}
	}
	return each, nil
}

func (r *rig) parkMany(ctx context.Context, p parkable, n int) ([]client.WorkflowRun, error) {
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
	return runs, errors.Join(errs...)
}

// park starts one task and waits until it waits.
func (r *rig) park(ctx context.Context, p parkable) (client.WorkflowRun, error) {
	run, err := p.start(ctx, r, r.newID(p.name))
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		waits := false
		if !first {
			waits, err = p.waits(ctx, r, run.GetID())
		}
		if waits {
			return run, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("task %s does not come to wait: %w", run.GetID(), errors.Join(ctx.Err(), err))
		case <-time.After(300 * time.Millisecond): // a query costs more than an activity
		}
	}
}

const figParked = "worker memory per parked task"

// park measures what a task costs a worker while it waits for a person.
func park(ctx context.Context, r *rig, o options, rep *report) error {
	var ours, theirs, ratios []float64
	for i := range o.pairs {
		a, err := r.holding(ctx, parkedTask, parkedTask.cache, o.parked)
		if err != nil {
			return err
		}
		b, err := r.holding(ctx, parkedBare, parkedBare.cache, o.parked)
		if err != nil {
			return err
		}
		rep.say("pair %d: %s a task beside %s", i+1, readable(int64(a)), readable(int64(b)))
		ours, theirs, ratios = append(ours, a), append(theirs, b), append(ratios, a/b)
	}
	rep.add(row{
		what:    figParked,
		belay:   readable(int64(median(ours))),
		control: fmt.Sprintf("%s (ratios %s)", readable(int64(median(theirs))), spread(ratios)),
		value:   median(ratios),
		goal:    goal{atMost: 1.5},
	})
	rep.note("%d tasks were parked in each sample. A belay-worker keeps the %d workflows last used in memory; the others are made from their histories again when somebody answers.", o.parked, belayCache)
	return r.restartWorkers(belayCache)
}

// cached shows what a parked task takes while it is in memory, which nothing is asked of.
func cached(ctx context.Context, r *rig, o options, rep *report) error {
	n := min(o.parked, belayCache)
	a, err := r.holding(ctx, parkedTask, sdkCache, n)
	if err != nil {
		return err
	}
	b, err := r.holding(ctx, parkedBare, sdkCache, n)
	if err != nil {
		return err
	}
	rep.add(row{"worker memory per parked task in its cache", readable(int64(a)), readable(int64(b)), a / b, goal{}})
	return r.restartWorkers(belayCache)
}

package main

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
)

// timer measures the activities of workers.
type timer struct {
	interceptor.WorkerInterceptorBase

	mu    sync.Mutex
	taken map[string]*took
}

// took is what the activities of one name took.
type took struct {
	n    int
	wall time.Duration
	cpu  time.Duration // of the activity's own thread
}

func (t *timer) add(name string, wall, cpu time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[name] == nil {
		t.taken[name] = &took{}
	}
	x := t.taken[name]
	x.n, x.wall, x.cpu = x.n+1, x.wall+wall, x.cpu+cpu
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (t *timer) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &timedActivity{timer: t}
	i.Next = next
	return i
}

type timedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	timer *timer
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (i *timedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, cpu := time.Now(), threadTime()
	out, err := i.Next.ExecuteActivity(ctx, in)
	i.timer.add(activity.GetInfo(ctx).ActivityType.Name, time.Since(began), threadTime()-cpu)
	return out, err
}

// phases shows where the time of a step goes, for whoever tunes it. It asks for nothing.
func phases(ctx context.Context, r *rig, o options, rep *report) error {
	t := &timer{taken: map[string]*took{}}
	if err := r.restartWorkers(belayCache, t); err != nil {
		return err
	}
	if _, err := r.play(ctx, belay, o.at, o.at, o.steps); err != nil {
		return err
	}
	if err := r.restartWorkers(belayCache); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| activity, %d tasks | a step | ms each | CPU ms each, own thread |\n|---|---|---|---|\n", o.at)
	for _, name := range slices.Sorted(maps.Keys(t.taken)) {
		x := t.taken[name]
		n := float64(x.n)
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f |\n", name, n/float64(o.at*o.steps), x.wall.Seconds()*1000/n, x.cpu.Seconds()*1000/n)
	}
	rep.note("%s", b.String())
	return nil
}

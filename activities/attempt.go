package activities

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"belay/agent"
	"belay/model"
	"belay/sandbox"
)

// Heartbeat is how often a long activity says that it lives. The workflow's heartbeat timeout is several times longer,
// and the worker's throttle must not be longer than this.
const Heartbeat = time.Second

// progress is what an activity leaves to its next attempt, in the heartbeat's details.
type progress struct {
	// Failures counts the attempts that failed, by category: the retry rule looks at its own category only, so a crash of
	// the worker uses none of them up.
	Failures map[agent.ErrorType]int `json:"failures,omitempty"`
	Total    int                     `json:"total,omitempty"` // failures of all categories, fallbacks included
	// Spent is what failed attempts have cost.
	Spent agent.Usage `json:"spent,omitzero"`
	// InFlight is what the running attempt will cost if it is never heard of again.
	InFlight agent.Usage `json:"in_flight,omitzero"`
	// Fallback counts the models of the chain that have been given up.
	Fallback int `json:"fallback,omitempty"`
}

// attempt is one try of a long activity: it beats, and sorts its failure by the retry table.
type attempt struct {
	a *Activities

	mu sync.Mutex
	p  progress
	// most is how often the activity may be tried again whatever its categories allow (max_retries); zero: no bound.
	most int
}

// startAttempt reads what earlier attempts left. An attempt that vanished without a word is charged.
func (a *Activities) startAttempt(ctx context.Context) *attempt {
	t := &attempt{a: a}
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &t.p); err != nil {
			a.c.Log.Warn("heartbeat details of an earlier attempt can't be read", "error", err)
		}
	}
	t.p.Spent = t.p.Spent.Add(t.p.InFlight)
	t.p.InFlight = agent.Usage{}
	if t.p.Failures == nil {
		t.p.Failures = map[agent.ErrorType]int{}
	}
	return t
}

func (t *attempt) update(f func(*progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.p)
}

func (t *attempt) beat(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	activity.RecordHeartbeat(ctx, t.p)
}

// run calls f while it beats. When the worker stops, f's context is cancelled with sandbox.ErrDetached as the cause, and
// the activity hands itself back at once instead of waiting for its heartbeat to lapse.
func (t *attempt) run(ctx context.Context, f func(context.Context) error) error {
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		tick := time.NewTicker(Heartbeat)
		defer tick.Stop()
		first := time.After(Heartbeat / 4) // a quick activity never beats
		for {
			select {
			case <-stop:
				return
			case <-activity.GetWorkerStopChannel(ctx):
				cancel(sandbox.ErrDetached)
				return
			case <-first:
				t.beat(ctx)
			case <-tick.C:
				t.beat(ctx)
			}
		}
	})
	err := f(work)
	close(stop)
	beating.Wait()
	if err == nil {
		return nil
	}
	if errors.Is(context.Cause(work), sandbox.ErrDetached) && ctx.Err() == nil {
		return handBack(ctx, t)
	}
	return t.fail(ctx, err)
}

// handBack gives the activity to the next worker at once.
func handBack(ctx context.Context, t *attempt) error {
	t.beat(ctx)
	return temporal.NewApplicationErrorWithOptions("the worker is stopping", string(agent.StateError), temporal.ApplicationErrorOptions{
		NextRetryDelay: time.Millisecond,
		Category:       temporal.ApplicationErrorCategoryBenign,
	})
}

// fail turns an error into what Temporal gets: a cancellation, a failure with the wait before the next attempt, or one
// that is not tried again because its category's attempts are used up.
func (t *attempt) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return temporal.NewCanceledError(t.spent())
	}
	kind := agent.TypeOf(err)
	t.update(func(p *progress) { p.Failures[kind]++; p.Total++ })
	rule, retry := t.a.c.Retry[kind]
	f := failure{delay: retryDelay(rule, t.p.Failures[kind], retryAfter(err)), spent: t.spent()}
	f.final = !retry || t.p.Failures[kind] >= rule.Attempts || hopeless(err)
	if !f.final && t.most > 0 && t.p.Total > t.most {
		f.final, f.limit = true, agent.LimitRetries
	}
	if !f.final {
		t.beat(ctx)
	}
	return f.wire(err)
}

func (t *attempt) spent() agent.Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.p.Spent
}

// hopeless says that a model's endpoint would answer the same again.
func hopeless(err error) bool {
	e, ok := errors.AsType[*model.Error](err)
	return ok && e.Final
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*agent.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// retryDelay is the wait after the n-th failure of a category: exponential with a fifth of jitter, or what the other side
// asked for if that is longer.
func retryDelay(r agent.RetryRule, n int, asked time.Duration) time.Duration {
	d := float64(r.First)
	for range n - 1 {
		d = min(d*r.Factor, float64(r.Max))
	}
	d *= 0.8 + 0.4*rand.Float64()
	return max(time.Duration(d), asked, time.Millisecond)
}

// failure is what goes with an error across Temporal.
type failure struct {
	final bool
	delay time.Duration
	spent agent.Usage
	limit agent.LimitName
}

// wire makes the one form in which a failure crosses Temporal: the category as the type, and as details what was spent and
// the limit that forbids another try.
func (f failure) wire(err error) error {
	kind := agent.TypeOf(err)
	if kind == "" {
		kind = agent.StateError
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), string(kind), temporal.ApplicationErrorOptions{
		NonRetryable:   f.final,
		NextRetryDelay: f.delay,
		Details:        []any{f.spent, f.limit},
	})
}

// short is for activities that take no time worth beating for.
func (a *Activities) short(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	rule, retry := a.c.Retry[agent.TypeOf(err)]
	n := 1
	if activity.IsActivity(ctx) {
		n = int(activity.GetInfo(ctx).Attempt)
	}
	return failure{final: !retry || n >= rule.Attempts, delay: retryDelay(rule, n, retryAfter(err))}.wire(err)
}

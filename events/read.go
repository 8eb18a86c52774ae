package events

import (
	"context"
	"fmt"
	"iter"

	"go.temporal.io/api/enums/v1"

	"belay/agent"
)

// Read gives all events of a task in order: what was sealed of it, then what its histories tell, across continue-as-new,
// then the decisions about its outcome. It works with what is left: without a history on the server, and without anything
// sealed. What was sealed is verified; a hole, or what is not what was sealed, is a StateError, after the events before it.
func (r Reader) Read(ctx context.Context, f Found) iter.Seq2[agent.Event, error] {
	return r.events(ctx, f, false)
}

// Follow is Read, and waits for more events until the task ends.
func (r Reader) Follow(ctx context.Context, f Found) iter.Seq2[agent.Event, error] {
	return r.events(ctx, f, true)
}

func (r Reader) events(ctx context.Context, f Found, wait bool) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		w := walk{r: r, f: f, wait: wait, seq: 1}
		more, err := w.all(ctx, func(e agent.Event) bool {
			w.seq, w.step = e.Seq+1, e.Step
			return yield(e, nil)
		})
		if err != nil && more {
			yield(agent.Event{}, err)
		}
	}
}

// walk goes once through the life of a task.
type walk struct {
	r    Reader
	f    Found
	wait bool

	seq  int // of the next event
	step int // of the last one
}

// all gives every event. More is false when the caller has had enough.
func (w *walk) all(ctx context.Context, yield func(agent.Event) bool) (more bool, err error) {
	enough := false
	give := func(e agent.Event) bool {
		enough = !yield(e)
		return !enough
	}
	sealed, err := sealedOf(ctx, w.r.Store.Tenant(w.f.Run.Tenant), w.f)
	if err != nil {
		return true, err
	}
	if w.f.RunID == "" && len(sealed.segments) == 0 {
		return true, agent.Errorf(agent.StateError, "history of run %s of %s is gone, and its events were not sealed", w.f.Run.Run, w.f.WorkflowID)
	}
	if _, err := sealed.each(ctx, give); err != nil || enough {
		return !enough, err
	}
	from, err := w.unsealed(ctx, sealed)
	if err != nil {
		return true, err
	}
	for from != "" && !enough {
		if from, err = w.history(ctx, from, give); err != nil {
			return true, err
		}
	}
	if enough {
		return false, nil
	}
	return true, w.decisions(ctx, give)
}

// unsealed finds the first run whose events are still to be read from its history; empty: there is none.
func (w *walk) unsealed(ctx context.Context, sealed sealedChain) (string, error) {
	if w.f.RunID == "" || sealed.has(w.f.RunID) {
		return w.after(ctx, sealed.last())
	}
	run := w.f.RunID
	for {
		s, err := w.r.startOf(ctx, w.f.WorkflowID, run)
		if gone(err) {
			return "", agent.Errorf(agent.StateError, "history of run %s of %s is gone, and its events were not sealed", run, w.f.WorkflowID)
		}
		if err != nil {
			return "", err
		}
		before := s.GetContinuedExecutionRunId()
		if before == "" || sealed.has(before) {
			return run, nil
		}
		run = before
	}
}

// after is the run that continues a sealed one. With its history gone there is none: a run seals the one before it at once.
func (w *walk) after(ctx context.Context, runID string) (string, error) {
	if runID == "" || w.f.RunID == "" {
		return "", nil
	}
	iter := w.r.Client.GetWorkflowHistory(ctx, w.f.WorkflowID, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if gone(err) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("end of run %s of %s: %w", runID, w.f.WorkflowID, err)
		}
		if next := nextRun(e); next != "" {
			return next, nil
		}
	}
	return "", nil
}

// history gives the events of one run and names the run that continues it.
func (w *walk) history(ctx context.Context, runID string, yield func(agent.Event) bool) (next string, err error) {
	p := newProjector(runID, w.seq)
	iter := w.r.Client.GetWorkflowHistory(ctx, w.f.WorkflowID, runID, w.wait, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return "", fmt.Errorf("history of run %s of %s: %w", runID, w.f.WorkflowID, err)
		}
		for _, event := range p.take(e) {
			if !yield(event) {
				return "", nil
			}
		}
	}
	return p.next, nil
}

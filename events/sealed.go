package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"belay/activities"
	"belay/agent"
	"belay/store"
)

// segment is one link of the chain of what was sealed.
type segment struct {
	digest agent.Digest
	runID  string
}

// sealedChain is what was sealed of a task, in order.
type sealedChain struct {
	tenant   *store.Tenant
	run      agent.RunID
	segments []segment
	events   int // in all of them
}

// sealedOf finds what was sealed of a task: what the store names as newest, or what the run that goes on was given.
func sealedOf(ctx context.Context, t *store.Tenant, f Found) (sealedChain, error) {
	c := sealedChain{tenant: t, run: f.Run.Run}
	newest := f.sealed
	name := activities.SealRecord(f.Run)
	b, err := t.Record(ctx, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return c, fmt.Errorf("%s: %w", name, err)
	default:
		if err := json.Unmarshal(b, &newest); err != nil {
			return c, agent.Errorf(agent.StateError, "%s: %w", name, err)
		}
	}
	c.events = newest.Events
	for d := newest.Digest; d != ""; {
		s, err := c.read(ctx, d)
		if err != nil {
			return c, err
		}
		c.segments = append(c.segments, segment{d, s.RunID})
		d = s.Previous
	}
	slices.Reverse(c.segments)
	return c, nil
}

// read reads one segment; the store holds it against its digest.
func (c sealedChain) read(ctx context.Context, d agent.Digest) (s activities.Segment, err error) {
	b, err := c.tenant.Get(ctx, d)
	if errors.Is(err, store.ErrNotFound) {
		return s, agent.Errorf(agent.StateError, "sealed events of run %s: segment %s is missing: %w", c.run, d, err)
	}
	if err != nil {
		return s, fmt.Errorf("sealed events of run %s: %w", c.run, err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, agent.Errorf(agent.StateError, "sealed events of run %s: segment %s: %w", c.run, d, err)
	}
	return s, nil
}

func (c sealedChain) has(runID string) bool {
	return slices.ContainsFunc(c.segments, func(s segment) bool { return s.runID == runID })
}

// last is the newest run that was sealed; empty: none was.
func (c sealedChain) last() string {
	if len(c.segments) == 0 {
		return ""
	}
	return c.segments[len(c.segments)-1].runID
}

// each gives the sealed events in order, one segment in memory at a time. They must count on from 1 without a hole, up to
// the number that was sealed with the last of them.
func (c sealedChain) each(ctx context.Context, yield func(agent.Event) bool) (more bool, err error) {
	n := 0
	for _, link := range c.segments {
		s, err := c.read(ctx, link.digest)
		if err != nil {
			return false, err
		}
		for _, e := range s.Events {
			if n++; e.Seq != n {
				return false, agent.Errorf(agent.StateError, "sealed events of run %s: segment %s: event %d where %d was expected", c.run, link.digest, e.Seq, n)
			}
			if !yield(e) {
				return false, nil
			}
		}
	}
	if n != c.events {
		return false, agent.Errorf(agent.StateError, "sealed events of run %s: %d events; expected %d", c.run, n, c.events)
	}
	return true, nil
}

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"belay/agent"
)

// grown is what one task left.
type grown struct {
	steps        int
	took         time.Duration
	history      size   // of the task
	ledger       size   // of its ledger's workflow
	store        int64  // bytes of files that it added to the store
	conversation int64  // bytes of what was said: texts and arguments
	id, run      string // of the first run
}

// bytesPerStep leaves out the machine's name, which the SDK repeats in the two sticky dispatches of a step: it is not the
// same everywhere.
func (g grown) bytesPerStep() float64 {
	name, _ := os.Hostname() // without one the SDK uses a short word
	return float64(g.history.bytes)/float64(g.steps) - 2*float64(len(name))
}
func (g grown) eventsPerStep() float64 { return float64(g.history.events) / float64(g.steps) }

// kept is everything that the task left, beside what was said.
func (g grown) kept() float64 {
	return float64(g.history.bytes+g.ledger.bytes+g.store) / float64(g.conversation)
}

// grow runs one task, alone, whose calls print so many bytes each, and counts what it leaves.
func (r *rig) grow(ctx context.Context, steps, observation int) (g grown, err error) {
	before, err := folderBytes(r.folder)
	if err != nil {
		return g, err
	}
	began := time.Now()
	run, err := r.startTask(ctx, r.newID("grow"), fmt.Sprintf(goalSteps, steps, observation))
	if err != nil {
		return g, err
	}
	first := run.GetRunID() // the client goes on to later ones
	var l agent.Ledger
	if err := run.Get(ctx, &l); err != nil {
		return g, err
	}
	g = grown{steps: steps, took: time.Since(began), id: run.GetID(), run: first}
	if l.Usage.ToolCalls != steps {
		return g, fmt.Errorf("task %s made %d calls; expected %d", g.id, l.Usage.ToolCalls, steps)
	}
	ledger := agent.LedgerWorkflowID(g.id, agent.RunID(first))
	if err := r.client.GetWorkflow(ctx, ledger, "").Get(ctx, nil); err != nil {
		return g, err
	}
	if g.history, err = r.historySize(ctx, g.id, first); err != nil {
		return g, err
	}
	if g.ledger, err = r.ledgerSize(ctx, ledger); err != nil {
		return g, err
	}
	if g.store, err = folderBytes(r.folder); err != nil {
		return g, err
	}
	g.store -= before
	g.conversation, err = r.said(ctx, l)
	return g, err
}

func (r *rig) ledgerSize(ctx context.Context, id string) (size, error) {
	d, err := r.client.DescribeWorkflow(ctx, id, "")
	if err != nil {
		return size{}, err
	}
	return r.historySize(ctx, id, d.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId())
}

// said counts the conversation's own bytes.
func (r *rig) said(ctx context.Context, l agent.Ledger) (n int64, err error) {
	c, err := r.store.Tenant(l.Tenant).Conversation(ctx, l.EvidenceRefs[0].Digest)
	if err != nil {
		return 0, err
	}
	for _, t := range c.Turns {
		for _, m := range t.Messages {
			n += int64(len(m.Text))
			for _, call := range m.Calls {
				n += int64(len(call.Arguments))
			}
		}
	}
	return n, nil
}

// observed is how much each call prints where growth is measured.
const observed = 4 << 10

// The figures of growth that tests gate on.
const (
	figBytesPerStep = "history bytes a step"
	figGrowth       = "growth of bytes a step"
	figEvents       = "growth of events a step"
	figKept         = "history and store, in conversations"
)

// growth shows that what a step leaves does not depend on how long the task is. The control of the long task is the
// short one.
func growth(ctx context.Context, r *rig, o options, rep *report) error {
	short, err := r.grow(ctx, o.steps, observed)
	if err != nil {
		return err
	}
	long, err := r.grow(ctx, o.long, observed)
	if err != nil {
		return err
	}
	shown := func(g grown, v float64, unit string) string {
		return fmt.Sprintf("%.4g %s at %d steps", v, unit, g.steps)
	}
	rep.add(
		row{figBytesPerStep, shown(long, long.bytesPerStep(), "B"), shown(short, short.bytesPerStep(), "B"), long.bytesPerStep(), goal{atMost: 2500}},
		row{figGrowth, shown(long, long.bytesPerStep(), "B"), shown(short, short.bytesPerStep(), "B"), long.bytesPerStep() / short.bytesPerStep(), goal{atMost: 1.1}},
		row{figEvents, shown(long, long.eventsPerStep(), "events"), shown(short, short.eventsPerStep(), "events"), long.eventsPerStep() / short.eventsPerStep(), goal{atMost: 1.1}},
		row{figKept, fmt.Sprintf("%s, %s", readable(long.history.bytes+long.ledger.bytes), readable(long.store)), readable(long.conversation), long.kept(), goal{atMost: 2}},
	)
	rep.note("%d steps left %d events in %d runs (ledger: %d events, %s) and took %v.", long.steps, long.history.events, long.history.runs,
		long.ledger.events, readable(long.ledger.bytes), long.took.Round(time.Millisecond))
	extra := float64(long.steps - short.steps)
	if extra > 0 {
		rep.note("Each further step: %.0f B of history, %.2f events, %.0f B of store.", float64(long.history.bytes-short.history.bytes)/extra,
			float64(long.history.events-short.history.events)/extra, float64(long.store-short.store)/extra)
	}
	b, err := r.breakdown(ctx, long.id, long.run)
	if err != nil {
		return err
	}
	rep.note("What the history's bytes are:\n\n%s", b.table())
	return nil
}

// endless shows that a task of any length finishes.
func endless(ctx context.Context, r *rig, o options, rep *report) error {
	g, err := r.grow(ctx, o.endless, 64)
	if err != nil {
		return err
	}
	rep.add(row{
		what:    fmt.Sprintf("%d steps: history bytes a run", o.endless),
		belay:   fmt.Sprintf("%d runs, %d events", g.history.runs, g.history.events),
		control: "the server suggests to continue at 4 MiB or 4,096 events",
		value:   float64(g.history.bytes) / float64(g.history.runs),
		goal:    goal{atMost: 4 << 20},
	})
	rep.note("%d steps took %v, %.3g ms a step; %s of history, %s of store, %s of conversation.", o.endless, g.took.Round(time.Millisecond),
		g.took.Seconds()*1000/float64(o.endless), readable(g.history.bytes), readable(g.store), readable(g.conversation))
	return nil
}

// readable is a number of bytes as people read it.
func readable(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

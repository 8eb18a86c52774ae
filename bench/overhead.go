package main

import (
	"context"
	"fmt"
	"time"
)

// pair is one sample of Belay and one of its control, taken one right after the other.
type pair struct{ belay, bare sample }

// pairs takes samples in turn; which comes first changes, so that what drifts hits both alike.
func (r *rig) pairs(ctx context.Context, rep *report, n, tasks, atOnce, steps int) ([]pair, error) {
	var all []pair
	for i := range n {
		var p pair
		order := []struct {
			workload
			into *sample
		}{{belay, &p.belay}, {bare, &p.bare}}
		if i%2 == 1 {
			order[0], order[1] = order[1], order[0]
		}
		for _, x := range order {
			s, err := r.play(ctx, x.workload, tasks, atOnce, steps)
			if err != nil {
				return nil, err
			}
			*x.into = s
		}
		rep.say("%d at once, pair %d: %v beside %v; CPU %v beside %v; other processes %.2f cores", atOnce, i+1,
			p.belay.wall.Round(time.Millisecond), p.bare.wall.Round(time.Millisecond), p.belay.cpu.ours(), p.bare.cpu.ours(),
			(p.belay.cpu.others+p.bare.cpu.others).Seconds()/(p.belay.wall+p.bare.wall).Seconds())
		all = append(all, p)
	}
	return all, nil
}

// ofPairs gives one number per pair.
func ofPairs(pairs []pair, f func(pair) float64) []float64 {
	var v []float64
	for _, p := range pairs {
		v = append(v, f(p))
	}
	return v
}

func wallRatio(p pair) float64 { return p.belay.wall.Seconds() / p.bare.wall.Seconds() }
func cpuRatio(p pair) float64  { return p.belay.cpu.ours().Seconds() / p.bare.cpu.ours().Seconds() }

// aTask is how many tasks one sample of one at a time holds: enough for the tick of /proc.
const aTask = 3

// overhead measures what Belay adds to Temporal when the model, the tools and the sandbox take no time.
func overhead(ctx context.Context, r *rig, o options, rep *report) error {
	for _, w := range []workload{belay, bare} { // connections, caches, the first growth of the heap
		if _, err := r.play(ctx, w, o.at, o.at, 4); err != nil {
			return err
		}
	}
	one, err := r.pairs(ctx, rep, o.pairs, aTask, 1, o.steps)
	if err != nil {
		return err
	}
	many, err := r.pairs(ctx, rep, o.pairs, o.at, o.at, o.steps)
	if err != nil {
		return err
	}
	perStep := func(s sample) float64 { return s.wall.Seconds() * 1000 / float64(s.tasks*o.steps) }
	rate := func(s sample) float64 { return float64(s.tasks*o.steps) / s.wall.Seconds() }
	cpu := func(s sample) float64 { return s.cpu.ours().Seconds() * 1000 / float64(s.tasks*o.steps) }
	inverse := func(p pair) float64 { return 1 / wallRatio(p) }
	rep.add(
		compared("latency, one task", "ms/step", one, perStep, wallRatio, goal{atMost: 1.15}),
		compared(fmt.Sprintf("throughput, %d tasks", o.at), "steps/s", many, rate, inverse, goal{atLeast: 0.87}),
		compared("CPU, one task", "ms/step", one, cpu, cpuRatio, goal{atMost: 1.2}),
		compared(fmt.Sprintf("CPU, %d tasks", o.at), "ms/step", many, cpu, cpuRatio, goal{atMost: 1.2}),
	)
	server := func(s sample) float64 { return s.cpu.server.Seconds() * 1000 / float64(s.tasks*o.steps) }
	rep.note("Of the CPU of %d tasks the server takes %.3g ms/step with Belay and %.3g without; the worker takes the rest.", o.at,
		median(ofPairs(many, func(p pair) float64 { return server(p.belay) })), median(ofPairs(many, func(p pair) float64 { return server(p.bare) })))
	others := func(p pair) float64 {
		return (p.belay.cpu.others + p.bare.cpu.others).Seconds() / (p.belay.wall + p.bare.wall).Seconds()
	}
	rep.note("Meanwhile other processes took %.2g cores (median of all pairs); latencies are not to be trusted above 0.5.",
		median(append(ofPairs(one, others), ofPairs(many, others)...)))
	return nil
}

// compared is the row of a figure that is measured in pairs.
func compared(what, unit string, pairs []pair, of func(sample) float64, ratio func(pair) float64, g goal) row {
	ratios := ofPairs(pairs, ratio)
	return row{
		what:    what,
		belay:   fmt.Sprintf("%.3g %s", median(ofPairs(pairs, func(p pair) float64 { return of(p.belay) })), unit),
		control: fmt.Sprintf("%.3g %s (ratios %s)", median(ofPairs(pairs, func(p pair) float64 { return of(p.bare) })), unit, spread(ratios)),
		value:   median(ratios),
		goal:    g,
	}
}

package main

import (
	"bytes"
	"context"
	"testing"
)

// The gates are ratios and counts, which hold on a busy machine too. Times are printed by `go run ./bench` and gate
// nothing.

// gated measures a figure as main does, with fewer samples, and holds its goals.
func gated(t *testing.T, r *rig, o options, measure func(context.Context, *rig, options, *report) error, figures ...string) {
	t.Helper()
	var log bytes.Buffer
	rep := &report{log: &log}
	if err := measure(t.Context(), r, o, rep); err != nil {
		t.Fatal(err)
	}
	for _, what := range figures {
		x, ok := rep.find(what)
		if !ok {
			t.Errorf("%s was not measured", what)
			continue
		}
		t.Logf("%s: %s beside %s: %.4g, goal %s", what, x.belay, x.control, x.value, x.goal)
		if x.goal == (goal{}) || !x.goal.met(x.value) {
			t.Errorf("%s: %.4g; the goal is %s (%s beside %s)\n%s", what, x.value, x.goal, x.belay, x.control, rep.notes)
		}
	}
}

func TestCost(t *testing.T) {
	r, err := newRig(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	o := options{pairs: 1, steps: 20, long: 400, parked: 320}
	t.Run("growth", func(t *testing.T) {
		gated(t, r, o, growth, figBytesPerStep, figGrowth, figEvents, figKept)
	})
	t.Run("parked", func(t *testing.T) {
		gated(t, r, o, park, figParked)
	})
}

func TestContextReads(t *testing.T) {
	t.Parallel()
	gated(t, nil, options{steps: 20, long: 400}, contextReads, figWarm)
}

func TestBareTaskDoesWhatATaskDoes(t *testing.T) {
	t.Parallel()
	r, err := newRig(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	const steps = 3
	dispatched := map[string]map[string]int{}
	for _, w := range []workload{belay, bare} {
		counts, err := r.dispatches(t.Context(), w, steps)
		if err != nil {
			t.Fatal(err)
		}
		dispatched[w.name] = counts
	}
	for queue, n := range dispatched[belay.name] {
		if got := dispatched[bare.name][queue]; got != n {
			t.Errorf("%s: %d in the control, %d in Belay", queue, got, n)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--pairs", "0"}, "--pairs: 0; expected at least 1"},
		{[]string{"--only", "speed"}, `--only: "speed"; expected some of [overhead growth endless park cached context phases]`},
		{[]string{"quick"}, `unexpected argument "quick"; expected flags only`},
	} {
		if _, err := readOptions(c.args, &bytes.Buffer{}); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v; want %s", c.args, err, c.want)
		}
	}
}

func TestGoals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goal goal
		v    float64
		want string
	}{
		{goal{atMost: 1.15}, 1.15, "pass"},
		{goal{atMost: 1.15}, 1.16, "**MISSED**"},
		{goal{atLeast: 0.87}, 0.87, "pass"},
		{goal{atLeast: 0.87}, 0.86, "**MISSED**"},
		{goal{}, 7, ""},
	} {
		if got := c.goal.verdict(c.v); got != c.want {
			t.Errorf("%v at %s: %q, want %q", c.v, c.goal, got, c.want)
		}
	}
	if m := median([]float64{3, 1, 2}); m != 2 {
		t.Errorf("median of three: %v", m)
	}
	if m := median([]float64{4, 1, 2, 3}); m != 2.5 {
		t.Errorf("median of four: %v", m)
	}
}

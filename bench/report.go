package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// row is one line of the table: a figure, its control, and what was asked of their ratio.
type row struct {
	what, belay, control string
	value                float64 // that the goal is about
	goal                 goal
}

// goal bounds a value. The zero value bounds nothing: the row is printed and asks for nothing.
type goal struct {
	atMost, atLeast float64
}

func (g goal) String() string {
	switch {
	case g.atMost != 0:
		return fmt.Sprintf("≤ %.4g", g.atMost)
	case g.atLeast != 0:
		return fmt.Sprintf("≥ %.4g", g.atLeast)
	}
	return "–"
}

func (g goal) verdict(v float64) string {
	switch {
	case g == goal{}:
		return ""
	case g.met(v):
		return "pass"
	}
	return "**MISSED**"
}

func (g goal) met(v float64) bool {
	return (g.atMost == 0 || v <= g.atMost) && (g.atLeast == 0 || v >= g.atLeast)
}

// report collects the rows, and what is to stand below the table.
type report struct {
	rows  []row
	notes []string
	log   io.Writer // progress
}

func (r *report) add(rows ...row) { r.rows = append(r.rows, rows...) }

// say prints progress.
func (r *report) say(format string, args ...any) { fmt.Fprintf(r.log, "  "+format+"\n", args...) }

// note is printed below the table.
func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *report) print(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| figure | Belay | control | value | goal | |\n|---|---|---|---|---|---|\n")
	for _, x := range r.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %.3g | %s | %s |\n", x.what, x.belay, x.control, x.value, x.goal, x.goal.verdict(x.value))
	}
	for _, n := range r.notes {
		b.WriteString("\n" + strings.TrimSpace(n) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// find gives the row of a figure.
func (r *report) find(what string) (row, bool) {
	for _, x := range r.rows {
		if x.what == what {
			return x, true
		}
	}
	return row{}, false
}

// median gives the middle of values, of which there is at least one.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}

// spread is the least and the greatest of values, which shows how far a median can be trusted.
func spread(values []float64) string {
	return fmt.Sprintf("%.3g–%.3g", slices.Min(values), slices.Max(values))
}

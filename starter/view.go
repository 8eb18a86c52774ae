package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// brief is a view on one line, without what changes by itself.
func (v view) brief() string {
	if v.closed {
		return "ended"
	}
	s := v.Status
	var words []string
	if s.State != "" {
		words = append(words, stateText(s), fmt.Sprintf("step %d", s.Step))
	}
	for _, r := range v.Running {
		words = append(words, r.brief())
	}
	for _, p := range v.Pending {
		words = append(words, fmt.Sprintf("%s waits for %s: %s", p.Kind, orAnyone(p.Reviewers), line(p.Text, 80)))
	}
	if s.State != "" {
		words = append(words, fmt.Sprintf("%d tokens", s.Usage.Tokens()), fmt.Sprintf("$%.4f", s.Usage.CostUSD))
	}
	if v.Silent != "" {
		words = append(words, line(v.Silent, 160))
	}
	return strings.Join(words, " · ")
}

func (r running) brief() string {
	what := line(r.What, 80)
	if r.Attempt > 1 {
		what += fmt.Sprintf(" (attempt %d)", r.Attempt)
	}
	if r.Waiting {
		what += " (waits for a worker)"
	}
	return what
}

// picture is a view as it is drawn on a terminal of that width.
func (v view) picture(width int) string {
	s := v.Status
	var b strings.Builder
	row := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", label, line(fmt.Sprintf(format, args...), max(20, width-11)))
	}
	row("task", "%s", s.WorkflowID)
	row("goal", "%s", s.Goal)
	row("state", "%s · step %d of %d", stateText(s), s.Step, s.Limits.MaxSteps)
	row("tokens", "%s", bar(float64(s.Usage.Tokens()), float64(s.Limits.MaxTokens), "%.0f of %.0f"))
	row("cost", "%s", bar(s.Usage.CostUSD, s.Limits.MaxCostUSD, "$%.4f of $%.2f"))
	row("calls", "%s", bar(float64(s.Usage.ToolCalls), float64(s.Limits.MaxToolCalls), "%.0f of %.0f"))
	row("time", "%s of %s", time.Duration(s.Worked).Round(time.Second), s.Limits.TaskTimeout)
	b.WriteString("\n")
	for _, r := range v.Running {
		row("now", "%s · %s", r.brief(), v.At.Sub(r.Since).Round(time.Second))
		if r.Error != "" {
			row("", "the attempt before: %s", r.Error)
		}
	}
	for _, p := range v.Pending {
		row("waits", "for %s: %s", orAnyone(p.Reviewers), p.Text)
		row("", "%s", waiting{s.WorkflowID, p}.answer())
	}
	if s.Paused != nil {
		for l := range strings.Lines(pausedText(s)) {
			label, rest, _ := strings.Cut(l, " ")
			row(label, "%s", rest)
		}
	}
	if v.Silent != "" {
		row("silent", "%s", v.Silent)
	}
	return b.String()
}

// bar shows a part of a whole; a whole that is not known shows the part alone.
func bar(part, whole float64, format string) string {
	const cells = 20
	full := 0
	if whole > 0 {
		full = max(0, min(cells, int(part/whole*cells)))
	}
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full) + " " + fmt.Sprintf(format, part, whole)
}

// screen draws a task in place.
type screen struct {
	ctx   context.Context //nolint:containedctx // of the verb; bubbletea has no place for it
	s     *session
	v     view
	width int
	err   error
}

// looked is what came of one look.
type looked struct {
	v   view
	err error
}

// draw shows a task in place until it ends or the user leaves.
func draw(ctx context.Context, s *session, first view, in io.Reader, out io.Writer) error {
	// Signals end ctx: a second handler, bubbletea's own, would race with that and block for ever.
	end, err := tea.NewProgram(&screen{ctx: ctx, s: s, v: first, width: 100},
		tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithInput(in), tea.WithOutput(out)).Run()
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return end.(*screen).err
}

// Init begins to look.
func (m *screen) Init() tea.Cmd { return m.next() }

func (m *screen) next() tea.Cmd {
	return tea.Tick(watchEvery, func(time.Time) tea.Msg {
		v, err := m.s.look(m.ctx, m.v.Status.WorkflowID)
		return looked{v, err}
	})
}

// Update takes a look's result, a key or a new size.
func (m *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width = msg.Width
	case tea.KeyPressMsg:
		if k := msg.String(); k == "q" || k == "ctrl+c" || k == "esc" {
			return m, tea.Quit
		}
	case looked:
		if msg.err != nil {
			m.err = msg.err
			return m, tea.Quit
		}
		if !msg.v.open() {
			return m, tea.Quit
		}
		m.v = msg.v.after(m.v)
		return m, m.next()
	}
	return m, nil
}

// View draws.
func (m *screen) View() tea.View {
	return tea.NewView(m.v.picture(m.width) + "\nq leaves; the task goes on\n")
}

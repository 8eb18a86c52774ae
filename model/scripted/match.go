package scripted

import (
	"slices"
	"strings"

	"belay/agent"
)

// contains matches text that contains it, and containsNot text that doesn't. Empty, both match every text.
type (
	contains    string
	containsNot string
)

func (c contains) match(text string) bool { return strings.Contains(text, string(c)) }

func (c containsNot) match(text string) bool { return c == "" || !strings.Contains(text, string(c)) }

// conversation is what a request shows.
type conversation struct {
	View
	last      agent.Role
	called    []string
	withTools bool
}

// read gathers what rules and templates look at.
func read(r request) conversation {
	c := conversation{View: View{Turn: 1}, withTools: len(r.Tools) > 0}
	results := false // the results gathered so far belong to the reply before
	for _, m := range r.Messages {
		text := string(m.Content)
		switch c.last = m.Role; m.Role {
		case agent.RoleSystem:
			c.System = joined(c.System, text)
		case agent.RoleUser:
			if c.Goal == "" {
				c.Goal = text
			}
			c.LastUser = text
		case agent.RoleAssistant:
			c.Turn++
			results = false
			for _, call := range m.Calls {
				c.Calls++
				c.called = append(c.called, call.Function.Name)
			}
		case agent.RoleTool:
			if !results {
				c.LastTool, results = "", true
			}
			c.LastTool = joined(c.LastTool, text)
		}
	}
	return c
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

func (w When) match(c conversation) bool {
	return (w.Turn == 0 || w.Turn == c.Turn) &&
		(w.CallsMade == nil || *w.CallsMade == c.Calls) &&
		(w.Last == "" || w.Last == c.last) &&
		(w.Called == "" || slices.Contains(c.called, w.Called)) &&
		(w.NotCalled == "" || !slices.Contains(c.called, w.NotCalled)) &&
		(w.WithTools == nil || *w.WithTools == c.withTools) &&
		w.Goal.match(c.Goal) && w.NotGoal.match(c.Goal) &&
		w.System.match(c.System) && w.NotSystem.match(c.System) &&
		w.LastUser.match(c.LastUser) && w.NotLastUser.match(c.LastUser) &&
		w.LastTool.match(c.LastTool) && w.NotLastTool.match(c.LastTool)
}

// rule gives the first rule that matches, by its index; -1 when none does.
func (s *Scenario) rule(c conversation) int {
	return slices.IndexFunc(s.Rules, func(r Rule) bool { return r.When.match(c) })
}

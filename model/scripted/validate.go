package scripted

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"belay/agent"
	"belay/strictyaml"
)

var nameForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// checker checks what a file says and gathers what is wrong with it. It takes places as paths of the file's fields.
type checker struct {
	doc      *strictyaml.Document
	problems []*strictyaml.Problem
}

func (c *checker) wrong(at, format string, args ...any) {
	c.problems = append(c.problems, c.doc.Problem(at, format, args...))
}

// scenario checks a scenario, and names the rules that have no name.
func (c *checker) scenario(s *Scenario) {
	if !nameForm.MatchString(s.Name) {
		c.wrong("name", "%.40q; expected up to 64 letters, digits and . _ -", s.Name)
	}
	if len(s.Rules) == 0 {
		c.wrong("rules", "none; expected at least one rule")
	}
	always := -1
	for i := range s.Rules {
		r, at := &s.Rules[i], fmt.Sprintf("rules[%d]", i)
		if always >= 0 {
			c.wrong(at, "never reached: rules[%d] has no condition; expected such a rule to be the last", always)
		} else if r.When == (When{}) {
			always = i
		}
		if r.Name == "" {
			r.Name = fmt.Sprintf("rule %d", i+1)
		}
		c.rule(at, *r)
	}
}

func (c *checker) rule(at string, r Rule) {
	refuses := r.Fault != nil && r.Fault.Status != 0 && r.Fault.Times == 0
	switch {
	case r.Reply != nil && r.Repeat != nil:
		c.wrong(at+".repeat", "beside a reply; expected one of the two")
	case r.Reply == nil && r.Repeat == nil && !refuses:
		c.wrong(at, "has no answer; expected reply or repeat (an empty reply is {})")
	}
	c.when(at+".when", r.When)
	if r.Reply != nil {
		c.reply(at+".reply", *r.Reply)
	}
	if r.Repeat != nil {
		c.repeat(at+".repeat", *r.Repeat)
	}
	if r.Fault != nil {
		c.fault(at+".fault", *r.Fault)
	}
}

func (c *checker) when(at string, w When) {
	if w.Turn < 0 {
		c.wrong(at+".turn", "%d; expected 1 for the first reply, 2 for the second, …", w.Turn)
	}
	if w.CallsMade != nil && *w.CallsMade < 0 {
		c.wrong(at+".calls_made", "%d; expected 0 or more", *w.CallsMade)
	}
	if w.Last != "" && w.Last != agent.RoleUser && w.Last != agent.RoleTool {
		c.wrong(at+".last", "%.40q; expected user or tool", w.Last)
	}
}

func (c *checker) reply(at string, r Reply) {
	finishes := []string{"", "stop", "tool_calls", "length", "content_filter"}
	if !slices.Contains(finishes, r.Finish) {
		c.wrong(at+".finish", "%.40q; expected stop, tool_calls, length or content_filter", r.Finish)
	}
	for i, call := range r.Calls {
		at := fmt.Sprintf("%s.calls[%d]", at, i)
		c.tool(at, call.Tool, call.Arguments)
		if call.Arguments != nil && call.RawArguments != nil {
			c.wrong(at+".raw_arguments", "beside arguments; expected one of the two")
		}
	}
	if u := r.Usage; u != nil && (u.Input < 0 || u.Output < 0 || u.Cached < 0 || u.Cached > u.Input) {
		c.wrong(at+".usage", "input %d, output %d, cached %d; expected no negative number, and no more cached than input", u.Input, u.Output, u.Cached)
	}
}

func (c *checker) repeat(at string, r Repeat) {
	if r.Calls < 1 {
		c.wrong(at+".calls", "%d; expected how many calls to make, at least 1", r.Calls)
	}
	c.tool(at, r.Tool, r.Arguments)
	if r.PerReply < 0 {
		c.wrong(at+".per_reply", "%d; expected 1 or more", r.PerReply)
	}
}

// tool checks a call: the name of its tool, and its arguments, whose strings are templates.
func (c *checker) tool(at, name string, arguments map[string]any) {
	if name == "" {
		c.wrong(at+".tool", "missing; expected the name of a tool")
	}
	c.templates(at+".arguments", arguments)
}

func (c *checker) templates(at string, value any) {
	switch value := value.(type) {
	case string:
		var t Template
		if err := t.UnmarshalText([]byte(value)); err != nil {
			c.wrong(at, "%v", err)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			c.templates(at+"."+name, value[name])
		}
	case []any:
		for i, e := range value {
			c.templates(fmt.Sprintf("%s[%d]", at, i), e)
		}
	}
}

func (c *checker) fault(at string, f Fault) {
	if f.Times < 0 {
		c.wrong(at+".times", "%d; expected how many requests it strikes, at least 1, or nothing for all", f.Times)
	}
	if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
		c.wrong(at+".status", "%d; expected 400 to 599", f.Status)
	}
	if f.ChunkBytes < 0 {
		c.wrong(at+".chunk_bytes", "%d; expected at least 1", f.ChunkBytes)
	}
	for _, d := range []struct {
		name string
		wait agent.Duration
	}{{"first_delay", f.FirstDelay}, {"chunk_delay", f.ChunkDelay}} {
		if d.wait < 0 {
			c.wrong(at+"."+d.name, "%s; expected a positive duration", d.wait)
		}
	}
	end := ""
	if f.Status != 0 {
		end = "status"
	}
	for _, e := range []struct {
		name  string
		after *int
	}{{"stall_after", f.StallAfter}, {"cut_after", f.CutAfter}, {"error_after", f.ErrorAfter}} {
		switch {
		case e.after == nil:
		case *e.after < 0:
			c.wrong(at+"."+e.name, "%d; expected a number of chunks, 0 or more", *e.after)
		case end != "":
			c.wrong(at+"."+e.name, "beside %s; expected one end", end)
		default:
			end = e.name
		}
	}
}

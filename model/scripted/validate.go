package scripted

import (
	"fmt"
	"regexp"
	"slices"

	"belay/agent"
)

var nameForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// validate gives the first thing that is wrong, as a *problem, and names the rules that have no name.
func (s *Scenario) validate() error {
	if !nameForm.MatchString(s.Name) {
		return wrong("name", "%.40q; expected up to 64 letters, digits and . _ -", s.Name)
	}
	if len(s.Rules) == 0 {
		return wrong("rules", "none; expected at least one rule")
	}
	always := -1
	for i := range s.Rules {
		r, at := &s.Rules[i], fmt.Sprintf("rules[%d]", i)
		if always >= 0 {
			return wrong(at, "never reached: rules[%d] has no condition; expected such a rule to be the last", always)
		}
		if r.When == (When{}) {
			always = i
		}
		if r.Name == "" {
			r.Name = fmt.Sprintf("rule %d", i+1)
		}
		if err := r.validate(at); err != nil {
			return err
		}
	}
	return nil
}

func wrong(at, format string, args ...any) error {
	return &problem{at: at, text: fmt.Sprintf(format, args...)}
}

func (r Rule) validate(at string) error {
	refuses := r.Fault != nil && r.Fault.Status != 0 && r.Fault.Times == 0
	switch {
	case r.Reply != nil && r.Repeat != nil:
		return wrong(at+".repeat", "beside a reply; expected one of the two")
	case r.Reply == nil && r.Repeat == nil && !refuses:
		return wrong(at, "has no answer; expected reply or repeat (an empty reply is {})")
	}
	if err := r.When.validate(at + ".when"); err != nil {
		return err
	}
	if r.Reply != nil {
		if err := r.Reply.validate(at + ".reply"); err != nil {
			return err
		}
	}
	if r.Repeat != nil {
		if err := r.Repeat.validate(at + ".repeat"); err != nil {
			return err
		}
	}
	if r.Fault != nil {
		return r.Fault.validate(at + ".fault")
	}
	return nil
}

func (w When) validate(at string) error {
	switch {
	case w.Turn < 0:
		return wrong(at+".turn", "%d; expected 1 for the first reply, 2 for the second, …", w.Turn)
	case w.CallsMade != nil && *w.CallsMade < 0:
		return wrong(at+".calls_made", "%d; expected 0 or more", *w.CallsMade)
	case w.Last != "" && w.Last != agent.RoleUser && w.Last != agent.RoleTool:
		return wrong(at+".last", "%.40q; expected user or tool", w.Last)
	}
	return nil
}

func (r Reply) validate(at string) error {
	finishes := []string{"", "stop", "tool_calls", "length", "content_filter"}
	if !slices.Contains(finishes, r.Finish) {
		return wrong(at+".finish", "%.40q; expected stop, tool_calls, length or content_filter", r.Finish)
	}
	for i, c := range r.Calls {
		at := fmt.Sprintf("%s.calls[%d]", at, i)
		switch {
		case c.Tool == "":
			return wrong(at+".tool", "missing; expected the name of a tool")
		case c.Arguments != nil && c.RawArguments != nil:
			return wrong(at+".raw_arguments", "beside arguments; expected one of the two")
		}
	}
	if u := r.Usage; u != nil && (u.Input < 0 || u.Output < 0 || u.Cached < 0 || u.Cached > u.Input) {
		return wrong(at+".usage", "input %d, output %d, cached %d; expected no negative number, and no more cached than input", u.Input, u.Output, u.Cached)
	}
	return nil
}

func (r Repeat) validate(at string) error {
	switch {
	case r.Calls < 1:
		return wrong(at+".calls", "%d; expected how many calls to make, at least 1", r.Calls)
	case r.Tool == "":
		return wrong(at+".tool", "missing; expected the name of a tool")
	case r.PerReply < 0:
		return wrong(at+".per_reply", "%d; expected 1 or more", r.PerReply)
	}
	return nil
}

func (f Fault) validate(at string) error {
	if f.Times < 0 {
		return wrong(at+".times", "%d; expected how many requests it strikes, at least 1, or nothing for all", f.Times)
	}
	if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
		return wrong(at+".status", "%d; expected 400 to 599", f.Status)
	}
	if f.ChunkBytes < 0 {
		return wrong(at+".chunk_bytes", "%d; expected at least 1", f.ChunkBytes)
	}
	for _, d := range []struct {
		name string
		wait agent.Duration
	}{{"first_delay", f.FirstDelay}, {"chunk_delay", f.ChunkDelay}} {
		if d.wait < 0 {
			return wrong(at+"."+d.name, "%s; expected a positive duration", d.wait)
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
			return wrong(at+"."+e.name, "%d; expected a number of chunks, 0 or more", *e.after)
		case end != "":
			return wrong(at+"."+e.name, "beside %s; expected one end", end)
		default:
			end = e.name
		}
	}
	return nil
}

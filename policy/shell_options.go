package policy

import (
	"path"
	"strings"

	"belay/agent"
)

// optionsGiven is what a command's options amount to.
type optionsGiven struct {
	values   map[string]word // by name, of those that have one; the last counts
	all      []optionGiven
	harmless bool // a dry run, and nothing in the options that is not known
	inPlace  bool // the operands are written
}

type optionGiven struct {
	name  string
	value word
}

// has says whether one of the named options is given.
func (o optionsGiven) has(names ...string) bool {
	for _, name := range names {
		if _, ok := o.values[name]; ok {
			return true
		}
	}
	return false
}

// options separates a command's options from its operands and judges the options. For a program with verbs or one that runs
// another it stops at the first operand.
func (c *call) options(p program, args []word) (operands []word, got optionsGiven) {
	got.values = map[string]word{}
	before := c.risk
	harmless := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.known() && a.text == "--":
			got.values["--"] = a
			operands = append(operands, args[i+1:]...)
			i = len(args)
		case len(a.lead) > 1 && a.lead[0] == '-':
			var form optionForm
			i, form = c.option(p, args, i, &got)
			harmless = harmless || form == optionHarmless
		default:
			if a.dynamic && a.lead == "" && p.dangerous() {
				c.high("an argument that is only known when it runs may be an option that does harm", doesDynamic)
			}
			if p.kind.stops() {
				operands = append(operands, args[i:]...)
				i = len(args)
				continue
			}
			operands = append(operands, a)
		}
	}
	got.harmless = harmless && c.risk == before
	return operands, got
}

// option judges the option at args[i] and gives the index of the last word that belongs to it.
func (c *call) option(p program, args []word, i int, got *optionsGiven) (int, optionForm) {
	a := args[i]
	name, _, attached := strings.Cut(a.text, "=")
	if len(a.lead) < len(name) && !a.known() {
		c.unknownOption(p, a)
		return i, optionPlain
	}
	if whole, form, ok := p.option(name); ok {
		if attached {
			return i, c.apply(form, whole, a.cut(len(name)+1), got)
		}
		return c.applyNext(form, whole, args, i, got)
	}
	if _, numeric := p.options["-#"]; numeric && strings.Trim(name[1:], "0123456789") == "" {
		return i, optionPlain
	}
	if strings.HasPrefix(name, "--") {
		c.unknownOption(p, a)
		return i, optionPlain
	}
	return c.cluster(p, args, i, got)
}

// cluster judges short options written as one word.
func (c *call) cluster(p program, args []word, i int, got *optionsGiven) (int, optionForm) {
	a, harmless := args[i], optionPlain
	for j := 1; j < len(a.text); j++ {
		name := "-" + a.text[j:j+1]
		form, ok := p.options[name]
		if !ok {
			c.unknownOption(p, a)
			return i, optionPlain
		}
		switch last := j+1 == len(a.text); {
		case last:
			next, got := c.applyNext(form, name, args, i, got)
			if got == optionPlain {
				got = harmless
			}
			return next, got
		case form.takesNext(), form == optionAttached, form == optionInPlace:
			return i, c.apply(form, name, a.cut(j+1), got)
		default:
			if c.apply(form, name, word{}, got) == optionHarmless {
				harmless = optionHarmless
			}
		}
	}
	return i, harmless
}

// applyNext judges an option whose value, if it has one, is the next word.
func (c *call) applyNext(form optionForm, name string, args []word, i int, got *optionsGiven) (int, optionForm) {
	if form.takesNext() && i+1 < len(args) {
		return i + 1, c.apply(form, name, args[i+1], got)
	}
	return i, c.apply(form, name, word{}, got)
}

func (c *call) apply(form optionForm, name string, value word, got *optionsGiven) optionForm {
	got.values[name] = value
	got.all = append(got.all, optionGiven{name, value})
	switch form {
	case optionHigh:
		c.high("option "+name+" runs a program, writes, or takes a guard away", doesExec)
	case optionReads:
		c.touch(value, useRead)
	case optionWrites:
		c.touch(value, useWrite)
	case optionFolder:
		c.folder(value)
	case optionInPlace:
		got.inPlace = true
	}
	return form
}

// folder judges the folder that a program is told to work in, which it may read and write.
func (c *call) folder(x word) {
	j := c.w.touch(x, useRead, c.f)
	c.raise(j.risk, j.why, j.effects...)
	if j.risk != agent.RiskLow || strings.Contains("/"+strings.ReplaceAll(x.text, "..", ""), "/.") && path.Clean(x.text) != "." {
		c.high("works in "+x.text+", outside of the workspace or hidden in it", doesWrite)
	}
}

// unknownOption judges an option that the table does not list: the command counts for one level more, and what looks like a
// path in it counts as written.
func (c *call) unknownOption(p program, a word) {
	if p.any {
		if _, value, ok := strings.Cut(a.text, "="); ok {
			c.outside(a.cut(len(a.text) - len(value)))
		} else {
			c.outside(a.cut(min(2, len(a.text))))
		}
		return
	}
	risk := agent.RiskMedium
	if p.risk != agent.RiskLow {
		risk = agent.RiskHigh
	}
	c.raise(risk, "option "+a.text+" is not known here")
	if _, value, ok := strings.Cut(a.text, "="); ok && strings.ContainsAny(value, "/~") {
		c.touch(a.cut(len(a.text)-len(value)), useWrite)
	}
}

// outside judges an argument of a program whose options are not listed: a path outside of the workspace counts as written.
func (c *call) outside(x word) {
	if !strings.HasPrefix(x.text, "/") && !strings.HasPrefix(x.text, "~") && !strings.Contains(x.text, "..") {
		return
	}
	clean, _ := resolve(x.text, workspace)
	if strings.Contains(x.text, "...") || below(clean, "/usr") || below(clean, "/opt") {
		return
	}
	if p := pathOf(clean, useRead); !p.InWorkspace && !p.InTmp || p.Secret {
		c.touch(x, useWrite)
	}
}

package policy

import (
	"slices"
	"strings"

	"belay/agent"
)

// wrap judges a program that runs another one.
func (c *call) wrap(p program, args []word) {
	switch p.kind {
	case kindEnv:
		c.env(p, args)
		return
	case kindFind:
		c.find(args)
		return
	}
	rest, got := c.options(p, args)
	if p.kind == kindWrapOne && len(rest) > 0 {
		rest = rest[1:]
	}
	if got.harmless || len(rest) == 0 {
		return
	}
	f := c.f
	switch {
	case p.kind == kindXargs:
		rest, f = c.fromData(rest, got), f.own(input{})
	case c.name != "command" && c.name != "builtin" && c.name != "exec":
		f = f.own(c.in)
	}
	c.runs(rest, f)
}

// runs judges a command that this one runs; this one is then as risky.
func (c *call) runs(words []word, f *frame) {
	c.within(func() { c.w.run(words, f, c.in) })
}

// within judges what is a part of this command, and takes the risk over.
func (c *call) within(judge func()) {
	before := len(c.w.findings)
	judge()
	for _, found := range c.w.findings[min(before, len(c.w.findings)):] {
		if found.Risk > c.risk.Level() {
			c.risk = []agent.Risk{agent.RiskLow, agent.RiskMedium, agent.RiskHigh}[found.Risk]
		}
	}
}

// text judges a word that is run as a shell script.
func (c *call) text(x word, f *frame) {
	if !x.known() {
		c.high("runs a script that is only known when it runs", doesDynamic, doesExec)
		return
	}
	c.sub(x.text, f)
}

// sub judges a script that stands in this one. What it finds is told at this command's place.
func (c *call) sub(text string, f *frame) {
	if c.w.origin == nil {
		at := c.at
		c.w.origin = &at
		defer func() { c.w.origin = nil }()
	}
	c.within(func() { c.w.script(text, f) })
}

// fromData gives the command that xargs makes: its words with others from its input.
func (c *call) fromData(rest []word, got optionsGiven) []word {
	data := word{text: "*", dynamic: true, at: c.at}
	mark := ""
	for _, name := range []string{"-I", "-i", "--replace"} {
		if value, ok := got.values[name]; ok {
			mark = value.text
			if mark == "" {
				mark = "{}"
			}
		}
	}
	if mark == "" {
		return append(slices.Clip(rest), data)
	}
	all := make([]word, 0, len(rest))
	for _, w := range rest {
		all = append(all, w.replace(mark, data))
	}
	return all
}

// replace puts a word in place of each mark in another.
func (w word) replace(mark string, by word) word {
	before, _, found := strings.Cut(w.text, mark)
	if !found {
		return w
	}
	w.text = strings.ReplaceAll(w.text, mark, by.text)
	if len(before) < len(w.lead) || w.known() {
		w.lead = before + by.lead
	}
	w.dynamic, w.glob = w.dynamic || by.dynamic, w.glob || by.glob
	return w
}

// env judges the env program: assignments, then a command.
func (c *call) env(p program, args []word) {
	got := optionsGiven{values: map[string]word{}}
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, _, assigns := strings.Cut(a.text, "=")
		switch {
		case strings.HasPrefix(a.text, "-S"), strings.HasPrefix(a.text, "--split-string"), strings.HasPrefix(a.text, "-") && strings.HasSuffix(a.text, "S"):
			c.split(args[i:])
			return
		case a.text == "--":
		case len(a.lead) > 1 && a.lead[0] == '-':
			i, _ = c.option(p, args, i, &got)
		case assigns && len(a.lead) > len(name):
			c.within(func() { c.w.variable(name, a.cut(len(name)+1), c.at) })
		default:
			c.runs(args[i:], c.f.own(c.in))
			return
		}
	}
	c.raise(agent.RiskMedium, "prints variables, which may hold credentials", doesRead)
}

// split judges the words after env -S, which are split once more.
func (c *call) split(args []word) {
	var all []string
	for _, a := range args {
		if !a.known() {
			c.high("runs a command that is only known when it runs", doesDynamic, doesExec)
			return
		}
		all = append(all, a.text)
	}
	text, long := strings.CutPrefix(strings.Join(all, " "), "--split-string")
	if long {
		text = strings.TrimPrefix(text, "=")
	} else {
		_, text, _ = strings.Cut(text, "S")
	}
	c.sub("env "+text, c.f.own(c.in))
}

// shell judges a shell that is given a script: as text, as a file, or on its input.
func (c *call) shell(ops []word, got optionsGiven) {
	f := c.f.own(c.in)
	if script, ok := got.values["-c"]; ok {
		c.text(script, f)
		return
	}
	if len(ops) > 0 && !got.has("-s") && ops[0].text != "-" {
		c.script(ops[0])
		return
	}
	switch c.in.kind {
	case inputText:
		c.sub(c.in.text, c.f.own(input{kind: inputUnknown}))
	case inputFile:
		c.script(c.in.file)
	default:
		c.high("runs the commands that it reads from its input", doesDynamic, doesExec)
	}
}

// eval judges words that are run as a script in this shell.
func (c *call) eval(ops []word) {
	var all []string
	for _, o := range ops {
		if !o.known() {
			c.high("runs a script that is only known when it runs", doesDynamic, doesExec)
			return
		}
		all = append(all, o.text)
	}
	c.raise(agent.RiskMedium, "hides a command in a text", doesExec)
	c.sub(strings.Join(all, " "), c.f)
}

// modules are Python's that do no more than the project's own tools.
var modules = []string{
	"pytest", "unittest", "doctest", "coverage", "tox", "nox", "mypy", "ruff", "black", "isort", "flake8", "pylint", "compileall", "py_compile",
	"json.tool", "venv", "build", "pyright",
}

// inline judges an interpreter of another language.
func (c *call) inline(ops []word, got optionsGiven) {
	if module, ok := got.values["-m"]; ok {
		switch {
		case module.text == "pip":
			c.runs(append([]word{literal("pip", c.at)}, ops...), c.f)
		case !module.known() || !slices.Contains(modules, module.text):
			c.high("module "+module.text+" is not known here", doesExec)
		default:
			c.raise(agent.RiskMedium, "runs project code", doesExec)
		}
		return
	}
	if len(ops) == 0 || ops[0].text == "-" {
		if c.in.kind == inputFile && len(ops) == 0 {
			c.script(c.in.file)
			return
		}
		c.high("runs a program that it reads from its input", doesExec, doesDynamic)
		return
	}
	c.script(ops[0])
}

package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"belay/agent"
)

// call is one simple command while it is judged.
type call struct {
	w       *walker
	f       *frame
	in      input
	at      syntax.Pos
	name    string // of the program, with its verbs: "git log"
	risk    agent.Risk
	effects []string
}

// run judges a command: its words after expansion, the first of them the program.
func (w *walker) run(words []word, f *frame, in input) {
	if w.steps++; w.steps > maxCommands {
		if w.steps == maxCommands+1 {
			w.opaque(words[0].at, "too many commands to look at")
		}
		return
	}
	c := &call{w: w, f: f, in: in, at: words[0].at, risk: agent.RiskLow}
	c.judge(words[0], words[1:])
	made := Command{Risk: c.risk.Level(), Effects: sorted(c.effects), Argv: []string{}}
	if words[0].known() {
		made.Program = path.Base(words[0].text)
	}
	for _, a := range words {
		made.Dynamic = made.Dynamic || a.dynamic
	}
	for _, a := range words[1:] {
		made.Argv = append(made.Argv, a.text)
	}
	w.commands = append(w.commands, made)
}

// raise records a reason for risk.
func (c *call) raise(risk agent.Risk, why string, effects ...string) {
	c.risk = c.risk.Worse(risk)
	c.effects = append(c.effects, effects...)
	if c.name != "" {
		why = c.name + ": " + why
	}
	c.w.find(c.at, risk, why, effects...)
}

func (c *call) high(why string, effects ...string) { c.raise(agent.RiskHigh, why, effects...) }

// touch judges that the command uses a path.
func (c *call) touch(x word, u use) {
	j := c.w.touch(x, u, c.f)
	c.raise(j.risk, j.why, j.effects...)
}

func (c *call) judge(name word, args []word) {
	if !name.known() || name.text == "" {
		c.high("runs a program whose name is only known when it runs", doesDynamic, doesExec)
		return
	}
	base, trusted := c.trusted(name.text)
	if slices.Contains(c.w.bodies, name.text) {
		c.high("a function that calls itself", doesExec)
		return
	}
	if c.w.scope.functions[name.text] {
		return // its body is judged where it stands
	}
	if !trusted {
		c.script(name)
		return
	}
	c.name = base
	p, known := programs()[base]
	if !known || p.kind == "" {
		c.high("a program that is not known here", doesExec)
		return
	}
	c.judgeProgram(p, args)
}

// trusted says whether a program's name leads to the system's program of that name.
func (c *call) trusted(name string) (base string, ok bool) {
	if !strings.Contains(name, "/") {
		return name, true
	}
	dir, base := path.Split(path.Clean(name))
	return base, slices.Contains([]string{"/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/go/bin/"}, dir)
}

// script judges that a file is run.
func (c *call) script(x word) {
	if !x.known() {
		c.high("runs a program that is only known when it runs", doesDynamic, doesExec)
		return
	}
	if len(c.f.dirs) == 0 && !path.IsAbs(x.text) {
		c.high("runs a program in a folder that is not known", doesDynamic, doesExec)
		return
	}
	dirs := c.f.dirs
	if len(dirs) == 0 {
		dirs = []string{workspace}
	}
	for _, dir := range dirs {
		clean, escapes := resolve(x.text, dir)
		p := pathOf(clean, useRead)
		p.Escapes = escapes
		c.w.paths = append(c.w.paths, p)
		if !p.InWorkspace {
			c.high("runs "+clean+", outside of the workspace", doesExec)
			return
		}
		c.w.ran = append(c.w.ran, ranFile{clean, c.at})
	}
	c.raise(agent.RiskMedium, "runs "+x.text+" of the workspace", doesExec)
}

// judgeProgram judges a command by what the table says of its program.
func (c *call) judgeProgram(p program, args []word) {
	c.effects = append(c.effects, p.effects...)
	if p.kind == kindVerbs {
		c.verb(p, args)
		return
	}
	if p.kind.wraps() {
		c.raise(p.risk, "", p.effects...)
		c.wrap(p, args)
		return
	}
	if p.kind == kindTar {
		args = oldTar(args)
	}
	operands, got := c.options(p, args)
	if got.harmless {
		return
	}
	c.w.effects = append(c.w.effects, p.effects...)
	c.operands(p, operands, got)
	c.sent(p, operands, got)
	if c.name == "git checkout" && (got.has("--") || slices.ContainsFunc(operands, func(o word) bool { return o.text == "." })) {
		c.high("drops changes that are in no commit", doesDelete)
	}
	if c.risk.Level() < p.risk.Level() {
		c.raise(p.risk, riskReason(p))
	}
}

// sent judges what is only known when a program of the network runs: it may be data that leaves by this way.
func (c *call) sent(p program, operands []word, got optionsGiven) {
	if !slices.Contains(p.effects, doesNetwork) {
		return
	}
	for _, o := range got.all {
		operands = append(operands, o.value)
	}
	if slices.ContainsFunc(operands, func(o word) bool { return o.dynamic }) {
		c.high("sends what is only known when it runs", doesDynamic)
	}
}

func riskReason(p program) string {
	var all []string
	for _, e := range p.effects {
		all = append(all, effectWords[e])
	}
	if len(all) == 0 {
		return "does more than read"
	}
	return strings.Join(all, ", ")
}

// effectWords say what each effect means.
var effectWords = map[string]string{
	doesRead: "reads what may not be meant for the transcript", doesWrite: "writes", doesDelete: "deletes", doesExec: "runs other code",
	doesNetwork: "uses the network", doesPublish: "changes what others see", doesPrivilege: "changes the system, or gains rights",
	doesSecret: "touches credentials", doesPersist: "changes what later commands do", doesDynamic: "runs what is only known then",
}

// verb finds the verb of programs such as git and go, and judges by that.
func (c *call) verb(p program, args []word) {
	rest, got := c.options(p, args)
	if got.harmless {
		return
	}
	if len(rest) == 0 {
		if p.risk != agent.RiskLow {
			c.raise(p.risk, riskReason(p), p.effects...)
		}
		return
	}
	if !rest[0].known() {
		c.high("its verb is only known when it runs", doesDynamic)
		return
	}
	next, ok := programs()[c.name+" "+rest[0].text]
	if !ok {
		c.high(rest[0].text+" is not known here", doesExec)
		return
	}
	c.name += " " + rest[0].text
	c.judgeProgram(next, rest[1:])
}

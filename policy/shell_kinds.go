package policy

import (
	"regexp"
	"slices"
	"strings"

	"belay/agent"
)

// kind says how a program's operands are to be read.
type kind string

// The kinds, as the table names them.
const (
	kindText    kind = "text"    // operands are not paths
	kindPrint   kind = "print"   // as text, and prints its operands
	kindTest    kind = "test"    // as text, and evaluates some of its operands
	kindRead    kind = "read"    // operands are paths that are read
	kindPattern kind = "pattern" // the first operand is a pattern, the others are read
	kindFilter  kind = "filter"  // the first operand is a program of jq's kind, the others are read
	kindWrite   kind = "write"   // operands are paths that are written
	kindDelete  kind = "delete"  // operands are paths that are removed
	kindCopy    kind = "copy"    // the last operand is written, the others are read
	kindMove    kind = "move"    // operands are written
	kindLink    kind = "link"    // the last operand is written, the others are what it leads to
	kindInOut   kind = "inout"   // the first operand is read, the second written
	kindMode    kind = "mode"    // the first operand is a file mode, the others are written
	kindRev     kind = "rev"     // operands are revisions, or paths that are read
	kindRun     kind = "run"     // runs what the project defines
	kindLaunch  kind = "launch"  // as run; what follows the first operand is not its own
	kindMake    kind = "make"    // as run, with variables among the operands
	kindSQL     kind = "sql"     // sends statements to a database
	kindURL     kind = "url"     // operands are addresses
	kindKube    kind = "kube"    // operands name objects of a cluster
	kindNames   kind = "names"   // operands are names of variables that are set
	kindVars    kind = "vars"    // prints variables when nothing is said
	kindCd      kind = "cd"      // changes the folder
	kindSed     kind = "sed"
	kindAwk     kind = "awk"
	kindDD      kind = "dd"
	kindTar     kind = "tar"
	kindShell   kind = "shell"  // runs a shell script
	kindInline  kind = "inline" // runs a script of another language
	kindEval    kind = "eval"   // runs its operands as a script, in this shell
	kindSource  kind = "source" // runs a file, in this shell
	kindTrap    kind = "trap"
	kindAlias   kind = "alias"
	kindVerbs   kind = "verbs"    // its first operand is a verb, which has a line of its own
	kindWrap    kind = "wrap"     // runs its operands as a command
	kindWrapOne kind = "wrap-one" // as wrap, after one operand of its own
	kindEnv     kind = "env"
	kindXargs   kind = "xargs"
	kindFind    kind = "find"
)

// stops says whether options end at the first operand.
func (k kind) stops() bool {
	switch k {
	case kindPrint, kindLaunch, kindShell, kindInline, kindVerbs, kindEval, kindSource, kindTrap:
		return true
	}
	return k.wraps()
}

// wraps says whether the program runs another one that stands among its operands.
func (k kind) wraps() bool {
	switch k {
	case kindWrap, kindWrapOne, kindEnv, kindXargs, kindFind:
		return true
	}
	return false
}

// operands judges a command's operands by the program's kind.
func (c *call) operands(p program, ops []word, got optionsGiven) {
	switch p.kind {
	case kindText:
	case kindPrint:
		c.shown(ops)
	case kindTest:
		for _, o := range ops {
			if hidesCommand(o.text) {
				c.high("evaluates "+o.text+", which runs a command", doesDynamic, doesExec)
			}
		}
	case kindRead, kindWrite, kindDelete:
		c.touchAll(ops, usesOf(p.kind, got))
	case kindPattern, kindFilter:
		c.filter(p, ops, got)
	case kindCopy, kindMove, kindLink:
		c.copies(p, ops, got)
	case kindInOut:
		c.touchAll(ops[:min(1, len(ops))], useRead)
		c.touchAll(ops[min(1, len(ops)):], useWrite)
	case kindMode:
		c.mode(ops)
	case kindRev:
		c.revisions(ops, got)
	case kindRun, kindLaunch, kindMake:
		c.project(p, ops, got)
	case kindNames, kindVars:
		c.variables(p, ops, got)
	case kindCd:
		c.changeFolder(ops)
	case kindSQL:
		c.sql(ops, got)
	case kindURL:
		c.urls(ops, got)
	case kindKube:
		for _, o := range ops {
			if strings.HasPrefix(o.text, "secret") || o.dynamic {
				c.high("may read secrets of a cluster", doesSecret)
			}
		}
	default:
		c.scripts(p, ops, got)
	}
}

// scripts judges operands that are programs themselves.
func (c *call) scripts(p program, ops []word, got optionsGiven) {
	switch p.kind {
	case kindSed:
		c.sed(ops, got)
	case kindAwk:
		c.awk(ops, got)
	case kindDD:
		c.dd(ops)
	case kindTar:
		c.tar(ops, got)
	case kindShell:
		c.shell(ops, got)
	case kindInline:
		c.inline(ops, got)
	case kindEval:
		c.eval(ops)
	case kindSource:
		if len(ops) > 0 {
			c.script(ops[0])
		}
	case kindTrap:
		if len(ops) > 1 && ops[0].text != "-" {
			c.text(ops[0], c.f)
		}
	case kindAlias:
		for _, o := range ops {
			if i := strings.IndexByte(o.text, '='); i >= 0 {
				c.text(o.cut(i+1), c.f)
			}
		}
	default:
		c.high("is not known here", doesExec)
	}
}

func usesOf(k kind, got optionsGiven) use {
	switch {
	case k == kindDelete:
		return useDelete
	case k == kindWrite, got.inPlace:
		return useWrite
	}
	return useRead
}

func (c *call) touchAll(ops []word, u use) {
	for _, o := range ops {
		if strings.HasPrefix(o.text, "+") && u == useRead && strings.Trim(o.text, "+0123456789") != "" {
			c.high("argument " + o.text + " may run a program")
		}
		c.touch(o, u)
	}
}

// shown judges what a command prints.
func (c *call) shown(ops []word) {
	for _, o := range ops {
		if o.shows {
			c.raise(agent.RiskMedium, "prints a variable of the environment, which may hold a credential", doesRead)
		}
	}
}

// readsEnvironment finds what in a filter of jq's kind reaches beyond its input.
var readsEnvironment = regexp.MustCompile(`\benv\b|\$ENV|\bload|\binput_filename\b|\bstrenv\b|\bsystem\b`)

func (c *call) filter(p program, ops []word, got optionsGiven) {
	given := got.has("-e", "-f", "--regexp", "--file", "--from-file") && p.kind == kindPattern || got.has("-f", "--from-file")
	if !given && len(ops) > 0 {
		if p.kind == kindFilter && (!ops[0].known() || readsEnvironment.MatchString(ops[0].text)) {
			c.raise(agent.RiskMedium, "its filter may read the environment", doesRead)
		}
		ops = ops[1:]
	}
	c.touchAll(ops, usesOf(p.kind, got))
}

// revisions judges operands that are revisions ("main..work", "HEAD:file") unless they look like paths.
func (c *call) revisions(ops []word, got optionsGiven) {
	for _, o := range ops {
		_, inside, _ := strings.Cut(o.text, ":")
		switch {
		case secret(o.text) || secret(inside):
			c.high("reads "+o.text+", which may hold credentials", doesSecret)
		case got.has("--no-index"), strings.HasPrefix(o.text, "/"), strings.HasPrefix(o.text, "./"), strings.HasPrefix(o.text, "../"), strings.HasPrefix(o.text, "~"):
			c.touch(o, useRead)
		case strings.Contains(o.text, "::"):
			c.high("an address that runs a program", doesExec)
		}
	}
}

// outward are words in the names of targets and scripts that change what others see.
var outward = []string{"publish", "deploy", "release", "push", "upload", "install", "uninstall"}

// project judges a program that runs what the project defines.
func (c *call) project(p program, ops []word, got optionsGiven) {
	for _, o := range ops {
		name, value, assigns := strings.Cut(o.text, "=")
		if assigns && p.kind == kindMake {
			c.within(func() { c.w.variable(name, word{text: value, dynamic: o.dynamic}, c.at) })
			c.outside(o.cut(len(o.text) - len(value)))
		}
		for part := range strings.FieldsFuncSeq(o.text, func(r rune) bool { return strings.ContainsRune(":_-./", r) }) {
			if slices.Contains(outward, part) && !strings.ContainsAny(o.text, "/.") {
				c.high(o.text+" looks like it changes what others see", doesPublish)
			}
		}
		if strings.Contains(o.text, "@") && strings.HasPrefix(c.name, "go ") {
			c.high("runs a module of the network", doesNetwork, doesExec)
		}
		if strings.Contains(o.text, "://") {
			c.raise(agent.RiskHigh, "uses an address: "+o.text, doesNetwork)
			continue
		}
		c.outside(o)
	}
	for _, o := range got.all {
		if p.kind == kindMake && slices.Contains([]string{"-f", "--file", "--makefile"}, o.name) {
			c.script(o.value)
		}
		if strings.Contains(o.value.text, "toolexec") || strings.Contains(o.value.text, "extld") {
			c.high("option "+o.name+" runs a program", doesExec)
		}
		c.outside(o.value)
	}
}

// variables judges names of variables that are set or unset, and what prints them all.
func (c *call) variables(p program, ops []word, got optionsGiven) {
	if p.kind == kindVars {
		if len(ops) == 0 && len(got.all) == 0 {
			c.raise(agent.RiskMedium, "prints variables, which may hold credentials", doesRead)
		}
		return
	}
	for _, o := range ops {
		name, _, _ := strings.Cut(o.text, "[")
		if !o.known() || decidesPrograms(name) || runsItsValue(name) || name == "HISTFILE" || name != o.text {
			c.high("changes "+o.text+", which may decide what later programs do", doesPersist)
		}
	}
}

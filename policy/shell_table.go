package policy

import (
	_ "embed" // programs.tsv
	"strings"
	"sync"

	"belay/agent"
)

// programsTSV is the table of known programs; its head says how to read it.
//
//go:embed programs.tsv
var programsTSV string

// program is what the table says of a program, or of one of its verbs ("git log").
type program struct {
	kind    kind
	risk    agent.Risk
	effects []string
	options map[string]optionForm
	any     bool // options that are not listed raise nothing
}

// optionForm says what an option means.
type optionForm byte

const (
	optionPlain    optionForm = 0
	optionValue    optionForm = '=' // has a value
	optionAttached optionForm = '~' // may have a value in the same word
	optionReads    optionForm = '<' // has a value, a path that is read
	optionWrites   optionForm = '>' // has a value, a path that is written
	optionFolder   optionForm = '@' // has a value, the folder to work in
	optionInPlace  optionForm = '*' // makes the operands written; may have a value in the same word
	optionHarmless optionForm = '_' // makes the command do nothing: a dry run, a version
	optionHigh     optionForm = '!' // runs a program, writes, or takes a guard away
)

func (o optionForm) takesNext() bool { return strings.IndexByte("=<>@", byte(o)) >= 0 }

// dangerous says whether an option that is only known when the command runs could do harm.
func (p program) dangerous() bool {
	for _, form := range p.options {
		switch form {
		case optionHigh, optionWrites, optionInPlace:
			return true
		}
	}
	return false
}

// option finds an option and its whole name by the name given, a long one also by its beginning, as getopt does. Where a
// beginning fits several the worst of them counts.
func (p program) option(given string) (name string, form optionForm, ok bool) {
	if form, ok := p.options[given]; ok {
		return given, form, true
	}
	if !strings.HasPrefix(given, "--") || len(given) == 2 {
		return given, optionPlain, false
	}
	for _, known := range names(p.options) {
		if strings.HasPrefix(known, given) && (!ok || worseOption(form, p.options[known]) != form) {
			name, form, ok = known, p.options[known], true
		}
	}
	return name, form, ok
}

func worseOption(a, b optionForm) optionForm {
	const order = "\x00_~=@<>*!"
	if strings.IndexByte(order, byte(b)) > strings.IndexByte(order, byte(a)) {
		return b
	}
	return a
}

// programs is the table, read once.
var programs = sync.OnceValue(func() map[string]program { return readPrograms(programsTSV) })

// readPrograms reads the table. A line that can't be read gives programs of no kind, which count as unknown.
func readPrograms(tsv string) map[string]program {
	table := map[string]program{}
	for line := range strings.Lines(tsv) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := append(strings.Split(line, "\t"), "", "", "", "")
		p := program{kind: kind(fields[1]), risk: agent.Risk(fields[2]), options: map[string]optionForm{}}
		if fields[3] != "-" && fields[3] != "" {
			p.effects = strings.Split(fields[3], ",")
		}
		for token := range strings.FieldsSeq(fields[4]) {
			p.addOption(token)
		}
		for name := range strings.SplitSeq(fields[0], ",") {
			table[name] = p
		}
	}
	return table
}

// addOption reads one token of the last column: "abc" are the options -a, -b and -c, "-o>" and "--out>" one with its form.
func (p *program) addOption(token string) {
	switch {
	case token == "...":
		p.any = true
	case !strings.HasPrefix(token, "-"):
		for _, c := range token {
			p.options["-"+string(c)] = optionPlain
		}
	default:
		form := optionPlain
		if last := token[len(token)-1]; strings.IndexByte("=~<>@*_!", last) >= 0 {
			token, form = token[:len(token)-1], optionForm(last)
		}
		p.options[token] = form
	}
}

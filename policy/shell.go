package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"belay/agent"
)

// Bounds of the analysis. What is beyond one of them is of high risk.
const (
	// MaxScript is how long a script may be, in bytes.
	MaxScript = 64 << 10
	// maxOpeners bounds the brackets of a script before it is parsed: the parser has no bound of its own, and nesting without
	// end overflows its stack, which nothing can recover from. Brackets are counted, not matched: a quoted closing one
	// would hide the true depth.
	maxOpeners  = 8 << 10
	maxLevels   = 100  // of statements inside statements
	maxScripts  = 8    // of scripts inside scripts: bash -c "bash -c ..."
	maxCommands = 1000 // looked at, a loop's body once for each item
)

// The effects that a command may have, beyond reading.
const (
	doesRead      = "read"
	doesWrite     = "write"
	doesDelete    = "delete"
	doesExec      = "exec"      // runs code that is not in the script: a program of the project, an inline program
	doesNetwork   = "network"   // talks to another machine
	doesPublish   = "publish"   // changes what others see: pushes, uploads, deploys
	doesPrivilege = "privilege" // gains rights, or changes the system
	doesSecret    = "secret"    // touches what looks like a credential
	doesPersist   = "persist"   // changes what later commands do
	doesDynamic   = "dynamic"   // depends on what is only known when it runs
)

// Shell is what the analysis of a script found.
type Shell struct {
	Parsed   bool       `json:"parsed"`   // false: not bash, or beyond a bound; all else is then unknown
	Dynamic  bool       `json:"dynamic"`  // what runs, or what is written, is only known when it runs
	Risk     agent.Risk `json:"-"`        // of the whole; conditions see it, with the tool's, as risk
	Effects  []string   `json:"effects"`  // sorted: delete, dynamic, exec, network, persist, privilege, publish, read, secret, write
	Commands []Command  `json:"commands"` // simple commands, inner ones before those that hold them
	Paths    []Path     `json:"paths"`
	Hosts    []string   `json:"hosts"`    // sorted
	Findings []Finding  `json:"findings"` // why it is not of low risk, in the order of the script
}

// Command is one simple command, wrappers such as env and timeout and what they run each on their own.
type Command struct {
	Program string   `json:"program"` // without its folder; empty when it is not known
	Argv    []string `json:"argv"`    // arguments; an unknown part shows as "*"
	Effects []string `json:"effects"` // sorted
	Risk    int      `json:"risk"`    // low, medium or high
	Dynamic bool     `json:"dynamic"` // an argument is only known when it runs
}

// Finding is one reason for a script's risk.
type Finding struct {
	Risk   int    `json:"risk"` // medium or high
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Reason string `json:"reason"`
}

// String gives a finding as one line, for people.
func (f Finding) String() string {
	return fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Reason)
}

// Analyze reduces a script to facts. It assumes that the script starts in the workspace. It never fails: a script that can't
// be understood is of high risk, and one that brings the parser or the analysis to a panic counts as such.
func Analyze(script string) (found Shell) {
	defer func() {
		if broken := recover(); broken != nil {
			w := &walker{}
			w.opaque(syntax.NewPos(0, 1, 1), "the analysis broke off")
			found = w.result()
		}
	}()
	return analyze(script)
}

func analyze(script string) Shell {
	w := &walker{}
	w.script(script, &frame{dirs: []string{workspace}})
	return w.result()
}

// walker collects facts on its way through a syntax tree.
type walker struct {
	opaqueScript bool
	commands     []Command
	findings     []Finding
	paths        []Path
	effects      []string
	hosts        []string
	ran          []ranFile // files of the workspace that are run
	bodies       []string  // of the functions that are walked through, their names

	scope  scope       // what the script now walked through defines
	origin *syntax.Pos // where in the outermost script the one that is walked through stands, if it is not that itself
	depth  int         // of scripts inside scripts
	level  int         // of statements inside statements
	steps  int         // commands looked at
}

// frame is what a statement finds around it when it runs.
type frame struct {
	dirs  []string // the working folder is one of these; none: it is not known
	stdin input
}

// own gives the frame of a process of its own, which changes nothing of this one, with what it reads.
func (f *frame) own(stdin input) *frame {
	return &frame{dirs: f.dirs, stdin: stdin}
}

// maxDirs is how many possible working folders are followed.
const maxDirs = 4

// union joins what the working folder may be.
func union(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	all := slices.Clone(a)
	for _, dir := range b {
		if !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	if len(all) > maxDirs {
		return nil
	}
	return all
}

// input says where a command's standard input comes from.
type input struct {
	kind inputKind
	text string // of inputText
	file word   // of inputFile
}

type inputKind int

const (
	inputNone    inputKind = iota // nothing that the script gives
	inputText                     // a text that stands in the script
	inputFile                     // a file
	inputUnknown                  // a pipe, or a text with unknown parts
)

// script walks through a script: the given one, or one that stands in it as an argument.
func (w *walker) script(text string, f *frame) {
	at := syntax.NewPos(0, 1, 1)
	if why := unfit(text); why != "" {
		w.opaque(at, why)
		return
	}
	if w.depth++; w.depth > maxScripts {
		w.opaque(at, "scripts inside scripts, too deep to follow")
		return
	}
	defer func() { w.depth-- }()
	tree, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		w.opaque(at, "can't be parsed: "+strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	if c := doubtfulComment(tree, text); c != nil {
		w.opaque(c.Hash, "what the parser takes for a comment is not one in bash")
		return
	}
	outer := w.scope
	defer func() { w.scope = outer }()
	w.scope = w.definitions(tree)
	w.stmts(tree.Stmts, f, true)
}

// beginsWord says whether what comes after a text is sure to begin a word. A closing bracket may end an expansion, and so
// belong to the word; a backslash takes a separator's meaning away.
var beginsWord = regexp.MustCompile(`(^|(^|[^\\])[ \t\n;&|(])$`)

// doubtfulComment finds a comment that bash would not take for one: "#" begins a comment at the beginning of a word only, but
// inside brackets the parser also takes one behind a quote or an expansion, and would hide the commands after it.
func doubtfulComment(tree *syntax.File, text string) (doubtful *syntax.Comment) {
	syntax.Walk(tree, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok {
			before := text[:min(int(c.Hash.Offset()), len(text))]
			for strings.HasSuffix(before, "\\\n") {
				before = strings.TrimSuffix(before, "\\\n")
			}
			if !beginsWord.MatchString(before) {
				doubtful = c
			}
		}
		return doubtful == nil
	})
	return doubtful
}

// unfit says why a script is not given to the parser.
func unfit(text string) string {
	openers := 0
	for i := range len(text) {
		if strings.IndexByte("([{`", text[i]) >= 0 {
			openers++
		}
	}
	switch {
	case len(text) > MaxScript:
		return fmt.Sprintf("%d bytes, of which at most %d are analysed", len(text), MaxScript)
	case openers > maxOpeners:
		return fmt.Sprintf("%d brackets, of which at most %d are analysed", openers, maxOpeners)
	case strings.ContainsAny(text, "\x00\r"):
		return "holds a NUL or a carriage return, which the parser and bash read differently"
	case !utf8.ValidString(text):
		return "is not valid UTF-8"
	}
	return ""
}

// opaque records that a script, or a part of one, could not be understood.
func (w *walker) opaque(at syntax.Pos, why string) {
	w.opaqueScript = true
	w.find(at, agent.RiskHigh, why, doesDynamic)
}

// find records a reason for risk, with the effects that go with it.
func (w *walker) find(at syntax.Pos, risk agent.Risk, why string, effects ...string) {
	w.effects = append(w.effects, effects...)
	if risk == agent.RiskLow {
		return
	}
	if w.origin != nil {
		at = *w.origin
	}
	f := Finding{Risk: risk.Level(), Line: int(at.Line()), Column: int(at.Col()), Reason: why}
	if !slices.Contains(w.findings, f) {
		w.findings = append(w.findings, f)
	}
}

// result puts the facts in their lasting order.
func (w *walker) result() Shell {
	w.judgeRan()
	risk := 0
	for _, f := range w.findings {
		risk = max(risk, f.Risk)
	}
	slices.SortStableFunc(w.findings, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	slices.SortFunc(w.paths, Path.compare)
	effects := sorted(w.effects)
	return Shell{
		Parsed:   !w.opaqueScript,
		Dynamic:  slices.Contains(effects, doesDynamic),
		Risk:     []agent.Risk{agent.RiskLow, agent.RiskMedium, agent.RiskHigh}[risk],
		Effects:  effects,
		Commands: w.commands,
		Paths:    slices.Compact(w.paths),
		Hosts:    sorted(w.hosts),
		Findings: w.findings,
	}
}

// ranFile is a file that is run, and where.
type ranFile struct {
	path string
	at   syntax.Pos
}

// judgeRan finds files that are run by the script that made them: their content was never the project's.
func (w *walker) judgeRan() {
	fetches := slices.Contains(w.effects, doesNetwork)
	for _, r := range w.ran {
		made := slices.ContainsFunc(w.paths, func(p Path) bool { return p.Path == r.path && p.Write })
		if made || fetches {
			w.find(r.at, agent.RiskHigh, "runs "+r.path+", which this script may have made", doesExec, doesDynamic)
		}
	}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

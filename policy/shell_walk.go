package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"belay/agent"
)

// stmts walks through statements that run one after another. A change of folder may fail, so after the statement that
// asks for it the shell is in one of two folders, unless the script ends otherwise.
func (w *walker) stmts(list []*syntax.Stmt, f *frame, certain bool) {
	for _, s := range list {
		before := f.dirs
		if w.stmt(s, f, certain); !elseExits(s) {
			f.dirs = union(before, f.dirs)
		}
	}
}

// elseExits recognises "something || exit".
func elseExits(s *syntax.Stmt) bool {
	bin, ok := s.Cmd.(*syntax.BinaryCmd)
	if !ok || bin.Op != syntax.OrStmt || s.Background {
		return false
	}
	call, ok := bin.Y.Cmd.(*syntax.CallExpr)
	return ok && len(call.Assigns) == 0 && call.Args[0].Lit() == "exit"
}

// stmt walks through one statement. certain says that it runs before everything after it, so that what it sets holds there.
func (w *walker) stmt(s *syntax.Stmt, f *frame, certain bool) {
	if w.level++; w.level > maxLevels {
		w.opaque(s.Pos(), "statements inside statements, too deep to follow")
		w.level--
		return
	}
	defer func() { w.level-- }()
	in := f.stdin
	if s.Background || s.Coprocess || s.Disown {
		w.find(s.Pos(), agent.RiskMedium, "a background process outlives the command", doesExec)
		f, certain = f.own(in), false
	}
	for _, r := range s.Redirs {
		in = w.redirect(r, in, f)
	}
	if s.Cmd != nil {
		w.command(s.Cmd, f, in, certain)
	}
}

// command walks through a command of any kind.
func (w *walker) command(cmd syntax.Command, f *frame, in input, certain bool) {
	if call, ok := cmd.(*syntax.CallExpr); ok {
		w.simple(call, f, in, certain)
		return
	}
	if bin, ok := cmd.(*syntax.BinaryCmd); ok {
		w.binary(bin, f, in, certain)
		return
	}
	if fn, ok := cmd.(*syntax.FuncDecl); ok && certain && fn.Name != nil {
		w.scope.functions[fn.Name.Value] = true
	}
	if in.kind != inputNone { // which of the commands inside reads it is not followed
		in = input{kind: inputUnknown}
	}
	body := &frame{dirs: f.dirs, stdin: in}
	w.compound(cmd, body)
	f.dirs = union(f.dirs, body.dirs)
}

// compound walks through what holds other statements, each of which may run or not.
func (w *walker) compound(cmd syntax.Command, f *frame) {
	switch c := cmd.(type) {
	case *syntax.Subshell:
		w.stmts(c.Stmts, f.own(f.stdin), false)
	case *syntax.Block:
		w.stmts(c.Stmts, f, false)
	case *syntax.IfClause:
		for part := c; part != nil; part = part.Else {
			w.stmts(part.Cond, f, false)
			w.stmts(part.Then, f, false)
		}
	case *syntax.WhileClause:
		w.repeated(f, func() { w.stmts(c.Cond, f, false); w.stmts(c.Do, f, false) })
	case *syntax.ForClause:
		w.repeated(f, func() { w.loop(c, f) })
	case *syntax.CaseClause:
		w.inner(c.Word, f)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				w.inner(p, f)
			}
			w.stmts(item.Stmts, f, false)
		}
	case *syntax.FuncDecl:
		w.stmt(c.Body, &frame{dirs: f.dirs, stdin: input{kind: inputUnknown}}, false)
	case *syntax.DeclClause:
		w.declare(c, f)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt, f, false)
		}
	case *syntax.CoprocClause:
		w.find(c.Pos(), agent.RiskMedium, "a background process outlives the command", doesExec)
		w.stmt(c.Stmt, f.own(input{kind: inputUnknown}), false)
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		w.inner(cmd, f)
	default:
		w.opaque(cmd.Pos(), "a construct that is not analysed")
	}
}

// repeated walks through a loop, and once more where a round leaves the shell in another folder.
func (w *walker) repeated(f *frame, round func()) {
	before := f.dirs
	round()
	if after := union(before, f.dirs); len(after) > len(before) {
		f.dirs = after
		round()
		f.dirs = union(after, f.dirs)
	}
}

func (w *walker) binary(c *syntax.BinaryCmd, f *frame, in input, certain bool) {
	outer := f.stdin
	f.stdin = in
	defer func() { f.stdin = outer }()
	before := f.dirs
	switch c.Op {
	case syntax.AndStmt:
		w.stmt(c.X, f, certain)
		w.stmt(c.Y, f, false)
	case syntax.OrStmt:
		w.stmt(c.X, f, certain)
		success := f.dirs
		f.dirs = union(before, success)
		if w.stmt(c.Y, f, false); elseExits(&syntax.Stmt{Cmd: c}) {
			f.dirs = success
		} else {
			f.dirs = union(success, f.dirs)
		}
	default: // pipes
		w.stmt(c.X, f.own(in), false)
		w.stmt(c.Y, f.own(input{kind: inputUnknown}), false)
	}
}

// loop walks through a loop's body, once for each item where the items are known.
func (w *walker) loop(c *syntax.ForClause, f *frame) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		w.inner(c.Loop, f)
		w.stmts(c.Do, f, false)
		return
	}
	var items []word
	for _, item := range iter.Items {
		w.inner(item, f)
		items = append(items, w.fold(item, f)...)
	}
	name := iter.Name.Value
	if !w.scope.constant(name) || c.Select || len(items) == 0 || len(items) > maxLoopItems {
		w.stmts(c.Do, f, false)
		return
	}
	for _, item := range items {
		w.scope.constants[name] = item
		w.stmts(c.Do, f, false)
	}
	delete(w.scope.constants, name)
}

// maxLoopItems is up to how many items a loop's body is looked at with each of them.
const maxLoopItems = 16

// simple walks through a simple command: its assignments and what it runs.
func (w *walker) simple(c *syntax.CallExpr, f *frame, in input, certain bool) {
	for _, a := range c.Assigns {
		if a.Name.Value == "IFS" && len(c.Args) > 0 && c.Args[0].Lit() == "read" {
			continue // only for reading this line
		}
		w.assign(a, f, certain && len(c.Args) == 0)
	}
	var words []word
	for _, arg := range c.Args {
		w.inner(arg, f)
		words = append(words, w.fold(arg, f)...)
	}
	if len(words) == 0 {
		return
	}
	w.run(words, f, in)
}

// assign walks through one assignment and judges the variable's name.
func (w *walker) assign(a *syntax.Assign, f *frame, certain bool) {
	if a.Index != nil {
		w.inner(a.Index, f)
	}
	if a.Array != nil {
		w.inner(a.Array, f)
	}
	value := word{dynamic: true, text: "*"}
	if a.Value != nil {
		w.inner(a.Value, f)
		value = w.foldParts(a.Value.Parts, a.Value.Pos(), f)
	}
	if a.Name == nil { // declare "$x"
		w.declared(value)
		return
	}
	if !a.Naked {
		w.variable(a.Name.Value, value, a.Pos())
	}
	if certain && w.scope.constant(a.Name.Value) && !value.dynamic && a.Value != nil {
		w.scope.constants[a.Name.Value] = value
	}
}

func (w *walker) declare(c *syntax.DeclClause, f *frame) {
	if len(c.Args) == 0 {
		w.find(c.Pos(), agent.RiskMedium, c.Variant.Value+": prints variables, which may hold credentials", doesRead)
	}
	for _, a := range c.Args {
		w.assign(a, f, false)
	}
}

// declared judges an argument of declare, export and the like that is not an assignment by its form: an option, or a text
// that only becomes one when it runs.
func (w *walker) declared(value word) {
	name, text, assigns := strings.Cut(value.text, "=")
	switch {
	case value.lead == "" && value.dynamic:
		w.find(value.at, agent.RiskHigh, "sets a variable whose name is not known", doesDynamic)
	case assigns:
		w.variable(name, literal(text, value.at), value.at)
	case strings.HasPrefix(value.lead, "-") && strings.ContainsAny(value.lead, "p"):
		w.find(value.at, agent.RiskMedium, "prints variables, which may hold credentials", doesRead)
	}
}

// variable judges that a variable is set.
func (w *walker) variable(name string, value word, at syntax.Pos) {
	switch {
	case decidesPrograms(name):
		w.find(at, agent.RiskHigh, "sets "+name+", which decides what later programs do", doesPersist, doesExec)
	case runsItsValue(name) && (!value.known() || !compiler(value.text)):
		w.find(at, agent.RiskHigh, "sets "+name+", whose value is run as a program", doesExec)
	case strings.Contains(value.text, "toolexec") || strings.HasSuffix(name, "FLAGS") && strings.Contains(value.text, "exec"):
		w.find(at, agent.RiskHigh, "sets "+name+" to options that run a program", doesExec)
	}
}

// redirect judges one redirection and gives the command's input after it.
func (w *walker) redirect(r *syntax.Redirect, in input, f *frame) input {
	w.inner(r.Word, f)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		w.inner(r.Hdoc, f)
		return w.text(r.Hdoc, f, r.Word)
	case syntax.WordHdoc:
		return w.text(r.Word, f, nil)
	}
	targets := w.fold(r.Word, f)
	target := targets[0]
	if len(targets) > 1 {
		target = word{text: "*", dynamic: true, at: target.at}
	}
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		if strings.Trim(target.text, "0123456789-") == "" {
			return in
		}
		w.file(target, useWrite, f)
		return in
	case syntax.RdrIn:
		w.file(target, useRead, f)
		return input{kind: inputFile, file: target}
	}
	w.file(target, useWrite, f)
	return in
}

// text is a text of the script as a command's input: known where nothing in it is expanded.
func (w *walker) text(x *syntax.Word, f *frame, delimiter *syntax.Word) input {
	if x == nil {
		return input{kind: inputText}
	}
	if delimiter == nil { // <<< word
		if got := w.foldParts(x.Parts, x.Pos(), f); got.known() {
			return input{kind: inputText, text: got.text + "\n"}
		}
		return input{kind: inputUnknown}
	}
	var all strings.Builder
	for _, part := range x.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return input{kind: inputUnknown}
		}
		all.WriteString(lit.Value)
	}
	quoted := delimiter.Lit() == "" || strings.Contains(delimiter.Lit(), "\\")
	if !quoted && strings.Contains(all.String(), "\\") {
		return input{kind: inputUnknown}
	}
	return input{kind: inputText, text: all.String()}
}

// inner walks through the statements that a word or an expression holds, and judges what it evaluates itself.
func (w *walker) inner(n syntax.Node, f *frame) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.stmts(n.Stmts, f.own(f.stdin), false)
			return false
		case *syntax.ProcSubst:
			in := f.stdin
			if n.Op != syntax.CmdIn {
				in = input{kind: inputUnknown}
			}
			w.stmts(n.Stmts, f.own(in), false)
			return false
		case *syntax.ParamExp:
			w.expansion(n)
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause:
			w.arithmetic(n)
		case *syntax.BinaryTest:
			if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr {
				w.arithmetic(n)
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
				w.arithmetic(n)
			}
		}
		return true
	})
}

// expansion judges the expansions that do more than give a value.
func (w *walker) expansion(p *syntax.ParamExp) {
	switch {
	case p.Exp != nil && p.Exp.Op == syntax.OtherParamOps:
		w.find(p.Pos(), agent.RiskHigh, "an expansion that may run what a variable holds", doesDynamic)
	case p.Excl:
		w.find(p.Pos(), agent.RiskMedium, "reads a variable whose name is not known", doesDynamic)
	case p.Exp != nil && p.Param != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull):
		w.variable(p.Param.Value, word{dynamic: true}, p.Pos())
	case p.Index != nil || p.Slice != nil:
		w.arithmetic(p)
	}
}

// arithmetic judges an expression: a variable in it is evaluated as an expression again, and that may run commands.
func (w *walker) arithmetic(n syntax.Node) {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		word, ok := n.(*syntax.Word)
		found = found || ok && strings.Trim(word.Lit(), "0123456789") != "" || ok && word.Lit() == "" && !numeric(word)
		return !found
	})
	if found {
		w.find(n.Pos(), agent.RiskMedium, "arithmetic on a variable, which may hold a command")
	}
}

// numeric says whether a word is a special parameter that is always a number, or a length.
func numeric(x *syntax.Word) bool {
	if len(x.Parts) != 1 {
		return false
	}
	p, ok := x.Parts[0].(*syntax.ParamExp)
	return ok && (p.Length || p.Param != nil && (p.Param.Value == "#" || p.Param.Value == "?" || p.Param.Value == "$"))
}

package policy

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"belay/agent"
)

// stmts walks through statements that run one after another. A change of folder may fail, so after the statement that
// asks for it the shell is in one of two folders, unless the script ends otherwise.
func (w *walker) stmts(list []*syntax.Stmt, f *frame, certain bool) {
	for _, s := range list {
		before := f.dirs
		known := maps.Clone(w.scope.constants)
		if w.stmt(s, f, certain); !elseExits(s) {
			f.dirs = union(before, f.dirs)
		}
		w.forget(known, settled(s))
	}
}

// branch walks through statements that may run or not, so that what they set is not known after them.
func (w *walker) branch(list []*syntax.Stmt, f *frame) {
	known := maps.Clone(w.scope.constants)
	w.stmts(list, f, false)
	w.forget(known, nil)
}

// forget drops the variables that became known since, but for those named.
func (w *walker) forget(known map[string]word, but []string) {
	maps.DeleteFunc(w.scope.constants, func(name string, _ word) bool {
		_, before := known[name]
		return !before && !slices.Contains(but, name)
	})
}

// settled names the variables that a statement sets in any case.
func settled(s *syntax.Stmt) (names []string) {
	if s.Background {
		return nil
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		for _, a := range c.Assigns {
			if len(c.Args) == 0 {
				names = append(names, a.Name.Value)
			}
		}
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
			return settled(c.X)
		}
	}
	return names
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

// stmt walks through one statement. certain says that it runs, in this shell, before everything after it.
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
		w.simple(call, f, in)
		return
	}
	if bin, ok := cmd.(*syntax.BinaryCmd); ok {
		w.binary(bin, f, in, certain)
		return
	}
	if fn, ok := cmd.(*syntax.FuncDecl); ok && certain {
		w.scope.functions[functionName(fn)] = true
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
		w.branch(c.Stmts, f.own(f.stdin))
	case *syntax.Block:
		w.stmts(c.Stmts, f, false)
	case *syntax.IfClause:
		for part := c; part != nil; part = part.Else {
			w.stmts(part.Cond, f, false)
			w.branch(part.Then, f)
		}
	case *syntax.WhileClause:
		w.repeated(f, func() { w.stmts(c.Cond, f, false); w.branch(c.Do, f) })
	case *syntax.ForClause:
		w.repeated(f, func() { w.loop(c, f) })
	case *syntax.CaseClause:
		w.inner(c.Word, f)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				w.inner(p, f)
			}
			w.branch(item.Stmts, f)
		}
	case *syntax.FuncDecl:
		w.bodies = append(w.bodies, functionName(c))
		w.branch([]*syntax.Stmt{c.Body}, &frame{dirs: f.dirs, stdin: input{kind: inputUnknown}})
		w.bodies = w.bodies[:len(w.bodies)-1]
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

// functionName is empty for a function without a name, which only other dialects know.
func functionName(fn *syntax.FuncDecl) string {
	if fn.Name == nil {
		return ""
	}
	return fn.Name.Value
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
		known := maps.Clone(w.scope.constants)
		w.stmt(c.X, f, certain)
		w.forget(known, settled(c.X))
		success := f.dirs
		f.dirs = union(before, success)
		if w.stmt(c.Y, f, false); elseExits(&syntax.Stmt{Cmd: c}) {
			f.dirs = success
		} else {
			f.dirs = union(success, f.dirs)
		}
	default: // pipes
		w.branch([]*syntax.Stmt{c.X}, f.own(in))
		w.branch([]*syntax.Stmt{c.Y}, f.own(input{kind: inputUnknown}))
	}
}

// loop walks through a loop's body, once for each item where the items are known.
func (w *walker) loop(c *syntax.ForClause, f *frame) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		w.inner(c.Loop, f)
		w.branch(c.Do, f)
		return
	}
	var items []word
	for _, item := range iter.Items {
		w.inner(item, f)
		items = append(items, w.fold(item, f)...)
	}
	name := iter.Name.Value
	if !w.scope.constant(name) || c.Select || len(items) == 0 || len(items) > maxLoopItems {
		w.branch(c.Do, f)
		return
	}
	for _, item := range items {
		w.scope.constants[name] = item
		w.branch(c.Do, f)
	}
	delete(w.scope.constants, name)
}

// maxLoopItems is up to how many items a loop's body is looked at with each of them.
const maxLoopItems = 16

// simple walks through a simple command: its assignments and what it runs.
func (w *walker) simple(c *syntax.CallExpr, f *frame, in input) {
	for _, a := range c.Assigns {
		if a.Name.Value == "IFS" && len(c.Args) > 0 && c.Args[0].Lit() == "read" {
			continue // only for reading this line
		}
		w.assign(a, f, len(c.Args) == 0)
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

package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"belay/agent"
)

// redirect judges one redirection and gives the command's input after it.
func (w *walker) redirect(r *syntax.Redirect, in input, f *frame) input {
	w.inner(r.Word, f)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil { // not empty
			w.inner(r.Hdoc, f)
		}
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
	got := w.foldParts(x.Parts, x.Pos(), f)
	if got.shows {
		w.find(x.Pos(), agent.RiskMedium, "passes on a variable of the environment, which may hold a credential", doesRead)
	}
	if delimiter == nil { // <<< word
		if got.known() {
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
			w.branch(n.Stmts, f.own(f.stdin))
			return false
		case *syntax.ProcSubst:
			in := f.stdin
			if n.Op != syntax.CmdIn {
				in = input{kind: inputUnknown}
			}
			w.branch(n.Stmts, f.own(in))
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
	found, hidden := false, false
	syntax.Walk(n, func(n syntax.Node) bool {
		word, ok := n.(*syntax.Word)
		hidden = hidden || ok && hidesCommand(w.foldParts(word.Parts, word.Pos(), &frame{}).text)
		found = found || ok && strings.Trim(word.Lit(), "0123456789") != "" || ok && word.Lit() == "" && !numeric(word)
		return true
	})
	if hidden {
		w.find(n.Pos(), agent.RiskHigh, "evaluates a text that runs a command", doesDynamic, doesExec)
	}
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

package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope is what a script defines by itself.
type scope struct {
	constants map[string]word // variables whose value is known here
	assigned  map[string]int  // how often each variable is set anywhere in the script
	unsettled bool            // something may set variables that can't be seen
	functions map[string]bool // defined by now, whatever happens
}

// sets says whether the script itself gives a variable its value.
func (s scope) sets(name string) bool { return s.assigned[name] > 0 }

// constant says whether a variable has one value only, once it is set.
func (s scope) constant(name string) bool { return !s.unsettled && s.assigned[name] == 1 }

// definitions looks through a script for everything that sets a variable, so that a variable counts as
// known only where nothing else can change it.
func (w *walker) definitions(tree *syntax.File) scope {
	w.scope = scope{} // nothing of the script around this one holds in it
	s := scope{constants: map[string]word{}, assigned: map[string]int{}, functions: map[string]bool{}}
	syntax.Walk(tree, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				s.assigned[n.Name.Value]++
			}
			if n.Append || n.Index != nil || n.Array != nil || n.Name == nil {
				s.unsettled = true
			}
		case *syntax.WordIter:
			s.assigned[n.Name.Value]++
		case *syntax.ParamExp:
			if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				s.unsettled = true
			}
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			s.countArithmetic(n)
		case *syntax.CoprocClause:
			name := "COPROC"
			if n.Name != nil {
				name = n.Name.Lit()
			}
			s.assigned[name] += 2
			s.assigned[name+"_PID"] += 2
		case *syntax.Redirect:
			if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
				s.unsettled = true
			}
		case *syntax.CallExpr:
			w.countBuiltin(&s, n)
		}
		return true
	})
	return s
}

// countArithmetic takes every name in arithmetic as set by it.
func (s *scope) countArithmetic(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if word, ok := n.(*syntax.Word); ok {
			s.assigned[word.Lit()]++
		}
		return true
	})
}

// countBuiltin notices the commands that set variables.
func (w *walker) countBuiltin(s *scope, call *syntax.CallExpr) {
	if len(call.Args) == 0 {
		return
	}
	args := make([]word, 0, len(call.Args))
	for _, a := range call.Args {
		args = append(args, w.foldParts(a.Parts, a.Pos(), &frame{}))
	}
	switch name := args[0]; {
	case !name.known(), slices.Contains(variableSetters, name.text):
		s.unsettled = true
	case name.text == "printf":
		s.unsettled = s.unsettled || len(args) > 1 && (strings.HasPrefix(args[1].lead, "-") || args[1].lead == "" && !args[1].known())
	case name.text == "read":
		for _, a := range args[1:] {
			s.assigned[a.text] += 2
			s.unsettled = s.unsettled || !a.known()
		}
	}
}

// variableSetters are the builtins that set variables in ways that are not followed.
var variableSetters = []string{"eval", "source", ".", "trap", "alias", "mapfile", "readarray", "getopts", "unset", "builtin", "command", "wait"}

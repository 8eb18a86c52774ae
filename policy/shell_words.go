package policy

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxBraces bounds what one word's braces may expand to.
const maxBraces = 64

// word is what can be known of a shell word before it is expanded.
type word struct {
	text    string // with "*" for every part that is not known
	lead    string // text before the first unknown part or wildcard
	dynamic bool   // a part of it is only known when it runs
	glob    bool   // it holds a wildcard, so it may become many words
	shows   bool   // it holds a variable that the script did not set
	at      syntax.Pos
}

func literal(text string, at syntax.Pos) word { return word{text: text, lead: text, at: at} }

func (w word) known() bool { return !w.dynamic && !w.glob }

// add appends a known text.
func (w *word) add(text string) {
	if w.known() {
		w.lead += text
	}
	w.text += text
}

// cut gives the word from its i-th byte on.
func (w word) cut(i int) word {
	i = min(i, len(w.text))
	w.text = w.text[i:]
	w.lead = w.lead[min(i, len(w.lead)):]
	return w
}

// fold gives the words that a shell word stands for, after brace expansion.
func (w *walker) fold(x *syntax.Word, f *frame) []word {
	split := *x
	if !syntax.SplitBraces(&split) {
		return []word{w.foldParts(x.Parts, x.Pos(), f)}
	}
	expanded, ok := expandBraces(split.Parts)
	if !ok {
		return []word{{text: "*", dynamic: true, at: x.Pos()}}
	}
	words := make([]word, 0, len(expanded))
	for _, parts := range expanded {
		words = append(words, w.foldParts(parts, x.Pos(), f))
	}
	return words
}

// expandBraces gives the lists of parts that the braces among them stand for; false when they are too many.
func expandBraces(parts []syntax.WordPart) ([][]syntax.WordPart, bool) {
	all := [][]syntax.WordPart{nil}
	for _, part := range parts {
		brace, ok := part.(*syntax.BraceExp)
		if !ok {
			for i := range all {
				all[i] = append(slices.Clip(all[i]), part)
			}
			continue
		}
		var next [][]syntax.WordPart
		for _, elem := range brace.Elems {
			tails, ok := expandBraces(elem.Parts)
			if !ok || brace.Sequence || len(all)*len(tails)+len(next) > maxBraces {
				return nil, false
			}
			for _, head := range all {
				for _, tail := range tails {
					next = append(next, slices.Concat(head, tail))
				}
			}
		}
		all = next
	}
	return all, true
}

func (w *walker) foldParts(parts []syntax.WordPart, at syntax.Pos, f *frame) word {
	got := word{at: at}
	for _, part := range parts {
		w.foldPart(&got, part, false, f)
	}
	if got.text == "[" { // alone it is the test command, not a wildcard
		return literal("[", at)
	}
	return got
}

func (w *walker) foldPart(got *word, part syntax.WordPart, quoted bool, f *frame) {
	switch p := part.(type) {
	case *syntax.Lit:
		foldLiteral(got, p.Value, quoted)
	case *syntax.SglQuoted:
		text, ok := p.Value, true
		if p.Dollar {
			text, ok = unescapeANSI(p.Value)
		}
		if got.add(text); !ok {
			got.unknown()
		}
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			w.foldPart(got, inner, true, f)
		}
	case *syntax.ParamExp:
		w.foldParam(got, p, quoted, f)
	case *syntax.ProcSubst:
		got.add("/dev/fd/63")
	case *syntax.ExtGlob:
		got.glob = true
		got.text += "*"
	default: // command substitution, arithmetic
		if sub, ok := part.(*syntax.CmdSubst); ok && printsFolder(sub) && len(f.dirs) == 1 {
			got.add(f.dirs[0])
			return
		}
		got.unknown()
	}
}

// printsFolder recognises $(pwd).
func printsFolder(s *syntax.CmdSubst) bool {
	if len(s.Stmts) != 1 || len(s.Stmts[0].Redirs) > 0 {
		return false
	}
	call, ok := s.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(call.Assigns) == 0 && len(call.Args) == 1 && call.Args[0].Lit() == "pwd"
}

func (w *word) unknown() {
	w.dynamic = true
	w.text += "*"
}

// foldLiteral takes backslashes out and notices wildcards.
func foldLiteral(got *word, s string, quoted bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0):
			if i++; s[i] != '\n' {
				got.add(s[i : i+1])
			}
		case !quoted && (c == '*' || c == '?' || c == '['):
			got.glob = true
			got.text += string(c)
		default:
			got.add(s[i : i+1])
		}
	}
}

// foldParam puts in what is known of a variable.
func (w *walker) foldParam(got *word, p *syntax.ParamExp, quoted bool, f *frame) {
	if !bare(p) {
		got.shows = got.shows || p.Param == nil || !w.scope.sets(p.Param.Value)
		got.unknown()
		return
	}
	name := p.Param.Value
	value, constant := w.scope.constants[name]
	switch {
	case constant && (quoted || !strings.ContainsAny(value.text, " \t\n*?[") || value.text == ""):
		if value.known() {
			got.add(value.text)
			return
		}
		got.glob, got.dynamic = got.glob || value.glob, got.dynamic || value.dynamic
		got.text += value.text
	case name == "HOME" && got.text == "":
		got.add("~")
	case name == "PWD" && len(f.dirs) == 1:
		got.add(f.dirs[0])
	default:
		got.shows = got.shows || !w.scope.sets(name) && !harmlessVariable(name)
		got.unknown()
	}
}

// bare says whether an expansion is nothing but a variable's value.
func bare(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Flags == nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.NestedParam == nil && p.Index == nil &&
		len(p.Modifiers) == 0 && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
}

// harmlessVariable says whether a variable holds no secret although the script does not set it.
func harmlessVariable(name string) bool {
	if _, err := strconv.Atoi(name); err == nil {
		return true
	}
	return slices.Contains([]string{
		"?", "#", "$", "!", "@", "*", "-", "_", "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "PATH", "TMPDIR", "LANG", "TERM",
		"RANDOM", "SECONDS", "LINENO", "HOSTNAME", "EUID", "UID", "PPID", "BASH_VERSION", "PIPESTATUS", "REPLY", "IFS",
	}, name)
}

// unescapeANSI reads the text between $' and '. It fails on an escape that it does not know.
func unescapeANSI(s string) (string, bool) {
	simple := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'a': '\a', 'b': '\b', 'f': '\f', 'v': '\v', 'e': 27, 'E': 27, '\\': '\\', '\'': '\'', '"': '"', '?': '?'}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if c, ok := simple[s[i]]; ok {
			b.WriteByte(c)
			continue
		}
		digits, base, most := s[i:], 8, 3
		if s[i] == 'x' {
			i++
			digits, base, most = s[i:], 16, 2
		}
		n := 0
		for n < len(digits) && n < most && isDigit(digits[n], base) {
			n++
		}
		c, err := strconv.ParseUint(digits[:n], base, 8)
		if err != nil || c == 0 {
			return b.String(), false
		}
		b.WriteByte(byte(c))
		i += n - 1
	}
	return b.String(), true
}

func isDigit(c byte, base int) bool {
	_, err := strconv.ParseUint(string(c), base, 8)
	return err == nil
}

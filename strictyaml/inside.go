package strictyaml

import (
	"regexp"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Inside makes a Problem of one character of the text that stands at path, which is of another language and so has places of
// its own: line from 1, column from 0 in characters. Where no text stands at path the Problem has no column.
func (d *Document) Inside(path string, line, column int, format string, args ...any) *Problem {
	p := d.Problem(path, format, args...)
	if n := d.places[path].value; n != nil && n.Kind == yaml.ScalarNode {
		p.Line, p.Column = position(d.source, n, line, column)
	}
	return p
}

// lineEnd is what ends a line in YAML.
var lineEnd = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")

// position finds where in its source a character of a scalar's value stands, both counted from 1. It follows the value's
// visible characters through the source, so it holds for every way to write a scalar (plain, quoted, literal, folded): what
// the source has on top, such as indentation, is passed over.
func position(source string, n *yaml.Node, line, column int) (int, int) {
	lines := lineEnd.Split(source, -1)
	at, col := n.Line-1, n.Column-1
	if at >= len(lines) { // the source is not UTF-8
		return n.Line, n.Column
	}
	chars := []rune(lines[at])
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		col = len(chars) // the text begins below its indicator
	}
	for i, want := range visible(n.Value, line, column) {
		if i > 0 {
			col++
		}
		for col >= len(chars) || chars[col] != want {
			if col++; col < len(chars) {
				continue
			}
			if at+1 >= len(lines) {
				return n.Line, n.Column
			}
			at, col = at+1, 0
			chars = []rune(lines[at])
		}
	}
	return at + 1, col + 1
}

// visible gives the characters of a text, without white space, up to the one at a position.
func visible(text string, line, column int) []rune {
	var all []rune
	atLine, atColumn := 1, 0
	for _, r := range text {
		if !unicode.IsSpace(r) {
			all = append(all, r)
			if atLine > line || atLine == line && atColumn >= column {
				break
			}
		}
		atColumn++
		if r == '\n' {
			atLine, atColumn = atLine+1, 0
		}
	}
	return all
}

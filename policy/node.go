package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// file is a rule file as it is read: its name and lines serve the error messages.
type file struct {
	name  string
	lines []string
}

// errorf is a mistake at a node: "default.yaml:12: ...".
func (f file) errorf(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", f.name, n.Line, fmt.Sprintf(format, args...))
}

// mapping gives the fields of a mapping, none of them unknown or given twice. what names the mapping in errors.
func (f file) mapping(n *yaml.Node, what string, known ...string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, f.errorf(n, "%s: %s; expected a mapping with %s", what, kindOf(n), strings.Join(known, ", "))
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !slices.Contains(known, key.Value) {
			hint := didYouMean(key.Value, known)
			if hint == "" {
				hint = "; expected one of " + strings.Join(known, ", ")
			}
			return nil, f.errorf(key, "%s: unknown field %q%s", what, key.Value, hint)
		}
		if fields[key.Value] != nil {
			return nil, f.errorf(key, "%s: %s: given twice", what, key.Value)
		}
		fields[key.Value] = value
	}
	return fields, nil
}

func (f file) sequence(n *yaml.Node, what string) ([]*yaml.Node, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, f.errorf(n, "%s: %s; expected a list", what, kindOf(n))
	}
	return n.Content, nil
}

// text gives a scalar that is a string and not blank.
func (f file) text(n *yaml.Node, what string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		return "", f.errorf(n, "%s: %s; expected a string", what, kindOf(n))
	}
	if strings.TrimSpace(n.Value) == "" {
		return "", f.errorf(n, "%s: empty; expected a string", what)
	}
	return n.Value, nil
}

func (f file) texts(n *yaml.Node, what string) ([]string, error) {
	items, err := f.sequence(n, what)
	if err != nil {
		return nil, err
	}
	all := make([]string, 0, len(items))
	for i, item := range items {
		s, err := f.text(item, fmt.Sprintf("%s[%d]", what, i))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// oneOf gives a scalar that is one of the known words.
func (f file) oneOf(n *yaml.Node, what string, known ...string) (string, error) {
	s, err := f.text(n, what)
	if err != nil {
		return "", err
	}
	if !slices.Contains(known, s) {
		return "", f.errorf(n, "%s: %q; expected one of %s", what, s, strings.Join(known, ", "))
	}
	return s, nil
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	return fmt.Sprintf("%.40q", n.Value)
}

// scalar is a YAML scalar together with the file that it stands in.
type scalar struct {
	node *yaml.Node
	file file
}

// place finds where in the file a position in the scalar's value stands: line from 1 and column from 0 in the value, both
// from 1 in the file, in characters. It follows the value's visible characters through the source, so it holds for every way
// to write a scalar (plain, quoted, literal, folded): what the source has on top, such as indentation, is passed over.
func (s scalar) place(line, column int) (int, int) {
	at := s.node.Line - 1
	source, col := []rune(s.file.lines[at]), s.node.Column-1
	if s.node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		col = len(source) // the text begins below its indicator
	}
	for i, want := range visible(s.node.Value, line, column) {
		if i > 0 {
			col++
		}
		for col >= len(source) || source[col] != want {
			if col++; col < len(source) {
				continue
			}
			if at+1 >= len(s.file.lines) {
				return s.node.Line, s.node.Column
			}
			at, col = at+1, 0
			source = []rune(s.file.lines[at])
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

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) }), " ")
}

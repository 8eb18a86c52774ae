package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"belay/agent"
)

// schema names the format of rule files and the facts of conditions; it is part of every Set's digest.
const schema = "belay-policy/1"

// maxFile bounds one rule file, in bytes.
const maxFile = 1 << 20

// Set is a checked set of rules. It never changes.
type Set struct {
	rules  []rule
	digest agent.Digest
}

// Digest names the rules: SHA-256 over the names and contents of their files, whatever order they were given in and
// whichever line ends they have.
func (s *Set) Digest() agent.Digest { return s.digest }

// rule is one rule, checked.
type rule struct {
	id        string
	effect    Effect
	condition condition
	reason    string
	reviewers []agent.UserID
	sandbox   string
	examples  []example
	at        string // file:line
}

// Load reads rule files, named by slash-separated paths in fsys, as one set. The error is of type InvalidInput, one line, and
// names file, line and what was expected there; one mistake refuses all.
func Load(fsys fs.FS, names ...string) (*Set, error) {
	files := map[string][]byte{}
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, agent.Errorf(agent.InvalidInput, "policy file %s: %w", name, err)
		}
		clean := path.Clean(name)
		if _, twice := files[clean]; twice {
			return nil, agent.Errorf(agent.InvalidInput, "policy file %s: named twice", name)
		}
		files[clean] = data
	}
	return assemble(files)
}

// Parse reads one rule file; see Load.
func Parse(name string, data []byte) (*Set, error) {
	return assemble(map[string][]byte{path.Clean(name): data})
}

func assemble(files map[string][]byte) (*Set, error) {
	if len(files) == 0 {
		return nil, agent.Errorf(agent.InvalidInput, "policy: no rule file named; expected at least one")
	}
	env, err := newEnvironment()
	if err != nil {
		return nil, fmt.Errorf("policy: environment of conditions: %w", err)
	}
	s := &Set{}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n", schema)
	for _, name := range names(files) {
		data := bytes.ReplaceAll(files[name], []byte("\r\n"), []byte("\n"))
		fmt.Fprintf(sum, "%d %s %d ", len(name), name, len(data))
		sum.Write(data)
		rules, err := parseFile(env, name, data)
		if err != nil {
			return nil, agent.Errorf(agent.InvalidInput, "%w", err)
		}
		s.rules = append(s.rules, rules...)
	}
	s.digest = agent.Digest(hex.EncodeToString(sum.Sum(nil)))
	if err := s.check(); err != nil {
		return nil, agent.Errorf(agent.InvalidInput, "%w", err)
	}
	return s, nil
}

// check finds what only shows when all rules are known: ids given twice, and conditions that err on some rule's example.
func (s *Set) check() error {
	slices.SortStableFunc(s.rules, func(a, b rule) int { return strings.Compare(a.id, b.id) })
	for i := 1; i < len(s.rules); i++ {
		if a, b := s.rules[i-1], s.rules[i]; a.id == b.id {
			return fmt.Errorf("%s: rule %q: the id is taken by the rule at %s", b.at, b.id, a.at)
		}
	}
	for _, r := range s.rules {
		for _, other := range s.rules {
			for _, e := range other.examples {
				if _, err := r.condition.holds(e.facts); err != nil {
					return fmt.Errorf("%s: rule %q: when: can't be evaluated on the example at %s: %s", r.at, r.id, e.at, oneLine(err.Error()))
				}
			}
		}
	}
	return nil
}

// parseFile reads the rules of one file.
func parseFile(env *cel.Env, name string, data []byte) ([]rule, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s:1: %d bytes; expected at most %d", name, len(data), maxFile)
	}
	f := file{name: name, lines: strings.Split(string(data), "\n")}
	root, err := f.document(data)
	if err != nil {
		return nil, err
	}
	top, err := f.mapping(root, "the file", "rules")
	if err != nil {
		return nil, err
	}
	list, ok := top["rules"]
	if !ok {
		return nil, f.errorf(root, "rules: missing; expected a list of rules")
	}
	items, err := f.sequence(list, "rules")
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, f.errorf(list, "rules: empty; expected at least one rule")
	}
	rules := make([]rule, 0, len(items))
	for _, item := range items {
		r, err := f.rule(env, item)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// document gives the root of a file that holds exactly one YAML document.
func (f file) document(data []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := d.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF), err == nil && len(doc.Content) == 0:
		return nil, fmt.Errorf("%s:1: empty; expected \"rules:\" and a list of rules", f.name)
	case err != nil:
		return nil, f.syntaxError(err)
	}
	switch err := d.Decode(&more); {
	case err == nil:
		return nil, f.errorf(&more, "a second document; expected one")
	case !errors.Is(err, io.EOF):
		return nil, f.syntaxError(err)
	}
	return doc.Content[0], nil
}

// syntaxError rewrites the YAML reader's error, whose form is "yaml: line 3: what".
func (f file) syntaxError(err error) error {
	line, what := 1, strings.TrimPrefix(oneLine(err.Error()), "yaml: ")
	if _, err := fmt.Sscanf(what, "line %d:", &line); err == nil {
		_, what, _ = strings.Cut(what, ": ")
	} else if anchor, ok := strings.CutPrefix(what, "unknown anchor '"); ok {
		anchor, _, _ = strings.Cut(anchor, "'")
		line += max(0, slices.IndexFunc(f.lines, func(l string) bool { return strings.Contains(l, "*"+anchor) }))
	}
	return fmt.Errorf("%s:%d: not YAML: %s", f.name, line, what)
}

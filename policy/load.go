package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"belay/agent"
	"belay/strictyaml"
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
	doc       *strictyaml.Document // in which it stands
	path      string               // of it there
}

// Load reads rule files, named by slash-separated paths in fsys, as one set. One mistake refuses all. The error is of type
// InvalidInput and joins a strictyaml.Problem for every mistake in the files; in a condition, it has a column.
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
	var problems []*strictyaml.Problem
	for _, name := range names(files) {
		data := bytes.ReplaceAll(files[name], []byte("\r\n"), []byte("\n"))
		fmt.Fprintf(sum, "%d %s %d ", len(name), name, len(data))
		sum.Write(data)
		rules, wrong := readFile(env, name, data)
		s.rules, problems = append(s.rules, rules...), append(problems, wrong...)
	}
	s.digest = agent.Digest(hex.EncodeToString(sum.Sum(nil)))
	if len(problems) == 0 {
		problems = s.check()
	}
	if err := strictyaml.Join(problems); err != nil {
		return nil, agent.Errorf(agent.InvalidInput, "%w", err)
	}
	return s, nil
}

// check finds what only shows when all rules are known: ids given twice, and conditions that err on some rule's example.
func (s *Set) check() (problems []*strictyaml.Problem) {
	slices.SortStableFunc(s.rules, func(a, b rule) int { return strings.Compare(a.id, b.id) })
	for i := 1; i < len(s.rules); i++ {
		if a, b := s.rules[i-1], s.rules[i]; a.id == b.id {
			problems = append(problems, b.doc.Problem(b.path+".id", "%q is taken by the rule at %s; expected an id of its own", b.id, a.doc.Place(a.path)))
		}
	}
	for _, r := range s.rules {
		if at, err := s.tryExamples(r.condition); err != nil {
			problems = append(problems, r.doc.Problem(r.path+".when", "can't be evaluated on the example at %s: %v", at, err))
		}
	}
	return problems
}

// tryExamples evaluates a condition on the examples of all rules, and gives the place of the first on which it errs.
func (s *Set) tryExamples(c condition) (at string, err error) {
	for _, r := range s.rules {
		for _, e := range r.examples {
			if _, err := c.holds(e.facts); err != nil {
				return e.at, err
			}
		}
	}
	return "", nil
}

// CheckReviewers finds the reviewers that rules name and that are not among the known. The error joins a strictyaml.Problem
// for each.
func (s *Set) CheckReviewers(known []string) error {
	var problems []*strictyaml.Problem
	for _, r := range s.rules {
		for i, who := range r.reviewers {
			if !slices.Contains(known, string(who)) {
				problems = append(problems, r.doc.Problem(reviewerPath(r.path, i), "%.40q: no such reviewer; %s", who, strictyaml.Suggest(string(who), known)))
			}
		}
	}
	return strictyaml.Join(problems)
}

// readFile reads the rules of one file.
func readFile(env *cel.Env, name string, data []byte) ([]rule, []*strictyaml.Problem) {
	if len(data) > maxFile {
		return nil, []*strictyaml.Problem{{File: name, Line: 1, Text: fmt.Sprintf("%d bytes; expected at most %d", len(data), maxFile)}}
	}
	var w writtenFile
	doc, err := strictyaml.Decode(name, data, &w)
	if err != nil {
		return nil, strictyaml.Problems(err)
	}
	r := reader{env: env, doc: doc}
	if len(w.Rules) == 0 {
		r.wrong("rules", "none; expected at least one rule")
	}
	rules := make([]rule, 0, len(w.Rules))
	for i, written := range w.Rules {
		rules = append(rules, r.rule(fmt.Sprintf("rules[%d]", i), written))
	}
	return rules, r.problems
}

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"belay/agent"
)

// Problem is one thing that is wrong with a file. Its text is one line: "file:line: path: what stands there; what was
// expected".
type Problem struct {
	File   string
	Line   int    // from 1
	Column int    // from 1, in characters; 0: the line as a whole
	Path   string // of the field, such as "limits.max_steps" or "tools[2]"; empty: the file as a whole
	Text   string
}

func (p *Problem) Error() string {
	at := fmt.Sprintf("%s:%d: ", p.File, p.Line)
	if p.Column > 0 {
		at = fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	}
	if p.Path != "" {
		at += oneLine(p.Path) + ": "
	}
	return at + oneLine(p.Text)
}

// oneLine keeps what others wrote from breaking a line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Problems gives the problems that an error joins or wraps; none: it is an error of another kind.
func Problems(err error) []*Problem {
	switch e := err.(type) {
	case *Problem:
		return []*Problem{e}
	case interface{ Unwrap() error }:
		return Problems(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*Problem
		for _, part := range e.Unwrap() {
			all = append(all, Problems(part)...)
		}
		return all
	}
	return nil
}

// Join gives problems as one error with a line for each, ordered by where they are; nil when there are none.
func Join(problems []*Problem) error {
	sorted := slices.SortedStableFunc(slices.Values(problems), func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	errs := make([]error, len(sorted))
	for i, p := range sorted {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// Within names the files of an error's problems by the folder that they stand in. Other errors stay as they are.
func Within(dir string, err error) error {
	problems := Problems(err)
	if len(problems) == 0 {
		return err
	}
	for i, p := range problems {
		moved := *p
		moved.File = path.Join(dir, p.File)
		problems[i] = &moved
	}
	return Join(problems)
}

// Suggest says which of the known words was expected instead of word, as the end of a Problem's text.
func Suggest(word string, known []string) string {
	if near := agent.Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "there are none"
	}
	return "expected one of " + strings.Join(known, ", ")
}

package strictyaml_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/strictyaml"
)

func TestProblemIsOneLine(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]strictyaml.Problem{
		"f.yaml:3: limits.max: 0; expected 1":     {File: "f.yaml", Line: 3, Path: "limits.max", Text: "0; expected 1"},
		"f.yaml:3:14: rules[0].when: no such key": {File: "f.yaml", Line: 3, Column: 14, Path: "rules[0].when", Text: "no such key"},
		"f.yaml:1: empty; expected more":          {File: "f.yaml", Line: 1, Text: "empty;\n  expected\tmore\r\n"},
		"f.yaml:1: a b: unknown field":            {File: "f.yaml", Line: 1, Path: "a\u2028b", Text: "unknown field"},
	} {
		if got := p.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestProblemsOfAnError(t *testing.T) {
	t.Parallel()
	a1, a2, b := &strictyaml.Problem{File: "a", Line: 1}, &strictyaml.Problem{File: "a", Line: 2}, &strictyaml.Problem{File: "b", Line: 1}
	other := errors.New("disk full")
	for _, tt := range []struct {
		name string
		err  error
		want []*strictyaml.Problem
	}{
		{"none", nil, nil},
		{"another error", other, nil},
		{"one", a1, []*strictyaml.Problem{a1}},
		{"one, wrapped", fmt.Errorf("load: %w", a1), []*strictyaml.Problem{a1}},
		{"joined, in order of place", strictyaml.Join([]*strictyaml.Problem{b, a2, a1}), []*strictyaml.Problem{a1, a2, b}},
		{"joined and wrapped", fmt.Errorf("load: %w", errors.Join(fmt.Errorf("x: %w", b), other, strictyaml.Join([]*strictyaml.Problem{a2, a1}))), []*strictyaml.Problem{b, a1, a2}},
	} {
		if diff := cmp.Diff(tt.want, strictyaml.Problems(tt.err)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if err := strictyaml.Join(nil); err != nil {
		t.Errorf("no problems: %v", err)
	}
}

func TestWithinNamesFilesByTheirFolder(t *testing.T) {
	t.Parallel()
	p := &strictyaml.Problem{File: "b/c.yaml", Line: 2, Text: "wrong"}
	got := strictyaml.Within("dir/a", fmt.Errorf("load: %w", p))
	if want := "dir/a/b/c.yaml:2: wrong"; got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if p.File != "b/c.yaml" {
		t.Errorf("the first problem has become one of %s", p.File)
	}
	other := errors.New("disk full")
	if strictyaml.Within("dir", other) != other || strictyaml.Within("dir", nil) != nil {
		t.Error("an error without problems has changed")
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"shel": `did you mean "shell"?`, "xyzzyplugh": "expected one of shell, read_file"} {
		if got := strictyaml.Suggest(word, []string{"shell", "read_file"}); got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
	if got := strictyaml.Suggest("shel", nil); got != "there are none" {
		t.Errorf("got %s", got)
	}
}

func TestInsideFindsCharactersInEveryStyle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, src    string
		line, column int    // of an x in the value
		want         string // line and column of the x in the source
	}{
		{"plain", "name: a = x", 1, 4, "1:11"},
		{"plain, several lines", "name: a\n  = x", 1, 4, "2:5"},
		{"quoted", `name: 'a = x'`, 1, 4, "1:12"},
		{"quoted, with escapes", `name: "\"a\" = x"`, 1, 6, "1:16"},
		{"literal", "tent: t\nname: |\n  a =\n\n    x\n", 3, 2, "5:5"},
		{"folded", "name: >-\n  a\n  =\n  x\n", 1, 4, "4:3"},
		{"wide characters", "name: 'ä世 x'", 1, 3, "1:11"},
		{"other line ends", "name: |\u0085  a\r\n  x\n", 2, 0, "3:3"},
		{"past the end", "name: a x", 1, 99, "1:9"},
		{"no text", "leader: {name: x}\nname: x", 1, 0, "2:7"},
	} {
		var c crew
		d, err := strictyaml.Decode("f.yaml", []byte(tt.src), &c)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got, want := d.Inside("name", tt.line, tt.column, "wrong").Error(), "f.yaml:"+tt.want+": name: wrong"; got != want {
			t.Errorf("%s: got %s, want %s", tt.name, got, want)
		}
	}
	var c crew
	d, err := strictyaml.Decode("f.yaml", []byte("size: 1\nleader:\n  name: x"), &c)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"leader": "f.yaml:2: leader: wrong", "leader.age": "f.yaml:2: leader.age: wrong", "name": "f.yaml:1: name: wrong"} {
		if got := d.Inside(path, 1, 0, "wrong").Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

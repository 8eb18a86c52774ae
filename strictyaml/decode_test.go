package strictyaml_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/strictyaml"
)

// crew has a field of every kind that a file can hold.
type crew struct {
	Route `yaml:",inline"`

	Name   string            `yaml:"name"`
	Size   int               `yaml:"size"`
	Share  float64           `yaml:"share"`
	Roped  bool              `yaml:"roped"`
	Leader *climber          `yaml:"leader"`
	Others []climber         `yaml:"others"`
	Colour map[string]string `yaml:"colour"`
	Notes  any               `yaml:"notes"`
	Tent   string            // "tent", as the YAML library has it
	Secret string            `yaml:"-"`
}

type Route struct {
	Grade grade `yaml:"grade"`
}

type climber struct {
	Name string `yaml:"name"`
	Age  int64  `yaml:"age"`
}

// grade is "I" to "V".
type grade int

func (g *grade) UnmarshalText(b []byte) error {
	*g = grade(strings.Index("0 I  II III IV V ", string(b)+" "))
	if *g < 1 {
		return fmt.Errorf("%.40q; expected a grade, I to V", b)
	}
	return nil
}

func TestDecode(t *testing.T) {
	t.Parallel()
	const src = `# a crew
name: east
grade: IV
size: 3
share: 1
roped: true
leader: {name: ana, age: 40}
others:
  - name: "1"
  - {}
colour:
  "on": red
notes:
  a.b: [1, 2.5, x, true, null, {c: d}]
tent: 2026-01-01
`
	want := crew{
		Route: Route{Grade: 12}, Name: "east", Size: 3, Share: 1, Roped: true, Leader: &climber{"ana", 40}, Others: []climber{{Name: "1"}, {}},
		Colour: map[string]string{"on": "red"}, Tent: "2026-01-01",
		Notes: map[string]any{"a.b": []any{1, 2.5, "x", true, nil, map[string]any{"c": "d"}}},
	}
	var got crew
	d, err := strictyaml.Decode("f.yaml", []byte(src), &got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for path, line := range map[string]int{
		"": 2, "name": 2, "leader": 7, "leader.age": 7, "others": 8, "others[1]": 10, "colour.on": 12, "notes.a.b": 14, "notes.a.b[5].c": 14,
		// What is not written has the line of what is around it.
		"others[1].name": 10, "others[7]": 8, "colour.off": 11, "price.per_day": 2,
	} {
		if want := fmt.Sprintf("f.yaml:%d: %s: wrong", line, path); path != "" && d.Problem(path, "wrong").Error() != want {
			t.Errorf("got %v, want %s", d.Problem(path, "wrong"), want)
		}
		if want := fmt.Sprintf("f.yaml:%d", line); d.Place(path) != want {
			t.Errorf("%s: got %s, want %s", path, d.Place(path), want)
		}
	}
	for path, want := range map[string]bool{"": true, "leader.age": true, "others[0]": true, "others[1].name": false, "others[2]": false, "secret": false} {
		if d.Has(path) != want {
			t.Errorf("has %q: %v", path, !want)
		}
	}
	for text, want := range map[string]string{
		"leader.age: -1; expected 0 or more": "f.yaml:7: leader.age: -1; expected 0 or more",
		"nobody is there":                    "f.yaml:2: nobody is there",
	} {
		if got := d.At(errors.New(text)).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	const text = "text, in quotes where it looks like something else"
	for _, tt := range []struct{ name, src, want string }{
		{"unknown field, near", "size: 1\nnmae: x", `2: nmae: unknown field; did you mean "name"?`},
		{"unknown field, far", "zebra: x", "1: zebra: unknown field; expected one of colour, grade, leader, name, notes, others, roped, share, size, tent"},
		{"unknown field, deep", "others:\n  - name: ana\n    agee: 40", `3: others[0].agee: unknown field; did you mean "age"?`},
		{"field that no file may set", "secret: x", "1: secret: unknown field; did you mean \"share\"?"},
		{"field twice", "name: a\nsize: 1\nname: b", "3: name: given twice, first on line 1"},
		{"entry twice", "colour: {a: red,\n  a: red}", "2: colour.a: given twice, first on line 1"},
		{"name in free fields twice", "notes:\n  a: 1\n  a: 2", "3: notes.a: given twice, first on line 2"},
		{"text for a number", "size: many", `1: size: "many"; expected a whole number`},
		{"fraction for a number", "size: 1.5", "1: size: 1.5; expected a whole number"},
		{"number that is too large", "size: 9223372036854775808", "1: size: 9223372036854775808; expected a whole number"},
		{"nothing for a number", "size:", "1: size: nothing; expected a whole number"},
		{"infinite", "share: .inf", "1: share: .inf; expected a number"},
		{"not a number", "share: .nan", "1: share: .nan; expected a number"},
		{"word for a truth", "roped: often", `1: roped: "often"; expected true or false`},
		{"number for text", "name: 2026", "1: name: 2026; expected " + text},
		{"truth for text", "name: true", "1: name: true; expected " + text},
		{"nothing for text", "name: ~", "1: name: nothing; expected " + text},
		{"fields for text", "name: {a: b}", "1: name: fields; expected " + text},
		{"binary for text", "name: !!binary aGk=", "1: name: aGk=; expected " + text},
		{"text for a list", "others: ana", `1: others: "ana"; expected a list`},
		{"list for fields", "leader: [ana]", "1: leader: a list; expected fields"},
		{"nothing for fields", "leader:", "1: leader: nothing; expected fields"},
		{"text that its type refuses", "grade: VI", `1: grade: "VI"; expected a grade, I to V`},
		{"nothing for such a text", "grade:", "1: grade: nothing; expected text"},
		{"truth as a name", "colour:\n  true: red", "2: colour: true as a name; expected " + text},
		{"list as a name", "? [a]\n: b", "1: a list as a name; expected " + text},
		{"anchor", "name: &n x", "1: name: an anchor or alias; expected the value itself"},
		{"anchor on a name", "&n name: x", `1: "name" as a name; expected ` + text},
		{"alias", "name: &n x\ntent: *n", "1: name: an anchor or alias; expected the value itself\n2: tent: an anchor or alias; expected the value itself"},
		{"alias of nothing", "name: a*b\n\ntent: [*b]", "3: not YAML: unknown anchor 'b' referenced"},
		{"merge", "leader: {<<: {age: 4}}", "1: leader: << as a name; expected " + text},
		{"date in free fields", "notes: [{a: 2026-01-01}]", "1: notes[0].a: 2026-01-01; expected a value that JSON knows (a date is text: quote it)"},
		{"infinite in free fields", "notes: -.inf", "1: notes: -.inf; expected a value that JSON knows"},
		{"binary in free fields", "notes: !!binary aGk=", "1: notes: aGk=; expected a value that JSON knows"},
		{"number as a name in free fields", "notes:\n  - 1: a", "2: notes[0]: 1 as a name; expected " + text},
		{"nested too deep", "notes: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "1: notes" + strings.Repeat("[0]", 100) + ": nested more than 100 deep"},
		{"not YAML", "name: \"a", "1: not YAML: found unexpected end of stream"},
		{"not YAML, further down", "name: a\nleader: {\n", "2: not YAML: did not find expected node content"},
		{"tab", "leader:\n\tname: a", "2: not YAML: found character that cannot start any token"},
		{"list for the whole", "- one\n- two", "1: a list; expected fields"},
		{"empty", "", "1: empty; expected a YAML document"},
		{"only a comment", "# nothing yet\n", "1: empty; expected a YAML document"},
		{"second document", "name: a\n---\nname: b", "2: a second document; expected one"},
		{"not YAML in the second", "name: a\n---\n\"b", "3: not YAML: found unexpected end of stream"},
		{"name of two lines", "\"a\\nb\": 1", "1: a b: unknown field; expected one of"},
		{"everything at once", "nmae: x\nsize: many\nothers: [{age: old}]\nleader: 7", "1: nmae: unknown field; did you mean \"name\"?\n2: size: \"many\"; expected a whole number\n" +
			"3: others[0].age: \"old\"; expected a whole number\n4: leader: 7; expected fields"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c crew
			d, err := strictyaml.Decode("f.yaml", []byte(tt.src), &c)
			if err == nil || d != nil {
				t.Fatalf("accepted: %+v", c)
			}
			want := strings.Split(tt.want, "\n")
			got := strings.Split(err.Error(), "\n")
			if len(got) != len(want) || len(strictyaml.Problems(err)) != len(want) {
				t.Fatalf("got  %v\nwant %s", err, tt.want)
			}
			for i := range want {
				if !strings.HasPrefix(got[i], "f.yaml:"+want[i]) {
					t.Errorf("got  %s\nwant f.yaml:%s", got[i], want[i])
				}
			}
		})
	}
}

// FuzzDecode holds Decode to this: whatever comes in, it decodes or gives one line for each problem, and it finds the place
// of every character of what it decoded.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: a\nsize: 1\nshare: 0.5\nroped: true\nleader: {name: b, age: 2}\nothers: [{name: c}]\ncolour: {d: e}\nnotes: {f: [g]}\ngrade: II"))
	f.Add([]byte("leader: {name: 1, age: 1h}\nothers: [a, b]\n---\nx"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("? [a]\n: !!binary aGk"))
	f.Add([]byte("name: |\n  a\n\n  b\n"))
	f.Add([]byte("name: >-\n  a\n  b\n\"tent\": \"a\\x41\\\n  b\""))
	f.Add([]byte("\xff\xfen\x00a\x00m\x00e\x00:\x00 \x00a\x00\n\x00t\x00e\x00n\x00t\x00:\x00 \x00b\x00"))
	f.Add([]byte("\xff\xfe\x28\x20\x28\x20n\x00a\x00m\x00e\x00:\x00 \x00a\x00"))
	f.Add([]byte("name:\u2028  a\u2028tent: b\u0085"))
	f.Fuzz(func(t *testing.T, src []byte) {
		var c crew
		d, err := strictyaml.Decode("f.yaml", src, &c)
		problems := strictyaml.Problems(err)
		switch {
		case err == nil:
			for i, text := range []string{c.Name, c.Tent} {
				for column := range len(text) + 1 {
					problems = append(problems, d.Inside([]string{"name", "tent"}[i], 1, column, "wrong"))
				}
			}
		case len(problems) == 0:
			t.Fatalf("%v names no problem", err)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Column < 0 || strings.ContainsAny(p.Error(), "\n\r") {
				t.Errorf("%q", p)
			}
		}
	})
}

package scripted_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
	"belay/model/scripted"
	"belay/strictyaml"
)

func TestMalformedScenarios(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, yaml, want string }{
		{"empty", "", "s.yaml:1: empty; expected a YAML document"},
		{"only a comment", "# nothing\n", "s.yaml:1: empty; expected"},
		{"not YAML", "rules:\n  - {reply: {}\n", "s.yaml:1: not YAML: did not find expected"},
		{"tab", "rules:\n\t- reply: {}\n", "s.yaml:2: not YAML: found character that cannot start any token"},
		{"two documents", "rules: [{reply: {}}]\n---\nrules: [{reply: {}}]\n", "s.yaml:2: a second document; expected one"},
		{"a list", "- reply: {}\n", "s.yaml:1: a list; expected fields"},
		{"no rules", "name: s\n", "s.yaml:1: rules: none; expected at least one rule"},
		{"rules without a list", "rules: none\n", `s.yaml:1: rules: "none"; expected a list`},
		{"bad name", "name: a b\nrules: [{reply: {}}]\n", `s.yaml:1: name: "a b"; expected up to 64 letters`},
		{"unknown field, near", "rules:\n  - wen: {turn: 1}\n    reply: {}\n", `s.yaml:2: rules[0].wen: unknown field; did you mean "when"?`},
		{"unknown field, far", "rules:\n  - reply: {}\n    zzzzzzzzzzzz: 1\n", "s.yaml:3: rules[0].zzzzzzzzzzzz: unknown field; expected one of fault, name, repeat, reply, when"},
		{"unknown condition", "rules:\n  - when:\n      last_tool_contain: FAIL\n    reply: {}\n", `s.yaml:3: rules[0].when.last_tool_contain: unknown field; did you mean "last_tool_contains"?`},
		{"field twice", "rules:\n  - reply: {text: a,\n      text: b}\n", "s.yaml:3: rules[0].reply.text: given twice"},
		{"text for a number", "rules:\n  - when: {turn: first}\n    reply: {}\n", `s.yaml:2: rules[0].when.turn: "first"; expected a whole number`},
		{"fraction for a number", "rules:\n  - when: {turn: 1.5}\n    reply: {}\n", `s.yaml:2: rules[0].when.turn: 1.5; expected a whole number`},
		{"number for text", "rules:\n  - when: {last_tool_contains: 5}\n    reply: {}\n", `s.yaml:2: rules[0].when.last_tool_contains: 5; expected text, in quotes where it looks like something else`},
		{"text for a choice", "cache: often\nrules: [{reply: {}}]\n", `s.yaml:1: cache: "often"; expected true or false`},
		{"negative turn", "rules:\n  - when:\n      turn: -1\n    reply: {}\n", "s.yaml:3: rules[0].when.turn: -1; expected 1 for the first reply"},
		{"negative calls", "rules:\n  - when: {calls_made: -1}\n    reply: {}\n", "s.yaml:2: rules[0].when.calls_made: -1; expected 0 or more"},
		{"unknown speaker", "rules:\n  - when: {last: assistant}\n    reply: {}\n", `s.yaml:2: rules[0].when.last: "assistant"; expected user or tool`},
		{"no answer", "rules:\n  - when: {turn: 1}\n", "s.yaml:2: rules[0]: has no answer; expected reply or repeat"},
		{"answer of nothing", "rules:\n  - reply:\n", "s.yaml:2: rules[0].reply: nothing; expected fields"},
		{"two answers", "rules:\n  - reply: {}\n    repeat: {calls: 1, tool: shell}\n", "s.yaml:3: rules[0].repeat: beside a reply; expected one of the two"},
		{"never reached", "rules:\n  - reply: {text: always}\n  - when: {turn: 2}\n    reply: {}\n", "s.yaml:3: rules[1]: never reached: rules[0] has no condition"},
		{"unknown finish", "rules:\n  - reply: {finish: done}\n", `s.yaml:2: rules[0].reply.finish: "done"; expected stop, tool_calls, length or content_filter`},
		{"call without a tool", "rules:\n  - reply:\n      calls:\n        - {arguments: {a: 1}}\n", "s.yaml:4: rules[0].reply.calls[0].tool: missing; expected the name of a tool"},
		{"arguments twice", "rules:\n  - reply:\n      calls:\n        - tool: shell\n          arguments: {}\n          raw_arguments: '{'\n", "s.yaml:6: rules[0].reply.calls[0].raw_arguments: beside arguments"},
		{"arguments as text", "rules:\n  - reply: {calls: [{tool: shell, arguments: ls}]}\n", `s.yaml:2: rules[0].reply.calls[0].arguments: "ls"; expected fields`},
		{"arguments that JSON does not know", "rules:\n  - reply: {calls: [{tool: shell, arguments: {n: .nan}}]}\n", `s.yaml:2: rules[0].reply.calls[0].arguments.n: .nan; expected a value that JSON knows (a date is text: quote it)`},
		{"a number as a name", "rules:\n  - reply: {calls: [{tool: shell, arguments: {1: a}}]}\n", `s.yaml:2: rules[0].reply.calls[0].arguments: 1 as a name; expected text, in quotes where it looks like something else`},
		{"broken template", "rules:\n  - reply: {text: 'It is {{.LastTool'}\n", `s.yaml:2: rules[0].reply.text: "It is {{.LastTool" is no template`},
		{"template of nothing known", "rules:\n  - reply: {text: '{{.Tool}}'}\n", `s.yaml:2: rules[0].reply.text: "{{.Tool}}" is no template`},
		{"broken template in arguments", "rules:\n  - reply: {calls: [{tool: shell, arguments: {a: [b, '{{']}}]}\n", "s.yaml:2: rules[0].reply.calls[0].arguments.a[1]: \"{{\" is no template"},
		{"more cached than input", "rules:\n  - reply: {usage: {input: 1, cached: 2}}\n", "s.yaml:2: rules[0].reply.usage: input 1, output 0, cached 2; expected"},
		{"repeat without a number", "rules:\n  - repeat: {tool: shell}\n", "s.yaml:2: rules[0].repeat.calls: 0; expected how many calls to make"},
		{"repeat without a tool", "rules:\n  - repeat: {calls: 3}\n", "s.yaml:2: rules[0].repeat.tool: missing"},
		{"status that is no error", "rules:\n  - reply: {}\n    fault: {status: 200}\n", "s.yaml:3: rules[0].fault.status: 200; expected 400 to 599"},
		{"negative times", "rules:\n  - reply: {}\n    fault: {times: -1, status: 500}\n", "s.yaml:3: rules[0].fault.times: -1; expected"},
		{"a delay without its unit", "rules:\n  - reply: {}\n    fault: {first_delay: 5}\n", "s.yaml:3: rules[0].fault.first_delay: "},
		{"negative delay", "rules:\n  - reply: {}\n    fault: {chunk_delay: -5s}\n", "s.yaml:3: rules[0].fault.chunk_delay: -5s; expected a positive duration"},
		{"two ends", "rules:\n  - reply: {}\n    fault:\n      stall_after: 1\n      cut_after: 2\n", "s.yaml:5: rules[0].fault.cut_after: beside stall_after; expected one end"},
		{"an alias", "rules:\n  - when: &w {turn: 1}\n    reply: {}\n", "s.yaml:2: rules[0].when: an anchor or alias; expected the value itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := scripted.Parse("dir/s.yaml", []byte(c.yaml))
			if err == nil {
				t.Fatalf("accepted: %+v", s)
			}
			if got := err.Error(); !strings.HasPrefix(got, "dir/"+c.want) || strings.Contains(got, "\n") {
				t.Errorf("got  %s\nwant dir/%s", got, c.want)
			}
			if agent.TypeOf(err) != agent.InvalidInput {
				t.Errorf("got type %q, want InvalidInput", agent.TypeOf(err))
			}
		})
	}
}

func TestEveryMistakeIsTold(t *testing.T) {
	t.Parallel()
	_, err := scripted.Parse("s.yaml", []byte(`name: a b
rules:
  - when: {turn: -1, last: assistant}
  - reply: {text: Done., calls: [{arguments: {a: "{{", b: ["{{.None}}", c]}}]}
  - repeat: {tool: shell}
    fault: {status: 200, chunk_delay: -5s}
`))
	const want = `s.yaml:1: name: "a b"; expected up to 64 letters, digits and . _ -
s.yaml:3: rules[0]: has no answer; expected reply or repeat (an empty reply is {})
s.yaml:3: rules[0].when.turn: -1; expected 1 for the first reply, 2 for the second, …
s.yaml:3: rules[0].when.last: "assistant"; expected user or tool
s.yaml:4: rules[1].reply.calls[0].tool: missing; expected the name of a tool
s.yaml:4: rules[1].reply.calls[0].arguments.a: "{{" is no template: template:1: unclosed action; expected text with fields such as {{.LastTool}}
s.yaml:4: rules[1].reply.calls[0].arguments.b[0]: "{{.None}}" is no template: template:1:2: executing "template" at <.None>: can't evaluate field None in type scripted.View; expected text with fields such as {{.LastTool}}
s.yaml:5: rules[2]: never reached: rules[1] has no condition; expected such a rule to be the last
s.yaml:5: rules[2].repeat.calls: 0; expected how many calls to make, at least 1
s.yaml:6: rules[2].fault.status: 200; expected 400 to 599
s.yaml:6: rules[2].fault.chunk_delay: -5s; expected a positive duration`
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("rules: [{reply: {text: '{{.Goal}}'}}]")
	f.Add("rules:\n  - when: {turn: 1}\n    repeat: {calls: 2, tool: t, arguments: {a: [1, b]}}\n    fault: {cut_after: 0}\n")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, yaml string) {
		s, err := scripted.Parse("s.yaml", []byte(yaml))
		if (s == nil) == (err == nil) {
			t.Fatalf("got %v and %v", s, err)
		}
		for _, p := range strictyaml.Problems(err) {
			if p.Line < 1 || strings.ContainsAny(p.Error(), "\n\r") {
				t.Errorf("the problem is not one line that names the place: %q", p)
			}
		}
		if err != nil && strings.Count(err.Error(), "\n")+1 != len(strictyaml.Problems(err)) {
			t.Errorf("the error has not one line for each problem: %q", err)
		}
	})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, yaml string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := write("one.yaml", "rules: [{reply: {}}]")
	write("two.yaml", "name: second\nrules: [{reply: {}}]")
	write("notes.txt", "no scenario")
	for _, c := range []struct {
		path string
		want []string
	}{{one, []string{"one"}}, {dir, []string{"one", "second"}}} {
		all, err := scripted.Load(c.path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range all {
			got = append(got, s.Name)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, diff)
		}
	}
	write("three.yaml", "name: one\nrules: [{reply: {}}]")
	for path, want := range map[string]string{
		dir:                             `name: "one" is the name of`,
		filepath.Join(dir, "none.yaml"): "no such file",
		t.TempDir():                     "holds no scenario; expected at least one .yaml file",
	} {
		if _, err := scripted.Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", path, err, want)
		}
	}
}

// The scenario files that ship with Belay are read as they are.
func TestExamplesLoad(t *testing.T) {
	t.Parallel()
	all, err := scripted.Load(filepath.Join("..", "..", "examples", "scenarios"))
	if err != nil || len(all) == 0 {
		t.Errorf("got %d scenarios, %v", len(all), err)
	}
}

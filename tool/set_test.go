package tool_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
	"belay/tool"
)

// told is a tool of another package, as far as a Set sees it.
type told agent.ToolSpec

func (t told) Spec() agent.ToolSpec                          { return agent.ToolSpec(t) }
func (told) Plan(string, json.RawMessage) (tool.Plan, error) { return tool.Plan{}, nil }
func (told) Run(context.Context, tool.Env, json.RawMessage) (o agent.Observation, err error) {
	return o, err
}

func TestNewSetRefuses(t *testing.T) {
	t.Parallel()
	good := told{Name: "a", Schema: json.RawMessage(`{"type":"object"}`)}
	elsewhere := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(elsewhere, good.Schema, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		tools []tool.Tool
		text  string
	}{
		{"nothing", []tool.Tool{nil}, `tools[0]: nil; expected a tool`},
		{"no name", []tool.Tool{told{}}, `tools[0]: name ""; expected up to 64 of a-z A-Z 0-9 _ -`},
		{"a name that endpoints refuse", []tool.Tool{told{Name: "a b"}}, `tools[0]: name "a b"; expected up to 64 of a-z A-Z 0-9 _ -`},
		{"two of a name", []tool.Tool{good, good}, `tools[1]: there are two tools named "a"`},
		{"no schema", []tool.Tool{told{Name: "a"}}, `tool a: schema: `},
		{"a wrong schema", []tool.Tool{told{Name: "a", Schema: json.RawMessage(`{"type":"text"}`)}}, `tool a: schema: `},
		{"a schema that reads files", []tool.Tool{told{Name: "a", Schema: json.RawMessage(`{"$ref":"file://` + elsewhere + `"}`)}}, `tool a: schema: `},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			set, err := tool.NewSet(row.tools...)
			if err == nil || !strings.HasPrefix(err.Error(), row.text) || set != nil {
				t.Errorf("got %v; want %s", err, row.text)
			}
		})
	}
}

func TestSubset(t *testing.T) {
	t.Parallel()
	all := tool.Default()
	for _, row := range []struct {
		name  string
		names []string
		text  string // of the error
	}{
		{"some", []string{"shell", "read_file"}, ""},
		{"none", nil, ""},
		{"misspelt", []string{"shell", "readfile"}, `tools[1]: "readfile": no such tool; did you mean "read_file"?`},
		{"twice", []string{"shell", "shell"}, `tools[1]: "shell" is listed twice`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sub, err := all.Subset(row.names)
			if row.text != "" {
				if err == nil || err.Error() != row.text {
					t.Errorf("got %v; want %s", err, row.text)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range row.names {
				if _, ok := sub.Lookup(n); !ok {
					t.Errorf("%s is not in the subset", n)
				}
			}
			if got := len(sub.Specs()); got != len(row.names) {
				t.Errorf("%d tools; want %d", got, len(row.names))
			}
			if _, err := sub.Check(agent.ToolCall{Tool: "write_file", Arguments: `{"path":"a","content":""}`}); err == nil {
				t.Error("a tool that is not in the subset was found")
			}
			if sub.Digest() == all.Digest() {
				t.Error("another set has the same digest")
			}
		})
	}
}

func TestSpecs(t *testing.T) {
	t.Parallel()
	specs := tool.Default().Specs()
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
		if len(s.Description) < 100 || len(s.Description) > 2000 {
			t.Errorf("%s: a description of %d bytes", s.Name, len(s.Description))
		}
		if len(s.Version) != agent.ShortDigest {
			t.Errorf("%s: version %q", s.Name, s.Version)
		}
		for _, word := range []string{"$ref", "$defs", "$schema", "$id"} {
			if strings.Contains(string(s.Schema), word) {
				t.Errorf("%s: schema has %s: %s", s.Name, word, s.Schema)
			}
		}
		var schema struct {
			Type       string
			Additional *bool `json:"additionalProperties"`
			Properties map[string]struct{ Description string }
		}
		if err := json.Unmarshal(s.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		if schema.Type != "object" || schema.Additional == nil || *schema.Additional {
			t.Errorf("%s: schema is not that of a closed object: %s", s.Name, s.Schema)
		}
		for name, p := range schema.Properties {
			if p.Description == "" {
				t.Errorf("%s: %s has no description", s.Name, name)
			}
		}
	}
	want := []string{"ask_human", "edit_file", "list_files", "read_file", "search_files", "shell", "write_file"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	again, err := tool.NewSet(tool.All()...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(specs, again.Specs()); diff != "" || again.Digest() != tool.Default().Digest() {
		t.Errorf("the same tools are told in two ways: %s", diff)
	}
}

// A schema as the model gets it, in full, so that a change of it is seen.
func TestSchemaOfShell(t *testing.T) {
	t.Parallel()
	shell, _ := tool.Default().Lookup("shell")
	var got, want any
	if err := json.Unmarshal(shell.Spec().Schema, &got); err != nil {
		t.Fatal(err)
	}
	const text = `{
	  "type": "object", "additionalProperties": false, "required": ["command"],
	  "properties": {
	    "command": {"type": "string", "minLength": 1, "maxLength": 65536, "description": "What bash is to run; may have several lines."},
	    "timeout": {"type": "integer", "minimum": 1, "maximum": 3600, "description": "Seconds after which the command and everything that it started is killed. Default 120, at most 3600; the task may allow less."},
	    "reads_only": {"type": "boolean", "description": "Set it for a command that changes nothing: the workspace is read-only for it, it leaves no shell state, and it may run at the same time as others. Default false."}
	  }
	}`
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a model is told about a tool is what its version and the set's digest stand for.
func TestVersionFollowsTheText(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	digests := map[agent.Digest]bool{}
	for _, x := range tool.All() {
		s := x.Spec()
		if twin := seen[s.Version]; twin != "" {
			t.Errorf("%s and %s have the same version", s.Name, twin)
		}
		seen[s.Version] = s.Name
		changed := told(s)
		changed.Description += "."
		for _, other := range []tool.Tool{x, changed} {
			set, err := tool.NewSet(other)
			if err != nil {
				t.Fatal(err)
			}
			digests[set.Digest()] = true
		}
	}
	if want := 2 * len(tool.All()); len(digests) != want {
		t.Errorf("%d digests of %d sets", len(digests), want)
	}
}

package tool_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"belay/agent"
	"belay/tool"
)

// A call that can't be judged comes back with a text that names the place, what stands there and what was expected.
func TestCheckTellsHowToMend(t *testing.T) {
	t.Parallel()
	set := tool.Default()
	long := strings.Repeat("x", tool.MaxArguments)
	for _, row := range []struct {
		name, tool, args string
		fault            tool.Fault
		text             string
	}{
		{"misspelt tool", "shel", `{}`, tool.FaultUnknownTool, `"shel": no such tool; did you mean "shell"?`},
		{"strange tool", "quantum_leap", `{}`, tool.FaultUnknownTool, `"quantum_leap": no such tool; expected one of ask_human, edit_file, list_files, read_file, search_files, shell, write_file`},
		{"no tool", "", `{}`, tool.FaultUnknownTool, `"": no such tool; expected one of ask_human, edit_file, list_files, read_file, search_files, shell, write_file`},
		{"not JSON", "shell", `ls -la`, tool.FaultNotJSON, `shell: arguments: not JSON at byte 1, after "l": invalid character 'l' looking for beginning of value; expected one JSON object`},
		{"cut short", "shell", `{"command":"ls`, tool.FaultNotJSON, `shell: arguments: not JSON: cut short after 14 bytes; expected one whole JSON object`},
		{"two objects", "shell", `{"command":"ls"}{"command":"rm"}`, tool.FaultNotJSON, `shell: arguments: not JSON at byte 17, after "{\"command\":\"ls\"}{": invalid character '{' after top-level value; expected one JSON object`},
		{"trailing comma", "shell", `{"command":"ls",}`, tool.FaultNotJSON, `shell: arguments: not JSON at byte 17, after "{\"command\":\"ls\",}": invalid character '}' looking for beginning of object key string; expected one JSON object`},
		{"given twice", "shell", `{"command":"ls","command":"rm"}`, tool.FaultNotJSON, `shell: command: given twice; expected once`},
		{"given twice, escaped", "shell", `{"command":"ls","\u0063ommand":"rm"}`, tool.FaultNotJSON, `shell: command: given twice; expected once`},
		{"not UTF-8", "shell", "{\"command\":\"\xff\"}", tool.FaultNotJSON, `shell: arguments: not valid UTF-8; expected JSON in UTF-8`},
		{"half a character", "write_file", `{"path":"a","content":"\ud83d"}`, tool.FaultNotJSON, `write_file: arguments: \ud83d at byte 23 is half of a character; expected both halves of the pair, or the character itself`},
		{"too long", "write_file", `{"path":"a","content":"` + long + `"}`, tool.FaultNotJSON, `write_file: arguments: 1048601 bytes; expected at most 1048576: do it in several calls`},
		{"too deep", "shell", strings.Repeat("[", 70) + strings.Repeat("]", 70), tool.FaultNotJSON, `shell: arguments: nested more than 64 deep`},
		{"number without end", "shell", `{"command":"ls","timeout":1e999999999}`, tool.FaultNotJSON, `shell: timeout: 1e999999999; expected a number that a double can hold`},
		{"number without size", "shell", `{"command":"ls","timeout":1e-999999999}`, tool.FaultNotJSON, `shell: timeout: 1e-999999999; expected a number that a double can hold`},
		{"array", "shell", `["ls"]`, tool.FaultArguments, `shell: arguments: an array; expected an object`},
		{"null", "shell", `null`, tool.FaultArguments, `shell: arguments: null; expected an object`},
		{"object in a string", "shell", `"{\"command\":\"ls\"}"`, tool.FaultArguments, `shell: arguments: "{\"command\":\"ls\"}" (a string); expected an object: write the object itself, not text that holds it`},
		{"missing", "shell", ``, tool.FaultArguments, `shell: command: missing; expected a string`},
		{"two missing", "edit_file", `{"path":"a"}`, tool.FaultArguments, "edit_file: new: missing; expected a string\nedit_file: old: missing; expected a string"},
		{"misspelt field", "shell", `{"comand":"ls","command":"ls"}`, tool.FaultArguments, `shell: comand: unknown argument; did you mean "command"?`},
		{"other case", "shell", `{"Command":"ls","command":"ls"}`, tool.FaultArguments, `shell: Command: unknown argument; did you mean "command"?`},
		{"strange field", "shell", `{"command":"ls","dangerously_skip_sandbox":true}`, tool.FaultArguments, `shell: dangerously_skip_sandbox: unknown argument; expected one of command, reads_only, timeout`},
		{"number for text", "shell", `{"command":7}`, tool.FaultArguments, `shell: command: 7; expected a string`},
		{"null for text", "shell", `{"command":null}`, tool.FaultArguments, `shell: command: null; expected a string`},
		{"array for text", "shell", `{"command":["ls","-l"]}`, tool.FaultArguments, `shell: command: an array; expected a string`},
		{"text for number", "shell", `{"command":"ls","timeout":"60"}`, tool.FaultArguments, `shell: timeout: "60" (a string); expected a whole number`},
		{"fraction", "shell", `{"command":"ls","timeout":1.5}`, tool.FaultArguments, `shell: timeout: 1.5; expected a whole number`},
		{"too small", "shell", `{"command":"ls","timeout":0}`, tool.FaultArguments, `shell: timeout: 0; expected at least 1`},
		{"too large", "shell", `{"command":"ls","timeout":86400}`, tool.FaultArguments, `shell: timeout: 86400; expected at most 3600`},
		{"text for truth", "shell", `{"command":"ls","reads_only":"yes"}`, tool.FaultArguments, `shell: reads_only: "yes" (a string); expected true or false`},
		{"empty", "read_file", `{"path":""}`, tool.FaultArguments, `read_file: path: empty; expected some text`},
		{"too many", "ask_human", `{"question":"?","choices":["1","2","3","4","5","6","7","8","9","10","11"]}`, tool.FaultArguments, `ask_human: choices: 11 entries; expected at most 10`},
		{"inside an array", "ask_human", `{"question":"?","choices":["a",{"label":"b"}]}`, tool.FaultArguments, `ask_human: choices[1]: an object; expected a string`},
		{"long text", "search_files", `{"pattern":"` + strings.Repeat("a", 1001) + `"}`, tool.FaultArguments, `search_files: pattern: 1001 characters; expected at most 1000`},
		{"hidden field", "shell", `{"command":"ls","re\u202eads":true}`, tool.FaultArguments, `shell: re\u202eads: unknown argument; expected one of command, reads_only, timeout`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := set.Check(agent.ToolCall{ID: "c1", Tool: row.tool, Arguments: row.args})
			e, ok := errors.AsType[*tool.CallError](err)
			if !ok || got != nil {
				t.Fatalf("got %s, error %v; want a *CallError and nothing", got, err)
			}
			if e.Fault != row.fault || e.Error() != row.text {
				t.Errorf("fault %s\n got %s\nwant %s (%s)", e.Fault, e, row.text, row.fault)
			}
		})
	}
}

func TestCheckGivesArguments(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, tool, args, want string }{
		{"as written", "shell", `{"command":"ls"}`, `{"command":"ls"}`},
		{"compact", "shell", " {\n \"command\" : \"ls  -l\" } ", `{"command":"ls  -l"}`},
		{"nothing is an empty object", "list_files", " ", `{}`},
		{"whole number with a point", "shell", `{"command":"ls","timeout":60.0}`, `{"command":"ls","timeout":60.0}`},
		{"both halves of a character", "shell", `{"command":"\ud83d\ude00 \\ud83d"}`, `{"command":"\ud83d\ude00 \\ud83d"}`},
		{"empty new text", "edit_file", `{"path":"a","old":"b","new":""}`, `{"path":"a","old":"b","new":""}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			set := tool.Default()
			got, err := set.Check(agent.ToolCall{Tool: row.tool, Arguments: row.args})
			if err != nil || string(got) != row.want {
				t.Fatalf("got %s, error %v; want %s", got, err, row.want)
			}
			found, _ := set.Lookup(row.tool)
			if _, err := found.Plan("/workspace", got); err != nil {
				t.Errorf("plan: %v", err)
			}
		})
	}
}

// Whatever a model writes, Check answers, and what it lets through every tool can plan or refuses with words.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"command":"ls"}`, `{"path":"../etc"}`, `{"pattern":"(","glob":"{"}`, `{"a":{"b":[1e400]}}`, `[[[`, `"\ud800"`, "\x00", `{"timeout":1e2}`,
		`{"path":"a","old":"b","new":"b"}`, `{"question":"?","choices":[""]}`, `{"path":"a","path":"b"}`, `{"path":"\u0000"}`,
	} {
		f.Add(seed)
	}
	set := tool.Default()
	f.Fuzz(func(t *testing.T, written string) {
		for _, spec := range set.Specs() {
			args, err := set.Check(agent.ToolCall{Tool: spec.Name, Arguments: written})
			if err != nil {
				if _, ok := errors.AsType[*tool.CallError](err); !ok || err.Error() == "" {
					t.Fatalf("%s: %#v is no CallError with a text", spec.Name, err)
				}
				continue
			}
			if !json.Valid(args) {
				t.Fatalf("%s: %q is not JSON", spec.Name, args)
			}
			found, _ := set.Lookup(spec.Name)
			p, err := found.Plan("/workspace", args)
			if err == nil && (len(p.Summary) > 120 || strings.ContainsAny(p.Summary, "\n\x1b") || p.Effect == "" || p.Risk == "") {
				t.Fatalf("%s: plan %+v", spec.Name, p)
			}
		}
	})
}

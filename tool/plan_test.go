package tool_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
	"belay/tool"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	const dir = "/workspace/app"
	reads := func(p ...string) agent.Resources { return agent.Resources{Reads: p} }
	both := func(p string) agent.Resources {
		return agent.Resources{Reads: []string{p}, Writes: []string{p}}
	}
	for _, row := range []struct {
		name, tool, args string
		want             tool.Plan
	}{
		{"shell", "shell", `{"command":"go test ./..."}`, tool.Plan{
			Effect: agent.EffectSandboxed, Risk: agent.RiskLow, Resources: agent.Resources{Writes: []string{"/workspace"}},
			Command: "go test ./...", Summary: "go test ./...", Timeout: 2 * time.Minute,
		}},
		{"shell that reads only", "shell", `{"command":"git log","reads_only":true,"timeout":1e1}`, tool.Plan{
			Effect: agent.EffectPure, Risk: agent.RiskLow, Resources: reads("/workspace"),
			Command: "git log", Summary: "git log", Timeout: 10 * time.Second,
		}},
		{"a summary hides nothing", "shell", `{"command":"ls\n\u001b[2Krm -rf /\u202e"}`, tool.Plan{
			Effect: agent.EffectSandboxed, Risk: agent.RiskLow, Resources: agent.Resources{Writes: []string{"/workspace"}},
			Command: "ls\n\x1b[2Krm -rf /\u202e", Summary: `ls␊␛[2Krm -rf /\u202e`, Timeout: 2 * time.Minute,
		}},
		{"read", "read_file", `{"path":"a.go"}`, tool.Plan{
			Effect: agent.EffectPure, Risk: agent.RiskLow, Resources: reads("/workspace/app/a.go"), Summary: "read a.go",
		}},
		{"read above the start", "read_file", `{"path":"../lib/./b.go"}`, tool.Plan{
			Effect: agent.EffectPure, Risk: agent.RiskLow, Resources: reads("/workspace/lib/b.go"), Summary: "read /workspace/lib/b.go",
		}},
		{"read by absolute path", "read_file", `{"path":"/workspace//app/x/../a.go"}`, tool.Plan{
			Effect: agent.EffectPure, Risk: agent.RiskLow, Resources: reads("/workspace/app/a.go"), Summary: "read a.go",
		}},
		{"write", "write_file", `{"path":"sub/new.go","content":""}`, tool.Plan{
			Effect: agent.EffectSandboxed, Risk: agent.RiskMedium, Resources: both("/workspace/app/sub/new.go"), Summary: "write sub/new.go",
		}},
		{"edit", "edit_file", `{"path":"a.go","old":"x","new":"y"}`, tool.Plan{
			Effect: agent.EffectSandboxed, Risk: agent.RiskMedium, Resources: both("/workspace/app/a.go"), Summary: "edit a.go",
		}},
		{"list", "list_files", `{}`, tool.Plan{
			Effect: agent.EffectPure, Risk: agent.RiskLow, Resources: reads("/workspace/app"), Summary: "list /workspace/app", Timeout: 40 * time.Second,
		}},
		{"search", "search_files", `{"pattern":"func \\w+","path":"/workspace"}`, tool.Plan{
			Effect: agent.EffectPure, Risk: agent.RiskLow, Resources: reads("/workspace"), Summary: `search "func \\w+" in /workspace`, Timeout: 40 * time.Second,
		}},
		{"ask", "ask_human", `{"question":"Which database? ","choices":["staging","production"]}`, tool.Plan{
			Effect: agent.EffectPure, Risk: agent.RiskLow, Question: "Which database?\n1. staging\n2. production", Summary: "ask: Which database? ",
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			set := tool.Default()
			args, err := set.Check(agent.ToolCall{Tool: row.tool, Arguments: row.args})
			if err != nil {
				t.Fatal(err)
			}
			found, _ := set.Lookup(row.tool)
			got, err := found.Plan(dir, args)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, tool, args, text string }{
		{"out of the workspace", "read_file", `{"path":"../etc/passwd"}`, `path: "../etc/passwd" is outside the workspace; expected a path below /workspace`},
		{"out by many steps", "write_file", `{"path":"a/../../../../root/.ssh/id","content":""}`, `path: "a/../../../../root/.ssh/id" is outside the workspace; expected a path below /workspace`},
		{"absolute", "edit_file", `{"path":"/etc/passwd","old":"a","new":"b"}`, `path: "/etc/passwd" is outside the workspace; expected a path below /workspace`},
		{"a name that begins alike", "list_files", `{"path":"/workspace2"}`, `path: "/workspace2" is outside the workspace; expected a path below /workspace`},
		{"the home folder of a shell", "search_files", `{"pattern":"a","path":"/root"}`, `path: "/root" is outside the workspace; expected a path below /workspace`},
		{"NUL in a path", "read_file", `{"path":"a\u0000b"}`, `path: holds a NUL byte; expected a path without`},
		{"a long path", "read_file", `{"path":"` + strings.Repeat("é", 3000) + `"}`, `path: 6000 bytes; expected at most 4096`},
		{"NUL in a command", "shell", `{"command":"ls\u0000"}`, `command: holds a NUL byte; expected a command without`},
		{"a blank command", "shell", `{"command":" \n"}`, `command: blank; expected what bash is to run`},
		{"a long command", "shell", `{"command":"` + strings.Repeat("é", 33000) + `"}`, `command: 66000 bytes; expected at most 65536: write it into a file and run that`},
		{"no change", "edit_file", `{"path":"a","old":"b","new":"b"}`, `new: the same as old; expected another text`},
		{"a pattern that RE2 lacks", "search_files", `{"pattern":"(?=a)"}`, "pattern: invalid or unsupported Perl syntax: `(?=`; expected RE2 syntax, which has no lookaround and no backreferences"},
		{"an open glob", "search_files", `{"pattern":"a","glob":"*.{go"}`, `glob: "*.{go": "{" without its "}"`},
		{"a blank question", "ask_human", `{"question":"  "}`, `question: blank; expected what you ask`},
		{"a blank choice", "ask_human", `{"question":"?","choices":["a",""]}`, `choices[1]: 0 bytes; expected 1 to 500 bytes of text`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			set := tool.Default()
			args, err := set.Check(agent.ToolCall{Tool: row.tool, Arguments: row.args})
			if err != nil {
				t.Fatal(err)
			}
			found, _ := set.Lookup(row.tool)
			if _, err := found.Plan("/workspace", args); err == nil || err.Error() != row.text {
				t.Errorf("got %v\nwant %s", err, row.text)
			}
			if row.tool == "ask_human" {
				return
			}
			// An executor that is handed such a call does not run it either.
			b := newBench(t, nil)
			if o, err := found.Run(t.Context(), b.env, args); err != nil || o.Status != agent.CallInvalid || o.Text != row.text {
				t.Errorf("run: %+v, error %v", o, err)
			}
		})
	}
}

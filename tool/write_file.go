package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"belay/agent"
)

//go:embed write_file.md
var writeFileText string

type writeFileArgs struct {
	Path    string `json:"path" jsonschema:"minLength=1,maxLength=4096" jsonschema_description:"The file: relative to the folder that the task starts in, or absolute below /workspace."`
	Content string `json:"content" jsonschema_description:"All that the file shall hold."`
}

type writeFile struct{ described }

func newWriteFile() Tool { return writeFile{describe[writeFileArgs]("write_file", writeFileText)} }

// Plan of a write: it changes one path.
func (writeFile) Plan(dir string, args json.RawMessage) (Plan, error) {
	a, err := read[writeFileArgs](args)
	if err != nil {
		return Plan{}, err
	}
	return changePlan(dir, "write", a.Path)
}

// Run makes a file hold what the call says, once however often it is repeated.
func (writeFile) Run(ctx context.Context, env Env, args json.RawMessage) (agent.Observation, error) {
	a, err := read[writeFileArgs](args)
	if err != nil {
		return invalid(env, err), nil
	}
	abs, err := resolve(env.Dir, a.Path)
	if err != nil {
		return invalid(env, err), nil
	}
	name := short(env.Dir, abs)
	c := change{path: abs, args: contentDigest(args), build: func(before content, seen agent.Digest) ([]byte, string, error) {
		after := []byte(a.Content)
		switch {
		case before.digest == "":
			return after, fmt.Sprintf("wrote %s: a new file of %s, %s\n", name, plural(lineCount(a.Content), "line"), plural(len(after), "byte")), nil
		case before.digest == contentDigest(after):
			return after, fmt.Sprintf("%s holds exactly this already\n", name), nil
		case seen == "" && len(before.bytes) > 0:
			return nil, "", refuse("%s exists and was not read in this run; read it first, or change a part of it with edit_file", name)
		case seen != "" && seen != before.digest:
			return nil, "", refuse("%s changed since it was read in this run; read it again first", name)
		case before.binary() || isBinary(after):
			return after, fmt.Sprintf("wrote %s: %s, before it were %d\n", name, plural(len(after), "byte"), len(before.bytes)), nil
		}
		return after, fmt.Sprintf("wrote %s\n%s", name, unified(name, before.bytes, after)), nil
	}}
	return inWorkspaceOf(ctx, env, func(root *os.Root) (string, error) { return c.make(ctx, env, root) })
}

func lineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

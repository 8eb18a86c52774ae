package tool

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"belay/agent"
)

//go:embed edit_file.md
var editFileText string

type editFileArgs struct {
	Path string `json:"path" jsonschema:"minLength=1,maxLength=4096" jsonschema_description:"The file: relative to the folder that the task starts in, or absolute below /workspace."`
	Old  string `json:"old" jsonschema:"minLength=1" jsonschema_description:"The text to replace, exactly as it stands in the file, with enough around it to be there only once."`
	New  string `json:"new" jsonschema_description:"The text to put in its place; empty to delete it."`
	All  bool   `json:"all,omitempty" jsonschema_description:"Replace every place where old stands. Default false: it must stand in exactly one."`
}

type editFile struct{ described }

func newEditFile() Tool { return editFile{describe[editFileArgs]("edit_file", editFileText)} }

// Plan of an edit: it changes one path.
func (editFile) Plan(dir string, args json.RawMessage) (Plan, error) {
	a, err := readEdit(args)
	if err != nil {
		return Plan{}, err
	}
	return changePlan(dir, "edit", a.Path)
}

func readEdit(args json.RawMessage) (editFileArgs, error) {
	a, err := read[editFileArgs](args)
	if err == nil && a.Old == a.New {
		err = errors.New("new: the same as old; expected another text")
	}
	return a, err
}

// Run replaces a text in a file, once however often it is repeated.
func (editFile) Run(ctx context.Context, env Env, args json.RawMessage) (agent.Observation, error) {
	a, err := readEdit(args)
	if err != nil {
		return invalid(env, err), nil
	}
	abs, err := resolve(env.Dir, a.Path)
	if err != nil {
		return invalid(env, err), nil
	}
	name := short(env.Dir, abs)
	return inWorkspaceOf(ctx, env, func(root *os.Root) (string, error) {
		c := change{path: abs, args: contentDigest(args), build: func(before content, seen agent.Digest) ([]byte, string, error) {
			switch {
			case before.digest == "":
				return nil, "", absent(root, env, abs)
			case before.binary():
				return nil, "", refuse("%s is a binary file; edit_file changes text", name)
			case seen != "" && seen != before.digest:
				return nil, "", refuse("%s changed since it was read in this run; read it again first", name)
			}
			after, places, err := a.apply(before.bytes, name)
			if err != nil {
				return nil, "", err
			}
			return after, fmt.Sprintf("edited %s: %s\n%s", name, plural(places, "place"), unified(name, before.bytes, after)), nil
		}}
		return c.make(ctx, env, root)
	})
}

// apply makes the replacement. In a file whose lines all end in CRLF, old and new are taken to mean such lines, since
// read_file shows them without.
func (a editFileArgs) apply(text []byte, name string) (after []byte, places int, err error) {
	from, to := []byte(a.Old), []byte(a.New)
	if crlf(text) {
		from, to = withCRLF(from), withCRLF(to)
	}
	places = bytes.Count(text, from)
	switch {
	case places == 0:
		return nil, 0, refuse("%s: old is not in the file%s", name, near(text, a.Old))
	case places > 1 && !a.All:
		return nil, 0, refuse("%s: old is there %d times, at lines %s; give more of what is around the one that you mean, or set all",
			name, places, lineNumbers(text, from))
	case bytes.Equal(from, to):
		return nil, 0, refuse("%s: new is the same as old, but for line ends", name)
	case len(text)+places*(len(to)-len(from)) > maxFile:
		return nil, 0, refuse("%s would have more than %d bytes after %s", name, maxFile, plural(places, "replacement"))
	}
	return bytes.ReplaceAll(text, from, to), places, nil
}

func withCRLF(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
}

// lineNumbers lists the lines in which a text begins, the first ten of them.
func lineNumbers(text, what []byte) string {
	const most = 10
	var out []string
	line, rest := 1, text
	for {
		i := bytes.Index(rest, what)
		if i < 0 {
			return strings.Join(out, ", ")
		}
		if len(out) == most {
			return strings.Join(out, ", ") + ", …"
		}
		out = append(out, fmt.Sprint(line+bytes.Count(rest[:i], []byte("\n"))))
		line += bytes.Count(rest[:i+len(what)], []byte("\n"))
		rest = rest[i+len(what):]
	}
}

var numbered = regexp.MustCompile(`^\s*\d+\t`)

// near says why a text may not have been found: numbers copied from read_file, or white space that differs.
func near(text []byte, old string) string {
	if numbered.MatchString(old) {
		return "; it begins with a line number as read_file shows them, which is not part of the file"
	}
	first := ""
	for line := range strings.Lines(old) {
		if first = strings.TrimSpace(line); first != "" {
			break
		}
	}
	var at []string
	n := 0
	for line := range bytes.Lines(text) {
		if n++; first != "" && len(at) < 5 && strings.TrimSpace(string(line)) == first {
			at = append(at, fmt.Sprint(n))
		}
	}
	if len(at) == 0 {
		return "; read the file again to see what it holds"
	}
	return "; its first line stands, but for white space, at line " + strings.Join(at, ", ") + ": check what follows, and the indentation"
}

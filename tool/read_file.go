package tool

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"belay/agent"
)

//go:embed read_file.md
var readFileText string

// Bounds of one read_file, beside maxFile and MaxText. read_file.md says so.
const (
	defaultLines = 2000
	maxLine      = 2000 // bytes shown of one line
)

type readFileArgs struct {
	Path   string `json:"path" jsonschema:"minLength=1,maxLength=4096" jsonschema_description:"The file: relative to the folder that the task starts in, or absolute below /workspace."`
	Offset whole  `json:"offset,omitempty" jsonschema:"minimum=1,maximum=100000000" jsonschema_description:"The first line to show, counted from 1. Default 1."`
	Limit  whole  `json:"limit,omitempty" jsonschema:"minimum=1,maximum=2000" jsonschema_description:"How many lines to show. Default 2000."`
}

// whole is a whole number in any of the forms that JSON gives it: 10, 10.0, 1e1.
type whole int

// UnmarshalJSON reads a number that Set.Check found to be whole.
func (w *whole) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	if f != float64(int32(f)) {
		return fmt.Errorf("%s is not a whole number of at most 32 bits", cut(string(b), 40))
	}
	*w = whole(f)
	return nil
}

type readFile struct{ described }

func newReadFile() Tool { return readFile{describe[readFileArgs]("read_file", readFileText)} }

// Plan of a read: it reads one path.
func (readFile) Plan(dir string, args json.RawMessage) (Plan, error) {
	a, err := read[readFileArgs](args)
	if err != nil {
		return Plan{}, err
	}
	abs, err := resolve(dir, a.Path)
	if err != nil {
		return Plan{}, err
	}
	return Plan{
		Effect:    agent.EffectPure,
		Risk:      agent.RiskLow,
		Resources: agent.Resources{Reads: []string{abs}},
		Summary:   summary("read", short(dir, abs)),
	}, nil
}

// Run shows lines of a file, and remembers what the file held.
func (readFile) Run(ctx context.Context, env Env, args json.RawMessage) (agent.Observation, error) {
	a, err := read[readFileArgs](args)
	if err != nil {
		return invalid(env, err), nil
	}
	abs, err := resolve(env.Dir, a.Path)
	if err != nil {
		return invalid(env, err), nil
	}
	return inWorkspaceOf(ctx, env, func(root *os.Root) (string, error) {
		c, err := load(root, abs)
		switch {
		case err != nil:
			return "", err
		case c.digest == "":
			return "", absent(root, env, c.path)
		case c.binary():
			return "", refuse("%s is a binary file of %d bytes, sha256:%s; it can't be shown as text",
				short(env.Dir, abs), len(c.bytes), c.digest)
		}
		if err := saw(ctx, env, c.path, c.digest); err != nil {
			return "", err
		}
		name := short(env.Dir, abs)
		if c.path != abs {
			name += " (a link to " + short(env.Dir, c.path) + ")"
		}
		return page(name, c.bytes, max(1, int(a.Offset)), int(a.Limit))
	})
}

// page shows lines of a text, numbered from 1, and says what is not shown.
func page(name string, text []byte, offset, limit int) (string, error) {
	if limit <= 0 {
		limit = defaultLines
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	total := len(lines)
	switch {
	case total == 0:
		return name + ": empty file", nil
	case offset > total:
		return "", refuse("%s has %s; expected an offset of at most that, not %d", name, plural(total, "line"), offset)
	}
	var b strings.Builder
	shown := 0
	for _, l := range lines[offset-1 : min(total, offset-1+limit)] {
		line := fmt.Sprintf("%6d\t%s\n", offset+shown, shownLine(l))
		if b.Len()+len(line) > MaxText-400 { // the header
			break
		}
		b.WriteString(line)
		shown++
	}
	last := offset + shown - 1
	header := fmt.Sprintf("%s: lines %d-%d of %d%s", name, offset, last, total, remarks(text))
	if last < total {
		header += fmt.Sprintf("; go on with offset %d", last+1)
	}
	return cut(header, 380) + "\n" + b.String(), nil
}

// remarks says what the lines of a text don't show.
func remarks(text []byte) string {
	out := ""
	if bytes.Contains(text, []byte("\r\n")) {
		out += "; lines end in CRLF"
		if !crlf(text) {
			out += " and in LF"
		}
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		out += "; no newline at the end"
	}
	if !bytes.Equal(text, bytes.ToValidUTF8(text, nil)) {
		out += "; not UTF-8, other bytes are shown as \uFFFD"
	}
	return out
}

// crlf says whether every line of a text ends in CRLF, and at least one does.
func crlf(text []byte) bool {
	n := bytes.Count(text, []byte("\r\n"))
	return n > 0 && n == bytes.Count(text, []byte("\n"))
}

func shownLine(l []byte) string {
	l = bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r"))
	s := visible(string(l[:min(len(l), 2*maxLine)]))
	if len(s) <= maxLine && len(l) <= 2*maxLine {
		return s
	}
	kept := boundary(s, maxLine)
	return fmt.Sprintf("%s… %d bytes more", s[:kept], max(len(l), len(s))-kept)
}

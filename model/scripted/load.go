package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"belay/agent"
)

// MaxFile is how large a scenario file may be, in bytes.
const MaxFile = 4 << 20

// Load reads a scenario file, or every .yaml file of a folder. The error is of type InvalidInput and names file, line, what
// stood there and what was expected.
func Load(path string) ([]*Scenario, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, agent.Errorf(agent.InvalidInput, "scenario: %w", err)
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil || len(files) == 0 {
			return nil, agent.Errorf(agent.InvalidInput, "%s: holds no scenario; expected at least one .yaml file", path)
		}
	}
	seen := map[string]string{}
	var all []*Scenario
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, agent.Errorf(agent.InvalidInput, "scenario: %w", err)
		}
		s, err := Parse(file, b)
		if err != nil {
			return nil, err
		}
		if other, taken := seen[s.Name]; taken {
			return nil, agent.Errorf(agent.InvalidInput, "%s:1: name: %q is the name of %s too; expected one of its own", file, s.Name, other)
		}
		seen[s.Name] = file
		all = append(all, s)
	}
	return all, nil
}

// Parse reads one scenario. file is its name in errors, and without folder and extension the scenario's default name.
func Parse(file string, data []byte) (*Scenario, error) {
	refused := func(line int, format string, args ...any) error {
		return agent.Errorf(agent.InvalidInput, "%s:%d: %w", file, line, fmt.Errorf(format, args...))
	}
	if len(data) > MaxFile {
		return nil, refused(1, "%d bytes; expected at most %d", len(data), MaxFile)
	}
	var doc, more yaml.Node
	read := yaml.NewDecoder(bytes.NewReader(data))
	if err := read.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		line, text := syntaxError(err)
		return nil, refused(line, "not YAML: %s", text)
	}
	if len(doc.Content) == 0 {
		return nil, refused(1, "empty; expected a scenario with rules")
	}
	if err := read.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, refused(max(more.Line, 1), "more than one document; expected one scenario")
	}
	root := doc.Content[0]
	if p := fit(root, scenarioType, ""); p != nil {
		return nil, refused(p.line, "%s", p)
	}
	s := &Scenario{Name: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))}
	if err := root.Decode(s); err != nil {
		line, text := syntaxError(err)
		return nil, refused(line, "%s", text)
	}
	if err := s.validate(); err != nil {
		var p *problem
		if errors.As(err, &p) {
			return nil, refused(lineOf(root, p.at), "%s", p)
		}
		return nil, refused(1, "%w", err)
	}
	return s, nil
}

// syntaxError takes the line out of an error of the YAML library, and its first line of text.
func syntaxError(err error) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "yaml: ")
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "unmarshal errors:\n  "), "\n")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, after, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				return n, after
			}
		}
	}
	return 1, text
}

// lineOf finds the line of a path such as rules[2].when.turn, or of the nearest node above it that exists.
func lineOf(n *yaml.Node, at string) int {
	for at != "" {
		var next *yaml.Node
		if rest, ok := strings.CutPrefix(at, "["); ok {
			var index string
			index, at, _ = strings.Cut(rest, "]")
			if i, err := strconv.Atoi(index); err == nil && i < len(n.Content) {
				next = n.Content[i]
			}
		} else {
			at = strings.TrimPrefix(at, ".")
			end := strings.IndexAny(at, ".[")
			if end < 0 {
				end = len(at)
			}
			next = valueOf(n, at[:end])
			at = at[end:]
		}
		if next == nil {
			return n.Line
		}
		n = next
	}
	return n.Line
}

func valueOf(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

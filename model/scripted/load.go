package scripted

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"belay/agent"
	"belay/strictyaml"
)

// MaxFile is how large a scenario file may be, in bytes.
const MaxFile = 4 << 20

// Load reads a scenario file, or every .yaml file of a folder. The error is of type InvalidInput and tells what is
// wrong with the first file that is.
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

// Parse reads one scenario. file is its name in errors, and without folder and extension the scenario's default name. The
// error is of type InvalidInput and joins a strictyaml.Problem for each thing that is wrong.
func Parse(file string, data []byte) (*Scenario, error) {
	if len(data) > MaxFile {
		p := &strictyaml.Problem{File: file, Line: 1, Text: fmt.Sprintf("%d bytes; expected at most %d", len(data), MaxFile)}
		return nil, agent.Errorf(agent.InvalidInput, "%w", p)
	}
	s := &Scenario{Name: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))}
	doc, err := strictyaml.Decode(file, data, s)
	if err != nil {
		return nil, agent.Errorf(agent.InvalidInput, "%w", err)
	}
	c := checker{doc: doc}
	c.scenario(s)
	if err := strictyaml.Join(c.problems); err != nil {
		return nil, agent.Errorf(agent.InvalidInput, "%w", err)
	}
	return s, nil
}

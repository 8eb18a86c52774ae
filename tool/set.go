package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"belay/agent"
)

// Set is the tools that an agent may call, by name. It never changes, and may be used from many goroutines.
type Set struct {
	tools   map[string]Tool
	schemas map[string]*validator.Schema
	names   []string // sorted
}

var nameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// NewSet makes a set. It is an error for two tools to have the same name, for a name not to be one that model endpoints
// take (up to 64 of a-z A-Z 0-9 _ -), or for a schema not to be one.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{tools: map[string]Tool{}, schemas: map[string]*validator.Schema{}}
	for i, t := range tools {
		if t == nil {
			return nil, fmt.Errorf("tools[%d]: nil; expected a tool", i)
		}
		spec := t.Spec()
		if !nameForm.MatchString(spec.Name) {
			return nil, fmt.Errorf("tools[%d]: name %q; expected up to 64 of a-z A-Z 0-9 _ -", i, spec.Name)
		}
		if _, twice := s.tools[spec.Name]; twice {
			return nil, fmt.Errorf("tools[%d]: there are two tools named %q", i, spec.Name)
		}
		schema, err := compile(spec)
		if err != nil {
			return nil, err
		}
		s.tools[spec.Name], s.schemas[spec.Name] = t, schema
	}
	s.names = slices.Sorted(maps.Keys(s.tools))
	return s, nil
}

// compile readies a tool's schema for checking. A schema that points elsewhere is refused: it may come from a stranger,
// and neither files nor the network are read for it.
func compile(spec agent.ToolSpec) (*validator.Schema, error) {
	doc, err := validator.UnmarshalJSON(strings.NewReader(string(spec.Schema)))
	if err != nil {
		return nil, fmt.Errorf("tool %s: schema: %w", spec.Name, err)
	}
	const at = "tool:schema"
	c := validator.NewCompiler()
	c.UseLoader(validator.SchemeURLLoader{})
	if err := c.AddResource(at, doc); err != nil {
		return nil, fmt.Errorf("tool %s: schema: %w", spec.Name, err)
	}
	schema, err := c.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("tool %s: schema: %w", spec.Name, err)
	}
	return schema, nil
}

// All makes every tool of this package.
func All() []Tool {
	return []Tool{
		newShell(), newReadFile(), newWriteFile(), newEditFile(), newListFiles(), newSearchFiles(), newAskHuman(),
	}
}

// Default is the set of every tool of this package. It is made once, as deriving and compiling schemas takes milliseconds
// and a run looks for its tools at every call.
func Default() *Set { return everything() }

var everything = sync.OnceValue(func() *Set {
	s, err := NewSet(All()...)
	if err != nil {
		panic(err) // the tools are this package's own, and its tests make the set
	}
	return s
})

// Lookup finds a tool by its exact name.
func (s *Set) Lookup(name string) (Tool, bool) {
	t, ok := s.tools[name]
	return t, ok
}

// Specs is what a model is told about the tools, sorted by name, so that the same tools are always told in the same way.
func (s *Set) Specs() []agent.ToolSpec {
	specs := make([]agent.ToolSpec, 0, len(s.names))
	for _, n := range s.names {
		specs = append(specs, s.tools[n].Spec())
	}
	return specs
}

// Subset is the set of the named tools. An unknown name is an error that gives the nearest one.
func (s *Set) Subset(names []string) (*Set, error) {
	sub := &Set{tools: map[string]Tool{}, schemas: map[string]*validator.Schema{}}
	for i, n := range names {
		t, ok := s.tools[n]
		if !ok {
			return nil, fmt.Errorf("tools[%d]: %w", i, errors.New(s.unknown(n)))
		}
		if _, twice := sub.tools[n]; twice {
			return nil, fmt.Errorf("tools[%d]: %q is listed twice", i, n)
		}
		sub.tools[n], sub.schemas[n] = t, s.schemas[n]
	}
	sub.names = slices.Sorted(maps.Keys(sub.tools))
	return sub, nil
}

// Digest names the set: it changes with anything that a model is told about its tools.
func (s *Set) Digest() agent.Digest {
	specs, err := json.Marshal(s.Specs())
	if err != nil {
		panic(err) // NewSet parsed the schemas, the rest is text
	}
	return contentDigest(specs)
}

// unknown says that there is no tool of that name, and which there is.
func (s *Set) unknown(name string) string {
	if near := agent.Nearest(name, s.names); near != "" {
		return fmt.Sprintf("%s: no such tool; did you mean %q?", quoted(name), near)
	}
	if len(s.names) == 0 {
		return fmt.Sprintf("%s: no such tool; there are none", quoted(name))
	}
	return fmt.Sprintf("%s: no such tool; expected one of %s", quoted(name), strings.Join(s.names, ", "))
}

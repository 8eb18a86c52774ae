package scripted

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"belay/agent"
)

// problem is what is wrong at a place of a scenario.
type problem struct {
	line int
	at   string // path of the field: rules[2].when.turn
	text string
}

func (p *problem) Error() string {
	if p.at == "" {
		return p.text
	}
	return p.at + ": " + p.text
}

var (
	scenarioType = reflect.TypeFor[Scenario]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// fit compares a YAML value with the type that it is meant for and gives the first thing that is wrong. The YAML library
// would drop what it doesn't expect, or say so without a path.
func fit(n *yaml.Node, t reflect.Type, at string) *problem {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	wrong := func(want string) *problem {
		return &problem{line: n.Line, at: at, text: fmt.Sprintf("%s; expected %s", shown(n), want)}
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return wrong("a value without anchors and aliases")
	}
	if reflect.PointerTo(t).Implements(textType) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
			return wrong("text")
		}
		if err := reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
			return &problem{line: n.Line, at: at, text: err.Error()}
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return fitStruct(n, t, at, wrong)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return wrong("a list")
		}
		for i, e := range n.Content {
			if p := fit(e, t.Elem(), fmt.Sprintf("%s[%d]", at, i)); p != nil {
				return p
			}
		}
		return nil
	case reflect.Map:
		return fitMap(n, t, at, wrong)
	case reflect.Interface:
		return fitAny(n, at)
	}
	return fitScalar(n, t, wrong)
}

func fitScalar(n *yaml.Node, t reflect.Type, wrong func(string) *problem) *problem {
	want := map[reflect.Kind]string{reflect.String: "text", reflect.Bool: "true or false", reflect.Int: "a whole number"}[t.Kind()]
	tag := map[reflect.Kind]string{reflect.String: "!!str", reflect.Bool: "!!bool", reflect.Int: "!!int"}[t.Kind()]
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tag || n.Decode(reflect.New(t).Interface()) != nil {
		return wrong(want)
	}
	return nil
}

func fitStruct(n *yaml.Node, t reflect.Type, at string, wrong func(string) *problem) *problem {
	fields := map[string]reflect.Type{}
	var names []string
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("yaml")
		fields[name] = t.Field(i).Type
		names = append(names, name)
	}
	return eachField(n, at, wrong, func(key, value *yaml.Node, at string) *problem {
		ft, known := fields[key.Value]
		if !known {
			want := "expected one of " + strings.Join(names, ", ")
			if near := agent.Nearest(key.Value, names); near != "" {
				want = fmt.Sprintf("did you mean %q?", near)
			}
			return &problem{line: key.Line, at: at, text: "unknown field; " + want}
		}
		return fit(value, ft, at)
	})
}

func fitMap(n *yaml.Node, t reflect.Type, at string, wrong func(string) *problem) *problem {
	return eachField(n, at, wrong, func(_, value *yaml.Node, at string) *problem { return fit(value, t.Elem(), at) })
}

// fitAny checks what becomes JSON: any value with names that are text, whose strings are templates.
func fitAny(n *yaml.Node, at string) *problem {
	switch n.Kind {
	case yaml.MappingNode:
		return fit(n, reflect.TypeFor[map[string]any](), at)
	case yaml.SequenceNode:
		return fit(n, reflect.TypeFor[[]any](), at)
	}
	switch n.ShortTag() {
	case "!!str":
		return fit(n, reflect.TypeFor[Template](), at)
	case "!!int", "!!bool", "!!null":
		return nil
	case "!!float":
		if !strings.ContainsAny(n.Value, "nN") { // .nan and .inf have no JSON form
			return nil
		}
	}
	return &problem{line: n.Line, at: at, text: fmt.Sprintf("%s; expected a value that JSON knows (a date is text: quote it)", shown(n))}
}

// eachField calls f for each field of a mapping, whose names must be text and differ.
func eachField(n *yaml.Node, at string, wrong func(string) *problem, f func(key, value *yaml.Node, at string) *problem) *problem {
	if n.Kind != yaml.MappingNode {
		return wrong("fields with values")
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path := strings.TrimPrefix(at+"."+key.Value, ".")
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			return &problem{line: key.Line, at: at, text: fmt.Sprintf("%s as a name; expected text", shown(key))}
		case slices.Contains(seen, key.Value):
			return &problem{line: key.Line, at: path, text: "given twice"}
		}
		seen = append(seen, key.Value)
		if p := f(key, value, path); p != nil {
			return p
		}
	}
	return nil
}

// shown is a value as an error shows it.
func shown(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "fields with values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Anchor != "":
		return "an anchor"
	case n.ShortTag() == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%.40q", n.Value)
}

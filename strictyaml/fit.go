package strictyaml

import (
	"encoding"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth is how deep a document may nest; nothing that people write comes near.
const maxDepth = 100

// walk compares a document with the type that it is meant for, and notes where everything stands.
type walk struct {
	doc      *Document
	problems []*Problem
}

func (w *walk) wrong(n *yaml.Node, path, format string, args ...any) {
	w.problems = append(w.problems, &Problem{File: w.doc.file, Line: n.Line, Path: path, Text: fmt.Sprintf(format, args...)})
}

var (
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
	anyType  = reflect.TypeFor[any]()
)

// note keeps where something stands: its line is that of its name, which comes first.
func (w *walk) note(path string, line int, value *yaml.Node) {
	if was, named := w.doc.places[path]; named && path != "" {
		line = was.line
	}
	w.doc.places[path] = place{line, value}
}

func (w *walk) fit(n *yaml.Node, t reflect.Type, path string, depth int) {
	w.note(path, n.Line, n)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		w.wrong(n, path, "an anchor or alias; expected the value itself")
	case depth > maxDepth:
		w.wrong(n, path, "nested more than %d deep", maxDepth)
	case t == anyType && n.Kind == yaml.MappingNode:
		w.fitMap(n, reflect.TypeFor[map[string]any](), path, depth)
	case t == anyType && n.Kind == yaml.SequenceNode:
		w.fitList(n, anyType, path, depth)
	case t == anyType:
		w.fitAny(n, path)
	case reflect.PointerTo(t).Implements(textType):
		w.fitText(n, t, path)
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		w.fitMap(n, t, path, depth)
	case t.Kind() == reflect.Slice:
		w.fitList(n, t.Elem(), path, depth)
	default:
		w.fitScalar(n, t, path)
	}
}

// fitMap takes what has named parts: the fields of a struct, or the entries of a map.
func (w *walk) fitMap(n *yaml.Node, t reflect.Type, path string, depth int) {
	if n.Kind != yaml.MappingNode {
		w.wrong(n, path, "%s; expected fields", written(n))
		return
	}
	var fields map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		fields = map[string]reflect.Type{}
		collectFields(t, fields)
	}
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || key.Anchor != "" {
			w.wrong(key, path, "%s as a name; expected text, in quotes where it looks like something else", written(key))
			continue
		}
		at := join(path, key.Value)
		if line, twice := first[key.Value]; twice {
			w.wrong(key, at, "given twice, first on line %d", line)
			continue
		}
		first[key.Value] = key.Line
		w.note(at, key.Line, nil)
		if fields == nil {
			w.fit(value, t.Elem(), at, depth+1)
		} else if ft, known := fields[key.Value]; known {
			w.fit(value, ft, at, depth+1)
		} else {
			w.wrong(key, at, "unknown field; %s", Suggest(key.Value, slices.Sorted(maps.Keys(fields))))
		}
	}
}

func (w *walk) fitList(n *yaml.Node, elem reflect.Type, path string, depth int) {
	if n.Kind != yaml.SequenceNode {
		w.wrong(n, path, "%s; expected a list", written(n))
		return
	}
	for i, e := range n.Content {
		w.fit(e, elem, fmt.Sprintf("%s[%d]", path, i), depth+1)
	}
}

func (w *walk) fitText(n *yaml.Node, t reflect.Type, path string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		w.wrong(n, path, "%s; expected text", written(n))
		return
	}
	if err := reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
		w.wrong(n, path, "%v", err)
	}
}

func (w *walk) fitScalar(n *yaml.Node, t reflect.Type, path string) {
	var want string
	var tags []string
	switch t.Kind() {
	case reflect.String:
		want, tags = "text, in quotes where it looks like something else", []string{"!!str", "!!timestamp"}
	case reflect.Bool:
		want, tags = "true or false", []string{"!!bool"}
	case reflect.Int, reflect.Int64:
		want, tags = "a whole number", []string{"!!int"}
	case reflect.Float64:
		want, tags = "a number", []string{"!!int", "!!float"}
	default:
		w.wrong(n, path, "%s; expected nothing: no file can hold a %s", written(n), t)
		return
	}
	into := reflect.New(t)
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.ShortTag()) || n.Decode(into.Interface()) != nil || !finite(into.Elem()) {
		w.wrong(n, path, "%s; expected %s", written(n), want)
	}
}

// fitAny takes a scalar that JSON has too.
func (w *walk) fitAny(n *yaml.Node, path string) {
	var into any
	tags := []string{"!!str", "!!bool", "!!int", "!!float", "!!null"}
	if !slices.Contains(tags, n.ShortTag()) || n.Decode(&into) != nil || !finite(reflect.ValueOf(into)) {
		w.wrong(n, path, "%s; expected a value that JSON knows (a date is text: quote it)", written(n))
	}
}

func finite(v reflect.Value) bool {
	return v.Kind() != reflect.Float64 || !math.IsNaN(v.Float()) && !math.IsInf(v.Float(), 0)
}

// collectFields gathers the YAML names of a struct as the yaml package knows them, those of inlined structs included.
func collectFields(t reflect.Type, into map[string]reflect.Type) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case strings.Contains(options, "inline"):
			collectFields(f.Type, into)
		case name == "":
			into[strings.ToLower(f.Name)] = f.Type
		default:
			into[name] = f.Type
		}
	}
}

// written is what stands somewhere, as an error message shows it.
func written(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "fields"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.ShortTag() == "!!null":
		return "nothing"
	case n.ShortTag() == "!!str":
		return fmt.Sprintf("%.40q", n.Value)
	}
	return fmt.Sprintf("%.40s", n.Value)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

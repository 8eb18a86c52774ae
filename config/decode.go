package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"belay/agent"
)

// Problem is one thing that is wrong with a file. Its text is one line: "file:line: path: what stands there; what was
// expected".
type Problem struct {
	File string
	Line int    // from 1
	Path string // of the field, such as "limits.max_steps" or "tools[2]"; empty: the file as a whole
	Text string
}

func (p *Problem) Error() string {
	at := fmt.Sprintf("%s:%d: ", p.File, p.Line)
	if p.Path != "" {
		at += p.Path + ": "
	}
	return at + oneLine(p.Text)
}

// oneLine keeps what others wrote from breaking a line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Document knows where everything in a decoded file stands.
type Document struct {
	file  string
	lines map[string]int
}

// Decode reads the one YAML document in src into v strictly: unknown and repeated keys, values of another type, anchors,
// aliases and a second document are refused. The error joins a *Problem for each; file names the source in them.
func Decode(file string, src []byte, v any) (*Document, error) {
	d := &Document{file: file, lines: map[string]int{"": 1}}
	root, err := d.parse(src)
	if err != nil {
		return nil, err
	}
	w := walk{doc: d}
	w.fit(root, reflect.TypeOf(v).Elem(), "", 0)
	if len(w.problems) > 0 {
		return nil, joined(w.problems)
	}
	if err := root.Decode(v); err != nil {
		return nil, d.Problem("", "%v", err)
	}
	return d, nil
}

// Has says whether something is written at path.
func (d *Document) Has(path string) bool {
	_, ok := d.lines[path]
	return ok
}

// Problem makes a Problem of what stands at path. Where nothing stands there it has the line of the nearest field around.
func (d *Document) Problem(path, format string, args ...any) *Problem {
	around := path
	for !d.Has(around) {
		around = around[:max(0, strings.LastIndexAny(around, ".["))]
	}
	return &Problem{File: d.file, Line: d.lines[around], Path: path, Text: fmt.Sprintf(format, args...)}
}

// At makes a Problem of an error whose text begins with a path, as the Validate methods of this project write them:
// "prices.input: -1; expected 0 or more".
func (d *Document) At(err error) *Problem {
	path, text, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		return d.Problem("", "%v", err)
	}
	return d.Problem(path, "%s", text)
}

var syntaxForm = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func (d *Document) parse(src []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		return nil, d.Problem("", "empty; expected a YAML document")
	case err != nil:
		return nil, d.syntax(err)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, &Problem{File: d.file, Line: more.Line, Text: "a second document; expected one"}
	case !errors.Is(err, io.EOF):
		return nil, d.syntax(err)
	}
	return doc.Content[0], nil
}

func (d *Document) syntax(err error) error {
	p := &Problem{File: d.file, Line: 1, Text: "not YAML: " + syntaxForm.ReplaceAllString(err.Error(), "")}
	if m := syntaxForm.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
		p.Line, _ = strconv.Atoi(m[1]) // digits, by the expression
	}
	return p
}

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

func (w *walk) fit(n *yaml.Node, t reflect.Type, path string, depth int) {
	if !w.doc.Has(path) || path == "" {
		w.doc.lines[path] = n.Line
	}
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
		w.doc.lines[at] = key.Line
		if fields == nil {
			w.fit(value, t.Elem(), at, depth+1)
		} else if ft, known := fields[key.Value]; known {
			w.fit(value, ft, at, depth+1)
		} else {
			w.wrong(key, at, "unknown field; %s", suggest(key.Value, slices.Sorted(maps.Keys(fields))))
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
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.ShortTag()) || n.Decode(into.Interface()) != nil {
		w.wrong(n, path, "%s; expected %s", written(n), want)
		return
	}
	if t.Kind() == reflect.Float64 && (math.IsNaN(into.Elem().Float()) || math.IsInf(into.Elem().Float(), 0)) {
		w.wrong(n, path, "%s; expected %s", written(n), want)
	}
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

// suggest says which of the known words was expected instead of word.
func suggest(word string, known []string) string {
	if near := agent.Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "there are none"
	}
	return "expected one of " + strings.Join(known, ", ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document knows where everything in a decoded file stands. Paths are those of Problem.
type Document struct {
	file, source string
	places       map[string]place
}

// place is where something stands.
type place struct {
	line  int        // of its name, if it has one
	value *yaml.Node // nil: nothing there could be read
}

// Decode reads the one YAML document in src into v, a pointer to a struct or map, strictly: see the package. The error joins
// a *Problem for each thing that is wrong; file names the source in them.
func Decode(file string, src []byte, v any) (*Document, error) {
	d := &Document{file: file, source: string(src), places: map[string]place{"": {line: 1}}}
	root, err := d.parse(src)
	if err != nil {
		return nil, err
	}
	w := walk{doc: d}
	w.fit(root, reflect.TypeOf(v).Elem(), "", 0)
	if err := Join(w.problems); err != nil {
		return nil, err
	}
	if err := root.Decode(v); err != nil {
		return nil, d.Problem("", "%v", err)
	}
	return d, nil
}

// Has says whether something is written at path.
func (d *Document) Has(path string) bool {
	_, ok := d.places[path]
	return ok
}

// Problem makes a Problem of what stands at path. Where nothing stands there it has the line of the nearest field around.
func (d *Document) Problem(path, format string, args ...any) *Problem {
	return &Problem{File: d.file, Line: d.line(path), Path: path, Text: fmt.Sprintf(format, args...)}
}

// Place is where something stands, as "file:line".
func (d *Document) Place(path string) string { return fmt.Sprintf("%s:%d", d.file, d.line(path)) }

func (d *Document) line(path string) int {
	for !d.Has(path) {
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return d.places[path].line
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

var (
	syntaxForm = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	anchorForm = regexp.MustCompile(`^unknown anchor '(.+?)'`)
)

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

// syntax makes a Problem of an error of the YAML library, which tells no line for an anchor that it doesn't know.
func (d *Document) syntax(err error) error {
	what := syntaxForm.ReplaceAllString(err.Error(), "")
	p := &Problem{File: d.file, Line: 1, Text: "not YAML: " + what}
	if m := syntaxForm.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
		p.Line, _ = strconv.Atoi(m[1]) // digits, by the expression
	} else if m := anchorForm.FindStringSubmatch(what); m != nil {
		alias := regexp.MustCompile(`(?:^|[\s,\[{])(\*` + regexp.QuoteMeta(m[1]) + `)(?:$|[^\w-])`)
		if at := alias.FindStringSubmatchIndex(d.source); at != nil {
			p.Line = len(lineEnd.Split(d.source[:at[2]], -1))
		}
	}
	return p
}

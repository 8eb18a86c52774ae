package agent

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Decode reads one JSON object into v, strictly: an unknown or repeated field, a value of another type, or anything after
// the object is an InvalidInput error that names the field's path, what stood there and what was expected.
func Decode(raw []byte, v any) error {
	value, err := parse(raw)
	if err != nil {
		return Errorf(InvalidInput, "%w", err)
	}
	if errs := fit("", value, reflect.TypeOf(v).Elem()); len(errs) > 0 {
		return Errorf(InvalidInput, "%w", errs[0])
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return Errorf(InvalidInput, "%w", err)
	}
	return nil
}

// object is a JSON object with its fields in the order in which they were written.
type object struct {
	names  []string
	values map[string]any
}

// parse reads one JSON value; objects become *object, so that a repeated name is an error and order is kept.
func parse(raw []byte) (any, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("not valid UTF-8")
	}
	p := parser{json.NewDecoder(bytes.NewReader(raw))}
	p.UseNumber()
	v, err := p.value("", 0)
	if err != nil {
		return nil, p.explain(err)
	}
	if _, err := p.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("not a JSON object: there is more after its end, at byte %d", p.InputOffset())
	}
	return v, nil
}

// maxDepth is how deep objects and arrays may nest; nothing that people write comes near.
const maxDepth = 100

type parser struct{ *json.Decoder }

// explain says where the JSON itself is broken; what value and object found is said already.
func (p parser) explain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("not a JSON object: it is empty or cut short")
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not a JSON object: %w, at byte %d", err, syntax.Offset)
	}
	return err
}

func (p parser) value(at string, depth int) (any, error) {
	t, err := p.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: nested more than %d deep", clip(at), maxDepth)
	}
	switch t {
	case json.Delim('{'):
		return p.object(at, depth)
	case json.Delim('['):
		list := []any{}
		for p.More() {
			v, err := p.value(fmt.Sprintf("%s[%d]", at, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := p.Token()
		return list, err
	}
	return t, nil
}

func (p parser) object(at string, depth int) (any, error) {
	o := &object{values: map[string]any{}}
	for p.More() {
		t, err := p.Token()
		if err != nil {
			return nil, err
		}
		name := t.(string) // the decoder lets nothing else stand here
		if _, twice := o.values[name]; twice {
			return nil, fmt.Errorf("%s: given twice", join(at, name))
		}
		v, err := p.value(join(at, name), depth+1)
		if err != nil {
			return nil, err
		}
		o.names = append(o.names, name)
		o.values[name] = v
	}
	_, err := p.Token()
	return o, err
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// fit compares a parsed value with the type it is meant for.
func fit(at string, v any, t reflect.Type) []error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	wrong := func(want string) []error {
		return []error{fmt.Errorf("%s: %s; expected %s", orRoot(at), shown(v), want)}
	}
	if t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface {
		return nil
	}
	if reflect.PointerTo(t).Implements(textType) {
		return fitText(at, v, t)
	}
	switch t.Kind() {
	case reflect.Struct:
		return fitStruct(at, v, t)
	case reflect.Map:
		o, ok := v.(*object)
		if !ok {
			return wrong("an object")
		}
		var errs []error
		for _, name := range o.names {
			errs = append(errs, fit(join(at, name), o.values[name], t.Elem())...)
		}
		return errs
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			return wrong("an array")
		}
		var errs []error
		for i, e := range list {
			errs = append(errs, fit(fmt.Sprintf("%s[%d]", at, i), e, t.Elem())...)
		}
		return errs
	}
	return fitScalar(v, t, wrong)
}

func fitScalar(v any, t reflect.Type, wrong func(string) []error) []error {
	switch t.Kind() {
	case reflect.String:
		if _, ok := v.(string); !ok {
			return wrong("a string")
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			return wrong("true or false")
		}
	case reflect.Int, reflect.Int64:
		n, ok := v.(json.Number)
		if _, err := n.Int64(); !ok || err != nil {
			return wrong("a whole number")
		}
	case reflect.Float64:
		n, ok := v.(json.Number)
		if _, err := n.Float64(); !ok || err != nil {
			return wrong("a number")
		}
	}
	return nil
}

func fitText(at string, v any, t reflect.Type) []error {
	s, ok := v.(string)
	if !ok {
		want := "a string"
		if t == reflect.TypeFor[Duration]() {
			want = `a duration such as "90s" or "2h"`
		}
		return []error{fmt.Errorf("%s: %s; expected %s", orRoot(at), shown(v), want)}
	}
	if err := reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
		return []error{fmt.Errorf("%s: %w", orRoot(at), err)}
	}
	return nil
}

func fitStruct(at string, v any, t reflect.Type) []error {
	o, ok := v.(*object)
	if !ok {
		return []error{fmt.Errorf("%s: %s; expected an object", orRoot(at), shown(v))}
	}
	fields := fieldsOf(t)
	_, zeroIsUnset := reflect.Zero(t).Interface().(interface{ zeroIsUnset() })
	var errs []error
	for _, name := range o.names {
		n := slices.IndexFunc(fields, func(f member) bool { return f.name == name })
		if n < 0 {
			errs = append(errs, unknownField(join(at, name), name, fields))
			continue
		}
		ft := fields[n].of
		errs = append(errs, fit(join(at, name), o.values[name], ft)...)
		if zeroIsUnset && isZero(o.values[name], ft) {
			errs = append(errs, fmt.Errorf("%s: %s; expected a positive value, or leave it out", join(at, name), shown(o.values[name])))
		}
	}
	return errs
}

// isZero says whether a number or duration was written as zero.
func isZero(v any, t reflect.Type) bool {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return err == nil && f == 0
	case string:
		var d Duration
		return t == reflect.TypeFor[Duration]() && d.UnmarshalText([]byte(v)) == nil && d == 0
	}
	return false
}

// member is a struct's field by its JSON name.
type member struct {
	name string
	of   reflect.Type
}

// fieldsOf gives the fields of a struct, those of embedded structs included. It is a list and no map, since workflow code
// comes here.
func fieldsOf(t reflect.Type) (fields []member) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			fields = append(fields, fieldsOf(f.Type)...)
		case name != "" && name != "-":
			fields = append(fields, member{name: name, of: f.Type})
		}
	}
	return fields
}

func unknownField(at, name string, fields []member) error {
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		known = append(known, f.name)
	}
	slices.Sort(known)
	if near := Nearest(name, known); near != "" {
		return fmt.Errorf("%s: unknown field; did you mean %q?", at, near)
	}
	return fmt.Errorf("%s: unknown field; expected one of %s", at, strings.Join(known, ", "))
}

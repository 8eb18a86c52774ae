package agent

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strings"
)

// Decode reads one JSON object into v, strictly: an unknown or repeated field, a value of another type, or anything after
// the object is an InvalidInput error that names the field's path, what stood there and what was expected.
func Decode(raw []byte, v any) error {
	value, err := parse(raw)
	if err != nil {
		return Errorf(InvalidInput, "not a JSON object: %w", err)
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
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := parseValue(d, "")
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty or cut short")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the object's end")
	}
	return v, nil
}

func parseValue(d *json.Decoder, at string) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		return parseObject(d, at)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d, fmt.Sprintf("%s[%d]", at, len(list)))
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}

func parseObject(d *json.Decoder, at string) (any, error) {
	o := &object{values: map[string]any{}}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := t.(string) // the decoder lets nothing else stand here
		if _, twice := o.values[name]; twice {
			return nil, fmt.Errorf("%s: given twice", join(at, name))
		}
		v, err := parseValue(d, join(at, name))
		if err != nil {
			return nil, err
		}
		o.names = append(o.names, name)
		o.values[name] = v
	}
	_, err := d.Token()
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
	return fitScalar(at, v, t, wrong)
}

func fitScalar(_ string, v any, t reflect.Type, wrong func(string) []error) []error {
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
		return []error{fmt.Errorf("%s: %s; expected a string", orRoot(at), shown(v))}
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
	fields := map[string]reflect.Type{}
	collectFields(t, fields)
	var errs []error
	for _, name := range o.names {
		ft, known := fields[name]
		if !known {
			errs = append(errs, unknownField(join(at, name), name, fields))
			continue
		}
		errs = append(errs, fit(join(at, name), o.values[name], ft)...)
	}
	return errs
}

// collectFields gathers the JSON names of a struct, those of embedded structs included.
func collectFields(t reflect.Type, into map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			collectFields(f.Type, into)
		case name != "" && name != "-":
			into[name] = f.Type
		}
	}
}

func unknownField(at, name string, fields map[string]reflect.Type) error {
	known := make([]string, 0, len(fields))
	for f := range fields {
		known = append(known, f)
	}
	sort.Strings(known)
	if near := Nearest(name, known); near != "" {
		return fmt.Errorf("%s: unknown field; did you mean %q?", at, near)
	}
	return fmt.Errorf("%s: unknown field; expected one of %s", at, strings.Join(known, ", "))
}

// Nearest gives the known word that a mistyped one most likely meant, or the empty string when none is near.
func Nearest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

func orRoot(at string) string {
	if at == "" {
		return "input"
	}
	return at
}

// shown is a value as an error message shows it: short, and never a whole document.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case *object:
		return "an object"
	case []any:
		return "an array"
	case string:
		if len(v) > 40 {
			v = v[:40] + "…"
		}
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

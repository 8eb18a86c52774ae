package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"belay/agent"
)

// maxViolations is how many things that are wrong a model is told at once.
const maxViolations = 8

// violations compares arguments with a schema: for everything that is wrong one line with the place, what stands there,
// and what was expected.
func violations(schema *validator.Schema, doc any) []string {
	object, ok := doc.(map[string]any)
	if !ok {
		hint := ""
		if _, text := doc.(string); text {
			hint = ": write the object itself, not text that holds it"
		}
		return []string{fmt.Sprintf("arguments: %s; expected an object%s", valueShown(doc), hint)}
	}
	err := schema.Validate(object)
	if err == nil {
		return nil
	}
	v, ok := errors.AsType[*validator.ValidationError](err)
	if !ok {
		return []string{"arguments: " + oneLine(err.Error())}
	}
	lines := explain(v, schema, doc)
	slices.Sort(lines) // the validator walks maps
	if more := len(lines) - maxViolations; more > 0 {
		lines = append(lines[:maxViolations], fmt.Sprintf("arguments: and %d more", more))
	}
	return lines
}

// explain turns one violation, or those below it, into lines.
func explain(v *validator.ValidationError, root *validator.Schema, doc any) []string {
	at := located(v.InstanceLocation)
	line := func(got, want string) []string {
		return []string{oneLine(fmt.Sprintf("%s: %s; expected %s", at, got, want))}
	}
	got := valueShown(find(doc, v.InstanceLocation))
	switch k := v.ErrorKind.(type) {
	case *kind.Required:
		return missing(v.InstanceLocation, k.Missing, root)
	case *kind.AdditionalProperties:
		return surplus(v.InstanceLocation, k.Properties, root)
	case *kind.Type:
		return line(got, expectedTypes(k.Want))
	case *kind.Enum:
		return line(got, "one of "+listed(k.Want))
	case *kind.Const:
		return line(got, listed([]any{k.Want}))
	case *kind.MinLength:
		if k.Got == 0 {
			return line("empty", "some text")
		}
		return line(plural(k.Got, "character"), fmt.Sprintf("at least %d", k.Want))
	case *kind.MaxLength:
		return line(plural(k.Got, "character"), fmt.Sprintf("at most %d", k.Want))
	case *kind.MinItems:
		return line(plural(k.Got, "entry"), fmt.Sprintf("at least %d", k.Want))
	case *kind.MaxItems:
		return line(plural(k.Got, "entry"), fmt.Sprintf("at most %d", k.Want))
	case *kind.UniqueItems:
		return line(fmt.Sprintf("entries %d and %d are the same", k.Duplicates[0], k.Duplicates[1]), "each once")
	case *kind.Pattern:
		return line(got, "text of the form "+k.Want)
	case *kind.Minimum:
		return line(got, "at least "+number(k.Want))
	case *kind.Maximum:
		return line(got, "at most "+number(k.Want))
	case *kind.ExclusiveMinimum:
		return line(got, "more than "+number(k.Want))
	case *kind.ExclusiveMaximum:
		return line(got, "less than "+number(k.Want))
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		return line(got, "what the schema allows there")
	}
	if len(v.Causes) == 0 {
		return []string{oneLine(at + ": " + v.ErrorKind.LocalizedString(message.NewPrinter(language.English)))}
	}
	var lines []string
	for _, c := range v.Causes {
		lines = append(lines, explain(c, root, doc)...)
	}
	return lines
}

// missing tells of fields that must be there.
func missing(at []string, names []string, root *validator.Schema) (lines []string) {
	for _, n := range names {
		want := "a value"
		if p := root.Properties[n]; len(at) == 0 && p != nil && p.Types != nil {
			want = expectedTypes(p.Types.ToStrings())
		}
		lines = append(lines, fmt.Sprintf("%s: missing; expected %s", located(slices.Concat(at, []string{n})), want))
	}
	return lines
}

// surplus tells of fields that the schema doesn't know.
func surplus(at []string, names []string, root *validator.Schema) (lines []string) {
	for _, n := range names {
		advice := "leave it out"
		if len(at) == 0 {
			known := make([]string, 0, len(root.Properties))
			for p := range root.Properties {
				known = append(known, p)
			}
			slices.Sort(known)
			advice = "expected one of " + strings.Join(known, ", ")
			if near := agent.Nearest(n, known); near != "" {
				advice = fmt.Sprintf("did you mean %q?", near)
			}
		}
		lines = append(lines, oneLine(fmt.Sprintf("%s: unknown argument; %s", located(slices.Concat(at, []string{n})), advice)))
	}
	return lines
}

// located is a place in the arguments as people write it: choices[2].label.
func located(at []string) string {
	var b strings.Builder
	for _, step := range at {
		switch _, err := strconv.Atoi(step); {
		case err == nil && b.Len() > 0:
			b.WriteString("[" + step + "]")
		case b.Len() > 0:
			b.WriteString("." + step)
		default:
			b.WriteString(step)
		}
	}
	if b.Len() == 0 {
		return "arguments"
	}
	return cut(oneLine(b.String()), 80)
}

// find is the value at a place.
func find(doc any, at []string) any {
	for _, step := range at {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil
			}
			doc = v[i]
		}
	}
	return doc
}

// valueShown is a value as an error shows it: short, and with its type where that may be what is wrong.
func valueShown(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		return quoted(v) + " (a string)"
	case json.Number:
		return cut(v.String(), 40)
	}
	return fmt.Sprint(v)
}

// expectedTypes names JSON types in words.
func expectedTypes(types []string) string {
	words := map[string]string{
		"string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false",
		"object": "an object", "array": "an array", "null": "null",
	}
	out := make([]string, 0, len(types))
	for _, t := range types {
		out = append(out, words[t])
	}
	return strings.Join(out, " or ")
}

func listed(values []any) string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return "what the schema names" // not with values that came from JSON
		}
		out = append(out, string(b))
	}
	return cut(strings.Join(out, ", "), 300)
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return r.FloatString(3)
}

func plural(n int, word string) string {
	switch {
	case n == 1:
		return "1 " + word
	case strings.HasSuffix(word, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(word, "y"))
	case strings.HasSuffix(word, "ch"), strings.HasSuffix(word, "s"):
		return fmt.Sprintf("%d %ses", n, word)
	}
	return fmt.Sprintf("%d %ss", n, word)
}

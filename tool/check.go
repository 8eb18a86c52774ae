package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"belay/agent"
)

// Fault says what is wrong with a call that a model asked for.
type Fault string

// The faults, in the order in which they are looked for.
const (
	FaultUnknownTool Fault = "unknown_tool"
	FaultNotJSON     Fault = "not_json"  // or JSON that two readers may read differently
	FaultArguments   Fault = "arguments" // JSON that does not fit the tool's schema
)

// CallError is a call that can't be judged, let alone run. Its text tells the model how to mend it, one line for each
// thing that is wrong.
type CallError struct {
	Fault Fault
	Text  string
}

func (e *CallError) Error() string { return e.Text }

// Bounds of a call's arguments: what is beyond them is never parsed further.
const (
	MaxArguments = 1 << 20 // bytes
	maxNesting   = 64      // objects and arrays within each other
)

// Check gives the arguments of a call as JSON that fits its tool's schema, or a *CallError. Arguments that are left
// empty are an empty object, as many models write it.
func (s *Set) Check(call agent.ToolCall) (json.RawMessage, error) {
	if _, ok := s.tools[call.Tool]; !ok {
		return nil, &CallError{FaultUnknownTool, s.unknown(call.Tool)}
	}
	raw := strings.TrimSpace(call.Arguments)
	if raw == "" {
		raw = "{}"
	}
	doc, err := parse(raw)
	if err != nil {
		return nil, &CallError{FaultNotJSON, call.Tool + ": " + err.Error()}
	}
	if wrong := violations(s.schemas[call.Tool], doc); len(wrong) > 0 {
		return nil, &CallError{FaultArguments, call.Tool + ": " + strings.Join(wrong, "\n"+call.Tool+": ")}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(raw)); err != nil {
		return nil, &CallError{FaultNotJSON, fmt.Sprintf("%s: arguments: %v", call.Tool, err)}
	}
	return compact.Bytes(), nil
}

// parse reads the arguments of a call: one JSON value of which there is only one reading.
func parse(raw string) (any, error) {
	if len(raw) > MaxArguments {
		return nil, fmt.Errorf("arguments: %d bytes; expected at most %d: do it in several calls", len(raw), MaxArguments)
	}
	if !utf8.ValidString(raw) {
		return nil, errors.New("arguments: not valid UTF-8; expected JSON in UTF-8")
	}
	if err := json.Unmarshal([]byte(raw), new(json.RawMessage)); err != nil {
		return nil, notJSON(raw, err)
	}
	if at := loneSurrogate(raw); at >= 0 {
		return nil, fmt.Errorf("arguments: %s at byte %d is half of a character; expected both halves of the pair, or the character itself", raw[at:at+6], at)
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	return parseValue(d, nil)
}

// notJSON says where JSON ends to be JSON.
func notJSON(raw string, err error) error {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok || syntax.Error() == "unexpected end of JSON input" { // it has no other mark
		return fmt.Errorf("arguments: not JSON: cut short after %d bytes; expected one whole JSON object", len(raw))
	}
	from := max(0, int(syntax.Offset)-20)
	return fmt.Errorf("arguments: not JSON at byte %d, after %s: %v; expected one JSON object",
		syntax.Offset, quoted(strings.ToValidUTF8(raw[from:syntax.Offset], "")), err)
}

// loneSurrogate finds the first \u escape that is only half of a UTF-16 pair: Go would read it as U+FFFD, and what is
// written would silently not be what was asked for. It is -1 when there is none. The text must be valid JSON.
func loneSurrogate(raw string) int {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		unit := hex4(raw[i+1:])
		switch {
		case unit >= 0xD800 && unit < 0xDC00 && strings.HasPrefix(raw[i+5:], `\u`) && hex4(raw[i+7:])&0xFC00 == 0xDC00:
			i += 6
		case unit >= 0xD800 && unit < 0xE000:
			return i - 1
		}
	}
	return -1
}

func hex4(s string) uint64 {
	n, err := strconv.ParseUint(s[:4], 16, 16)
	if err != nil {
		return 0 // not in valid JSON
	}
	return n
}

// parseValue reads one value, refusing a name that an object gives twice: which of the two counts depends on the reader.
func parseValue(d *json.Decoder, at []string) (any, error) {
	if len(at) > maxNesting {
		return nil, fmt.Errorf("arguments: nested more than %d deep", maxNesting)
	}
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("arguments: not JSON: %w", err)
	}
	switch t := t.(type) {
	case json.Number:
		return t, checkNumber(t, at)
	case json.Delim:
		if t == '[' {
			return parseArray(d, at)
		}
		return parseObject(d, at)
	}
	return t, nil
}

func parseObject(d *json.Decoder, at []string) (any, error) {
	object := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("arguments: not JSON: %w", err)
		}
		name := t.(string) // the text is valid JSON: nothing else stands here
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("%s: given twice; expected once", located(append(at, name)))
		}
		if object[name], err = parseValue(d, append(at, name)); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}

func parseArray(d *json.Decoder, at []string) (any, error) {
	list := []any{}
	for d.More() {
		v, err := parseValue(d, append(at, strconv.Itoa(len(list))))
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

// checkNumber refuses what a double can't hold: canonical JSON has no form for it, and exact arithmetic on it has no end.
func checkNumber(n json.Number, at []string) error {
	f, err := n.Float64()
	mantissa, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
	if err != nil || len(n) > 64 || (f == 0 && strings.ContainsAny(mantissa, "123456789")) {
		return fmt.Errorf("%s: %s; expected a number that a double can hold", located(at), cut(n.String(), 40))
	}
	return nil
}

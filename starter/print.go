package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"belay/agent"
)

// object writes one JSON object on a line of its own, with the costs in it rounded.
func (c *cli) object(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := c.stdout.Write(cost.ReplaceAllFunc(b.Bytes(), rounded))
	return err
}

// cost is a cost in JSON. Within a string its quotes would have backslashes.
var cost = regexp.MustCompile(`"cost_usd":[-+.0-9eE]+`)

// rounded cuts what a sum of floats has too much: costs are exact to a billionth of a dollar.
func rounded(field []byte) []byte {
	name, number, _ := bytes.Cut(field, []byte(":"))
	usd, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return field
	}
	return fmt.Appendf(nil, "%s:%s", name, strconv.FormatFloat(math.Round(usd*1e9)/1e9, 'f', -1, 64))
}

// terminal says whether w shows to a person.
func terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// drawable says whether w is a terminal with room to draw on.
func drawable(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && height > 0
}

// clean makes a text of a model's or a stranger's safe to show: what could steer a terminal, or reorder what is read, is
// spelled out.
func clean(s string) string {
	if strings.IndexFunc(s, unsafe) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unsafe(r):
			fmt.Fprint(&b, strings.Trim(fmt.Sprintf("%+q", r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unsafe(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }

// line makes one line of a text, cut to n runes.
func line(s string, n int) string {
	s = clean(strings.Join(strings.Fields(s), " "))
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// indented puts every line of a text below a margin.
func indented(s, margin string) string {
	return margin + strings.ReplaceAll(strings.TrimRight(clean(s), "\n"), "\n", "\n"+margin)
}

// aligned sets lines with tabs as a table.
func aligned(s string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	_, _ = io.WriteString(w, s) // a Builder does not fail
	_ = w.Flush()
	return b.String()
}

// pairs are labelled values; those without a value are left out.
type pairs []struct {
	label string
	value any
}

// String sets the pairs one a line.
func (p pairs) String() string {
	var b strings.Builder
	for _, pair := range p {
		if v := fmt.Sprint(pair.value); v != "" && v != "[]" && v != "map[]" {
			fmt.Fprintf(&b, "%s\t%s\n", pair.label, strings.ReplaceAll(strings.TrimSpace(clean(v)), "\n", "\n\t"))
		}
	}
	return strings.TrimRight(aligned(b.String()), "\n")
}

// names lists people or other names.
func names[T ~string](list []T) string {
	var s []string
	for _, n := range list {
		s = append(s, string(n))
	}
	return strings.Join(s, ", ")
}

// arguments sets the arguments of a call for a reader: text as it is, everything else as JSON.
func arguments(raw string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &fields) != nil {
		return indented(raw, "    ")
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var text string
		if json.Unmarshal(fields[name], &text) == nil {
			fmt.Fprintf(&b, "  %s:\n%s\n", clean(name), indented(text, "    "))
			continue
		}
		fmt.Fprintf(&b, "  %s: %s\n", clean(name), clean(string(fields[name])))
	}
	return strings.TrimRight(b.String(), "\n")
}

// pretty sets JSON over several lines.
func pretty(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// spent is a usage against its limits.
func spent(u agent.Usage, l agent.Limits) string {
	return fmt.Sprintf("%d of %d tokens · $%.4f of $%.2f · %d of %d calls", u.Tokens(), l.MaxTokens, u.CostUSD, l.MaxCostUSD, u.ToolCalls, l.MaxToolCalls)
}

// shellQuoted makes one word of s for a POSIX shell.
func shellQuoted(s string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./@:=", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

package tool

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is how many bytes of text the model gets from one call. The Markdown files say so.
const MaxText = 30 << 10

// maxSummary is how many bytes a Plan's summary has at the most.
const maxSummary = 120

// control matches what steers a terminal instead of being text: CSI sequences (colours, cursor), OSC and other strings
// up to their end, and the short escapes.
var control = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[PX^_\]][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]`)

// plain is the output of a program as text: UTF-8 with a replacement character for each run of other bytes, lines that end in "\n", and
// nothing that steers a terminal.
func plain(output []byte) string {
	s := strings.ToValidUTF8(string(output), "\uFFFD")
	s = control.ReplaceAllLiteralString(s, "")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// visible is the content of a file as text: what steers a terminal is shown as a picture of itself ("␛"), so that a model
// sees that it is there and a terminal doesn't obey it. Line ends and tabs stay.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return 0x2421
		case unicode.IsControl(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// oneLine is a text as one line on which a person may rely: every character that is not seen, or that changes how others
// are seen, is made visible.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// summary is a call in a few words: one line of at most maxSummary bytes.
func summary(parts ...string) string {
	return cut(oneLine(strings.Join(parts, " ")), maxSummary)
}

// cut shortens a text to at most n bytes, between characters, and shows that it did.
func cut(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	return s[:boundary(s, n-len(mark))] + mark
}

// quoted is a text as an error shows it: in quotes, on one line, and short.
func quoted(s string) string {
	return strconv.Quote(cut(s, 60))
}

// boundary is the last place at or before i that is between two characters.
func boundary(s string, i int) int {
	i = max(i, 0)
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// lineCut shortens text to at most n bytes of whole lines, where a line is not longer than that, and says how many lines
// remain.
func lineCut(s string, n int) (kept string, left int) {
	if len(s) <= n {
		return s, 0
	}
	end := strings.LastIndexByte(s[:n], '\n') + 1
	if end == 0 {
		end = boundary(s, n)
	}
	rest := strings.TrimSuffix(s[end:], "\n")
	return s[:end], strings.Count(rest, "\n") + 1
}

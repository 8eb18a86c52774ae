package agent

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Nearest gives the known word that a mistyped or shortened one most likely meant, or the empty string when none is near.
func Nearest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, k := range known {
		if strings.HasPrefix(k, word) {
			return k
		}
	}
	return ""
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
	if !plainName.MatchString(name) {
		name = shown(name)
	}
	if at == "" {
		return name
	}
	return at + "." + name
}

// plainName is a field name that an error message shows as it is.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

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
		return fmt.Sprintf("%q", clip(v))
	}
	return clip(fmt.Sprint(v))
}

// clip cuts a long text.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

package tool

import (
	"fmt"
	"regexp"
	"strings"
)

// compileGlob makes a matcher for paths out of a glob: "*" and "?" match within one name, "**" any folders, "[ab]" and
// "[!ab]" a character, "{a,b}" one of several. A glob without "/" is matched with the last name of a path.
func compileGlob(glob string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	if !strings.Contains(glob, "/") {
		b.WriteString(`(?:.*/)?`)
	}
	braces := 0
	for rest := strings.TrimPrefix(glob, "/"); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?:.*/)?`)
			rest = rest[3:]
			continue
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			rest = rest[2:]
			continue
		case rest[0] == '[':
			end := strings.IndexByte(rest[1:], ']')
			if end < 1 {
				return nil, fmt.Errorf("glob: %s: \"[\" without its \"]\"", quoted(glob))
			}
			b.WriteString(class(rest[1 : 1+end]))
			rest = rest[end+2:]
			continue
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
		case rest[0] == '?':
			b.WriteString(`[^/]`)
		case rest[0] == '{':
			braces++
			b.WriteString(`(?:`)
		case rest[0] == '}' && braces > 0:
			braces--
			b.WriteString(`)`)
		case rest[0] == ',' && braces > 0:
			b.WriteString(`|`)
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
		rest = rest[1:]
	}
	if braces > 0 {
		return nil, fmt.Errorf("glob: %s: \"{\" without its \"}\"", quoted(glob))
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("glob: %s: expected a glob such as *.go or cmd/**/*.{yml,yaml}", quoted(glob))
	}
	return re, nil
}

// class is the inside of a character class of a glob as one of a regular expression.
func class(inside string) string {
	not := ""
	if rest, ok := strings.CutPrefix(inside, "!"); ok {
		inside, not = rest, "^"
	}
	return "[" + not + strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(inside) + "]"
}

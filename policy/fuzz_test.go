package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"belay/agent"
	"belay/strictyaml"
)

// wrappers are ways to run a script inside another one.
func wrappers(script string) map[string]string {
	quoted := "'" + strings.ReplaceAll(script, "'", `'\''`) + "'"
	return map[string]string{
		"after":                "ls; " + script,
		"subshell":             "(" + script + "\n)",
		"group":                "{ " + script + "\n}",
		"if":                   "if true; then " + script + "\nfi",
		"else":                 "if true; then :; else " + script + "\nfi",
		"while":                "while true; do " + script + "\ndone",
		"for":                  "for belay_item in a b; do " + script + "\ndone",
		"case":                 "case x in *) " + script + "\n;; esac",
		"function":             "belay_wrap() { " + script + "\n}; belay_wrap",
		"substitution":         "echo $(" + script + "\n)",
		"process substitution": "cat <(" + script + "\n)",
		"coprocess":            "coproc { " + script + "\n}",
		"pipe":                 "ls | { " + script + "\n}",
		"background":           "{ " + script + "\n} &",
		"and":                  "true && { " + script + "\n}",
		"test":                 "[[ $(" + script + "\n) ]]",
		"assignment":           "belay_value=$(" + script + "\n)",
		"heredoc":              "cat <<BELAY_END\n$(" + script + "\n)\nBELAY_END",
		"bash -c":              "bash -c " + quoted,
		"sh -ec":               "sh -ec " + quoted,
		"eval":                 "eval " + quoted,
		"env":                  "env A=1 bash -c " + quoted,
		"timeout":              "timeout -k 5 60 bash -c " + quoted,
		"nohup":                "nohup nice -n 5 bash -c " + quoted,
		"sudo":                 "sudo bash -c " + quoted,
		"xargs":                "ls | xargs bash -c " + quoted,
		"find":                 "find . -name x -exec bash -c " + quoted + ` \;`,
		"trap":                 "trap 'ls; '" + quoted + " EXIT",
		"here string":          "bash <<< " + quoted,
		"command":              "command bash -c " + quoted,
		"twice":                "bash -c " + "'bash -c '\\''ls'\\'''; bash -c " + quoted,
	}
}

func TestWrappingAHighCommandStaysHigh(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"testdata/shell-risk.tsv", "testdata/shell-bypass.tsv"} {
		for _, row := range corpus(t, file) {
			checkWrapping(t, row.script)
		}
	}
}

// checkWrapping checks that what is high by itself is high inside of anything.
func checkWrapping(t *testing.T, script string) {
	t.Helper()
	if plain := Analyze(script); plain.Risk != agent.RiskHigh || !plain.Parsed || strings.HasPrefix(script, "-") || strings.HasSuffix(script, `\`) {
		return // low, or another script when something stands before or behind it
	}
	for name, wrapped := range wrappers(script) {
		if got := Analyze(wrapped); got.Risk != agent.RiskHigh {
			t.Errorf("%s: %s for %q, which alone is high: %v", name, got.Risk, wrapped, got.Findings)
		}
	}
}

func FuzzAnalyze(f *testing.F) {
	for _, file := range []string{"testdata/shell-risk.tsv", "testdata/shell-bypass.tsv", "testdata/shell-ordinary.tsv"} {
		for _, row := range corpus(f, file) {
			f.Add(row.script)
		}
	}
	f.Fuzz(func(t *testing.T, script string) {
		got := analyze(script) // which does not hide a panic
		if !got.Parsed && got.Risk != agent.RiskHigh {
			t.Errorf("%q was not parsed and is %s", script, got.Risk)
		}
		if got.Risk != agent.RiskLow && len(got.Findings) == 0 {
			t.Errorf("%q is %s for no reason", script, got.Risk)
		}
		checkWrapping(t, script)
	})
}

func FuzzParse(f *testing.F) {
	placed := regexp.MustCompile(`^p\.yaml:[1-9][0-9]*:([1-9][0-9]*:)? .`)
	f.Add(ruleFile)
	f.Add("rules:\n  - &a {id: a}\n  - *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Parse("p.yaml", []byte(text))
		if err == nil {
			return
		}
		if len(strictyaml.Problems(err)) == 0 {
			t.Errorf("%v names no problem", err)
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !placed.MatchString(line) {
				t.Errorf("the error has a line that names no place: %q", line)
			}
		}
	})
}

func FuzzActionDigest(f *testing.F) {
	f.Add(`{"a":1}`)
	f.Add(`{"a":{"b":[1e3,"\u0061",null]}}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		a := agent.Action{Tool: "t", Arguments: json.RawMessage(arguments)}
		digest, err := ActionDigest(a)
		if (err == nil) != digest.Valid() {
			t.Errorf("%q, %v", digest, err)
		}
	})
}

func TestScriptsBeyondTheBoundsAreHigh(t *testing.T) {
	t.Parallel()
	fill := func(s string) string { return strings.Repeat(s, MaxScript/len(s)) }
	for name, script := range map[string]string{
		"too long":       "ls " + strings.Repeat("a", MaxScript),
		"parentheses":    fill("("),
		"hidden depth":   fill(`(")"`),
		"substitutions":  fill("$("),
		"backquotes":     fill("`"),
		"expansions":     fill("${a:-"),
		"conditions":     fill("if "),
		"loops":          fill("while "),
		"pipes":          fill("ls|") + "ls",
		"lists":          fill("ls&&") + "ls",
		"commands":       fill("ls;") + "ls",
		"assignments":    "$((" + fill("a=")[:MaxScript-8] + "1))",
		"loop in a loop": fill("for i in 1 2 3 4 5 6 7 8 9; do ")[:3000] + "ls" + strings.Repeat("; done", 3000/31),
		"quoted scripts": nested("ls", 12),
		"NUL":            "ls\x00",
		"CR":             "ls x\\\r\nrm -rf /",
		"not UTF-8":      "ls \xff",
		"braces":         "echo " + strings.Repeat("{a,b}", 30) + " > x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			if got := Analyze(script); got.Risk != agent.RiskHigh && name != "braces" {
				t.Errorf("%s, want high: %v", got.Risk, got.Findings)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// nested puts a script into bash -c, n times.
func nested(script string, n int) string {
	for range n {
		script = fmt.Sprintf("bash -c %q", script)
		if len(script) > MaxScript {
			break
		}
	}
	return script
}

package tool

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCompileGlob(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		glob     string
		yes, not []string
	}{
		{"*.go", []string{"a.go", "d/e/a.go", ".go"}, []string{"a.goo", "a.go/x"}},
		{"a?c", []string{"abc", "d/aéc"}, []string{"ac", "a/c"}},
		{"cmd/*.go", []string{"cmd/a.go"}, []string{"a.go", "cmd/d/a.go", "x/cmd/a.go"}},
		{"/cmd/*.go", []string{"cmd/a.go"}, []string{"x/cmd/a.go"}},
		{"**/test/**", []string{"test/a", "x/test/a/b"}, []string{"tests/a", "test"}},
		{"a/**/z", []string{"a/z", "a/b/c/z"}, []string{"az", "a/bz"}},
		{"*.{yml,y[a-c]ml}", []string{"a.yml", "a.yaml"}, []string{"a.ydml", "a.{yml"}},
		{"[!a]b", []string{"cb"}, []string{"ab"}},
		{"a,b}", []string{"a,b}"}, []string{"a", "b}"}},
		{"a.b+(c)", []string{"a.b+(c)"}, []string{"axb+(c)", "a.bb(c)"}},
		{"日*", []string{"日本"}, []string{"本日"}},
	} {
		t.Run(row.glob, func(t *testing.T) {
			t.Parallel()
			re, err := compileGlob(row.glob)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range row.yes {
				if !re.MatchString(p) {
					t.Errorf("does not match %s", p)
				}
			}
			for _, p := range row.not {
				if re.MatchString(p) {
					t.Errorf("matches %s", p)
				}
			}
		})
	}
	for glob, want := range map[string]string{
		"[a":    `glob: "[a": "[" without its "]"`,
		"[]":    `glob: "[]": "[" without its "]"`,
		"{a":    `glob: "{a": "{" without its "}"`,
		"[z-a]": `glob: "[z-a]": expected a glob such as *.go or cmd/**/*.{yml,yaml}`,
	} {
		if _, err := compileGlob(glob); err == nil || err.Error() != want {
			t.Errorf("got %v; want %s", err, want)
		}
	}
}

func TestFitted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name       string
		head, tail string
		left       int64
		want       string // the gap; empty: none
	}{
		{"short", "abc", "", 0, ""},
		{"just fits", strings.Repeat("x", MaxText-800), "", 0, ""},
		{"one more", strings.Repeat("x", MaxText-799), "", 0, "\n… 1 bytes left out\n"},
		{"with a gap", "head\n", "tail\n", 7, "head\n… 7 bytes left out\ntail\n"},
		{"with a gap, and grown", strings.Repeat("h", MaxText), strings.Repeat("t", MaxText), 7, "h\n… 31527 bytes left out\nt"},
		{"wide characters", strings.Repeat("本", MaxText), "", 0, "本\n… 62241 bytes left out\n本"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := fitted(row.head, row.tail, row.left, "")
			if len(got) > MaxText || !utf8.ValidString(got) || strings.Contains(got, "\uFFFD") {
				t.Errorf("%d bytes", len(got))
			}
			if row.want == "" && got != row.head || !strings.Contains(got, row.want) {
				at := max(0, strings.Index(got, "\n…")-20)
				t.Errorf("got %q; want %q", cut(got[at:], 200), row.want)
			}
		})
	}
}

func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[1m\x1b]8;;x\x07y\x1b\\", "a\r\nb\rc", "\xff\x00\u009b31m", "\x1b\x1b[[", "\x1bP\x1b\\x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range []string{plain(b), visible(string(b)), oneLine(string(b))} {
			if !utf8.ValidString(s) || strings.ContainsAny(s, "\x1b\x00\x7f\r\u009b") {
				t.Fatalf("%q became %q", b, s)
			}
		}
		if s := summary(string(b)); len(s) > maxSummary || strings.ContainsAny(s, "\n\u202e") {
			t.Fatalf("summary %q", s)
		}
	})
}

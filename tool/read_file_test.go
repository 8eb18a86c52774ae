package tool_test

import (
	"fmt"
	"strings"
	"testing"

	"belay/agent"
	"belay/tool"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	thousands := strings.Repeat("a line of a large file\n", 3000)
	for _, row := range []struct {
		name   string
		files  map[string]string
		args   args
		status agent.CallStatus
		text   string
	}{
		{"all", map[string]string{"a": "one\n\ttwo\n"}, args{"path": "a"}, agent.CallOK,
			"a: lines 1-2 of 2\n     1\tone\n     2\t\ttwo\n"},
		{"by absolute path", map[string]string{"d/a": "x\n"}, args{"path": "/workspace/d/a"}, agent.CallOK,
			"d/a: lines 1-1 of 1\n     1\tx\n"},
		{"a part", map[string]string{"a": "1\n2\n3\n4\n"}, args{"path": "a", "offset": 2, "limit": 2}, agent.CallOK,
			"a: lines 2-3 of 4; go on with offset 4\n     2\t2\n     3\t3\n"},
		{"the end of it", map[string]string{"a": "1\n2\n3"}, args{"path": "a", "offset": 3.0}, agent.CallOK,
			"a: lines 3-3 of 3; no newline at the end\n     3\t3\n"},
		{"beyond the end", map[string]string{"a": "1\n"}, args{"path": "a", "offset": 2}, agent.CallFailed,
			"a has 1 line; expected an offset of at most that, not 2"},
		{"empty", map[string]string{"a": ""}, args{"path": "a"}, agent.CallOK, "a: empty file"},
		{"CRLF", map[string]string{"a": "1\r\n2\r\n"}, args{"path": "a"}, agent.CallOK,
			"a: lines 1-2 of 2; lines end in CRLF\n     1\t1\n     2\t2\n"},
		{"both line ends", map[string]string{"a": "1\r\n2\n"}, args{"path": "a"}, agent.CallOK,
			"a: lines 1-2 of 2; lines end in CRLF and in LF\n     1\t1\n     2\t2\n"},
		{"byte order mark", map[string]string{"a": "\uFEFFx\n"}, args{"path": "a"}, agent.CallOK, "a: lines 1-1 of 1\n     1\tx\n"},
		{"terminal sequences", map[string]string{"a": "\x1b[31mred\x7f\n"}, args{"path": "a"}, agent.CallOK,
			"a: lines 1-1 of 1\n     1\t␛[31mred␡\n"},
		{"Latin-1", map[string]string{"a": "caf\xe9\n"}, args{"path": "a"}, agent.CallOK,
			"a: lines 1-1 of 1; not UTF-8, other bytes are shown as \uFFFD\n     1\tcaf\uFFFD\n"},
		{"unicode in name and text", map[string]string{"días/ñ.md": "日本\n"}, args{"path": "días/ñ.md"}, agent.CallOK,
			"días/ñ.md: lines 1-1 of 1\n     1\t日本\n"},
		{"a long line", map[string]string{"a": strings.Repeat("x", 5000) + "\n"}, args{"path": "a"}, agent.CallOK,
			"a: lines 1-1 of 1\n     1\t" + strings.Repeat("x", 2000) + "… 3000 bytes more\n"},
		{"binary", map[string]string{"a": "\x7fELF\x00\x01"}, args{"path": "a"}, agent.CallFailed,
			"a is a binary file of 6 bytes, sha256:7ab58c495f91ca5dc2d23ab025598caa2dab044538c8a05bd3ec27e4d41b95e6; it can't be shown as text"},
		{"missing", map[string]string{"main.go": ""}, args{"path": "mian.go"}, agent.CallFailed,
			"mian.go: no such file; did you mean main.go?"},
		{"missing folder", nil, args{"path": "x/y/z"}, agent.CallFailed, "x/y/z: no such file"},
		{"below a file", map[string]string{"a": ""}, args{"path": "a/b"}, agent.CallFailed, "a/b: not a directory"},
		{"a folder", map[string]string{"d/a": ""}, args{"path": "d"}, agent.CallFailed, "/workspace/d is a folder; list_files shows what is in it"},
		{"more than fits", map[string]string{"a": thousands}, args{"path": "a"}, agent.CallOK, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, row.files)
			o := b.do("read_file", row.args)
			if row.text != "" && o.Text != row.text {
				t.Errorf("\n got %q\nwant %q", cutText(o.Text), cutText(row.text))
			}
			b.expect(o, row.status)
			if len(o.Text) > tool.MaxText {
				t.Errorf("text of %d bytes", len(o.Text))
			}
			if o.Call != "c1" || o.Duration <= 0 {
				t.Errorf("call %q, duration %s", o.Call, o.Duration)
			}
		})
	}
}

func cutText(s string) string { return fmt.Sprintf("%.400s", s) }

// A large file is read page by page, by the offsets that the pages give.
func TestReadFilePages(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&want, "line %d of a file of many lines\n", i+1)
	}
	b := newBench(t, map[string]string{"a": want.String()})
	var got strings.Builder
	pages := 0
	for offset := 1; offset > 0; pages++ {
		o := b.do("read_file", args{"path": "a", "offset": offset})
		header, body, _ := strings.Cut(o.Text, "\n")
		for line := range strings.Lines(body) {
			_, text, _ := strings.Cut(line, "\t")
			got.WriteString(text)
		}
		_, next, _ := strings.Cut(header, "go on with offset ")
		offset = 0
		if next != "" {
			_, err := fmt.Sscan(next, &offset)
			b.must(err)
		}
	}
	if got.String() != want.String() || pages < 4 {
		t.Errorf("%d pages, %d bytes of %d", pages, got.Len(), want.Len())
	}
}

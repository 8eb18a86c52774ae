package tool_test

import (
	"strings"
	"testing"

	"belay/agent"
)

func TestEditFile(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("x\n", 12)
	for _, row := range []struct {
		name, file string
		args       args
		status     agent.CallStatus
		text       string
		left       string
	}{
		{"one place", "a\nb\nc\n", args{"old": "b", "new": "B"}, agent.CallOK,
			"edited f: 1 place\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"},
		{"several lines", "a\nb\nc\n", args{"old": "a\nb\n", "new": ""}, agent.CallOK,
			"edited f: 1 place\n--- a/f\n+++ b/f\n@@ -1,3 +1,1 @@\n-a\n-b\n c\n", "c\n"},
		{"no newline at the end", "a\nb", args{"old": "b", "new": "c"}, agent.CallOK,
			"edited f: 1 place\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", "a\nc"},
		{"unicode", "naïve 日本\n", args{"old": "日本", "new": "日本語"}, agent.CallOK, "", "naïve 日本語\n"},
		{"other bytes stay", "caf\xe9 one\n", args{"old": "one", "new": "two"}, agent.CallOK, "", "caf\xe9 two\n"},
		{"CRLF, within a line", "a\r\nb\r\n", args{"old": "b", "new": "c"}, agent.CallOK,
			"edited f: 1 place\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a␍\n-b␍\n+c␍\n", "a\r\nc\r\n"},
		{"CRLF, over lines", "a\r\nb\r\nc\r\n", args{"old": "a\nb", "new": "a\nx\ny"}, agent.CallOK, "", "a\r\nx\r\ny\r\nc\r\n"},
		{"CRLF, written so", "a\r\nb\r\n", args{"old": "a\r\nb", "new": "c\r\nd"}, agent.CallOK, "", "c\r\nd\r\n"},
		{"both line ends: as it stands", "a\r\nb\nc\n", args{"old": "b\nc", "new": "d"}, agent.CallOK, "", "a\r\nd\n"},
		{"CRLF, only line ends differ", "a\r\nb\r\n", args{"old": "a\nb", "new": "a\r\nb"}, agent.CallFailed, "f: new is the same as old, but for line ends", "a\r\nb\r\n"},
		{"everywhere", "x x\nx\n", args{"old": "x", "new": "yy", "all": true}, agent.CallOK,
			"edited f: 3 places\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-x x\n-x\n+yy yy\n+yy\n", "yy yy\nyy\n"},
		{"two places", "x\nb\nx\n", args{"old": "x", "new": "y"}, agent.CallFailed,
			"f: old is there 2 times, at lines 1, 3; give more of what is around the one that you mean, or set all", "x\nb\nx\n"},
		{"two places of several lines", "a\nx\ny\na\nx\ny\n", args{"old": "x\ny\n", "new": "z\n"}, agent.CallFailed,
			"f: old is there 2 times, at lines 2, 5; give more of what is around the one that you mean, or set all", "a\nx\ny\na\nx\ny\n"},
		{"many places", many, args{"old": "x", "new": "y"}, agent.CallFailed,
			"f: old is there 12 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …; give more of what is around the one that you mean, or set all", many},
		{"nowhere", "a\n", args{"old": "b", "new": "c"}, agent.CallFailed, "f: old is not in the file; read the file again to see what it holds", "a\n"},
		{"nowhere but for white space", "if x {\n\treturn\n}\n", args{"old": "if x {\n    return", "new": ""}, agent.CallFailed,
			"f: old is not in the file; its first line stands, but for white space, at line 1: check what follows, and the indentation", "if x {\n\treturn\n}\n"},
		{"copied with numbers", "a\nb\n", args{"old": "     1\ta\n     2\tb", "new": ""}, agent.CallFailed,
			"f: old is not in the file; it begins with a line number as read_file shows them, which is not part of the file", "a\nb\n"},
		{"binary", "a\x00b", args{"old": "a", "new": "b"}, agent.CallFailed, "f is a binary file; edit_file changes text", "a\x00b"},
		{"a file that would be too large", strings.Repeat("x", 1000), args{"old": "x", "new": strings.Repeat("y", 20000), "all": true}, agent.CallFailed,
			"f would have more than 10485760 bytes after 1000 replacements", strings.Repeat("x", 1000)},
		{"an empty file", "", args{"old": "x", "new": "y"}, agent.CallFailed, "f: old is not in the file; read the file again to see what it holds", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, map[string]string{"f": row.file})
			row.args["path"] = "f"
			o := b.do("edit_file", row.args)
			b.expect(o, row.status)
			if row.text != "" && o.Text != row.text {
				t.Errorf("\n got %q\nwant %q", o.Text, row.text)
			}
			if got := b.get("f"); got != row.left {
				t.Errorf("the file holds %q; want %q", got, row.left)
			}
		})
	}
}

func TestEditFileRefusesWhatChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"f": "a\nb\n"})
	b.do("read_file", args{"path": "f", "limit": 1})
	b.do("shell", args{"command": "sed -i s/a/A/ f"})
	edit := args{"path": "f", "old": "b", "new": "B"}
	b.expect(b.do("edit_file", edit), agent.CallFailed, "f changed since it was read in this run; read it again first")
	b.do("read_file", args{"path": "f"})
	b.expect(b.do("edit_file", edit), agent.CallOK)
	b.expect(b.do("edit_file", args{"path": "f", "old": "A", "new": "a"}), agent.CallOK) // its own edits it has seen
	if b.get("f") != "a\nB\n" {
		t.Errorf("the file holds %q", b.get("f"))
	}
	b.expect(b.do("edit_file", args{"path": "g", "old": "A", "new": "a"}), agent.CallFailed, "g: no such file; did you mean f?")
}

func TestEditFileCutsTheDiff(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"f": strings.Repeat("some line of text\n", 2000)})
	o := b.do("edit_file", args{"path": "f", "old": "some", "new": "another", "all": true})
	b.expect(o, agent.CallOK, "edited f: 2000 places\n", " lines of the diff left out\n")
	if len(o.Text) > 9000 {
		t.Errorf("text of %d bytes", len(o.Text))
	}
}

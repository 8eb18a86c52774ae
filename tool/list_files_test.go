package tool_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"belay/agent"
)

func TestListFiles(t *testing.T) {
	t.Parallel()
	tree := map[string]string{"b.go": "12345", "a/z.txt": "", "a/deep/er/x": "1", "a.b/x": "", ".git/HEAD": "x", ".env": "x", "new\nline": ""}
	for _, row := range []struct {
		name   string
		args   args
		status agent.CallStatus
		text   string
	}{
		{"two levels", args{}, agent.CallOK, "/workspace: 10 entries; 2 hidden left out\n" +
			"a/\na/deep/\na/z.txt (0 bytes)\na.b/\na.b/x (0 bytes)\nb.go (5 bytes)\nfifo (named pipe)\nlink -> ../outside\nlinked -> a\nnew␊line (0 bytes)\n"},
		{"one level of a folder", args{"path": "a", "depth": 1}, agent.CallOK, "a: 2 entries\ndeep/\nz.txt (0 bytes)\n"},
		{"hidden ones too", args{"hidden": true, "depth": 1}, agent.CallOK, "/workspace: 9 entries\n" +
			".env (1 bytes)\n.git/\na/\na.b/\nb.go (5 bytes)\nfifo (named pipe)\nlink -> ../outside\nlinked -> a\nnew␊line (0 bytes)\n"},
		{"many levels", args{"path": "/workspace/a", "depth": 9}, agent.CallOK, "a: 4 entries\ndeep/\ndeep/er/\ndeep/er/x (1 bytes)\nz.txt (0 bytes)\n"},
		{"through a link inside", args{"path": "linked", "depth": 1}, agent.CallOK, "a: 2 entries\ndeep/\nz.txt (0 bytes)\n"},
		{"a file", args{"path": "b.go"}, agent.CallFailed, "b.go is not a folder but a file; read_file shows a file"},
		{"a pipe", args{"path": "fifo"}, agent.CallFailed, "fifo is not a folder but a named pipe; read_file shows a file"},
		{"missing", args{"path": "aa"}, agent.CallFailed, "aa: no such file; did you mean a?"},
		{"out by a link", args{"path": "link"}, agent.CallInvalid, "/workspace/link leads outside the workspace"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tree)
			b.must(syscall.Mkfifo(b.at("fifo"), 0o600))
			b.must(os.Symlink("../outside", b.at("link")))
			b.must(os.Symlink("a", b.at("linked")))
			o := b.do("list_files", row.args)
			if o.Status != row.status || o.Text != row.text {
				t.Errorf("%s\n got %q\nwant %q", o.Status, o.Text, row.text)
			}
		})
	}
}

// The nearer entries come first when there are too many, and the result says that there are.
func TestListFilesIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"z-last-of-the-first-level": ""})
	for i := range 60 {
		for j := range 30 {
			b.put(fmt.Sprintf("d%02d/f%02d", i, j), "")
		}
	}
	o := b.do("list_files", args{})
	b.expect(o, agent.CallOK, "/workspace: 1000 entries; this is not all: list a folder below it, or fewer levels\n", "z-last-of-the-first-level", "d59/\n")
	if got := strings.Count(o.Text, "\n"); got != 1001 {
		t.Errorf("%d lines", got)
	}
	for i := range 990 {
		b.put(fmt.Sprintf("%s%d", strings.Repeat("long", 50), i), "")
	}
	o = b.do("list_files", args{"depth": 1})
	b.expect(o, agent.CallOK, "this is not all")
	if len(o.Text) > 30<<10 {
		t.Errorf("text of %d bytes", len(o.Text))
	}
}

func TestListFilesOfAFolderWithoutEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.must(os.Mkdir(b.at("many"), 0o755))
	for i := range 10_001 {
		f, err := os.Create(b.at(fmt.Sprintf("many/.%d", i)))
		b.must(err)
		f.Close()
	}
	b.expect(b.do("list_files", args{"path": "many"}), agent.CallOK, "many: 0 entries; 10000 hidden left out; this is not all")
}

func TestWalksEndInTime(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		tool string
		args args
	}{{"list_files", args{}}, {"search_files", args{"pattern": "x"}}} {
		t.Run(row.tool, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, map[string]string{"a/b/c": "x"})
			b.env.Timeout = 1 // nanosecond
			b.expect(b.do(row.tool, row.args), agent.CallTimeout, "stopped: it took too long")
		})
	}
}

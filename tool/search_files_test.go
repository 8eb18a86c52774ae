package tool_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"belay/agent"
)

func TestSearchFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"main.go": "package main\n\nfunc main() {}\r\nfunc Main() {}", "lib/lib.go": "package lib\nfunc Lib() {}\n", "lib/deep/x.txt": "func in text\n",
		".github/ci.yml": "run: func\n", ".git/config": "func\n", "bin": "func\x00", "odd\nname": "func\n",
	}
	for _, row := range []struct {
		name   string
		args   args
		status agent.CallStatus
		text   string
	}{
		{"everywhere", args{"pattern": "func"}, agent.CallOK, "main.go:3: func main() {}\nmain.go:4: func Main() {}\nodd␊name:1: func\n.github/ci.yml:1: run: func\n" +
			"lib/lib.go:2: func Lib() {}\nlib/deep/x.txt:1: func in text\n6 matching lines in 6 files searched; 1 binary left out\n"},
		{"ignoring case", args{"pattern": `(?i)^FUNC \w+\(`, "path": "main.go"}, agent.CallOK, "main.go:3: func main() {}\nmain.go:4: func Main() {}\n2 matching lines in 1 file searched\n"},
		{"the end of a line", args{"pattern": `\{\}$`, "path": "main.go"}, agent.CallOK, "main.go:3: func main() {}\nmain.go:4: func Main() {}\n2 matching lines in 1 file searched\n"},
		{"by name", args{"pattern": "func", "glob": "*.go"}, agent.CallOK, "main.go:3: func main() {}\nmain.go:4: func Main() {}\nlib/lib.go:2: func Lib() {}\n3 matching lines in 2 files searched\n"},
		{"by path", args{"pattern": "func", "glob": "lib/**/*.{txt,md}"}, agent.CallOK, "lib/deep/x.txt:1: func in text\n1 matching line in 1 file searched\n"},
		{"below a folder", args{"pattern": "func", "path": "lib", "glob": "deep/*"}, agent.CallOK, "lib/deep/x.txt:1: func in text\n1 matching line in 1 file searched\n"},
		{"nothing", args{"pattern": "absent"}, agent.CallOK, "0 matching lines in 6 files searched; 1 binary left out\n"},
		{"up to a number", args{"pattern": "func", "max_results": 2}, agent.CallOK, "main.go:3: func main() {}\nmain.go:4: func Main() {}\n2 matching lines in 3 files searched; 1 binary left out; stopped at max_results 2: there is more\n"},
		{"exactly the number", args{"pattern": "func", "path": "main.go", "max_results": 2}, agent.CallOK, "main.go:3: func main() {}\nmain.go:4: func Main() {}\n2 matching lines in 1 file searched\n"},
		{"missing", args{"pattern": "func", "path": "libs"}, agent.CallFailed, "libs: no such file; did you mean lib?"},
		{"out by a link", args{"pattern": "root", "path": "out"}, agent.CallInvalid, `/workspace/out is a link to "/etc", outside the workspace`},
		{"a pipe", args{"pattern": "root", "path": "fifo"}, agent.CallFailed, "/workspace/fifo is not a regular file (named pipe)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, files)
			b.must(os.Symlink("/etc", b.at("out")))
			b.must(syscall.Mkfifo(b.at("fifo"), 0o600))
			o := b.do("search_files", row.args)
			if o.Status != row.status || o.Text != row.text {
				t.Errorf("%s\n got %q\nwant %q", o.Status, o.Text, row.text)
			}
		})
	}
}

func TestSearchFilesIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.put("long", strings.Repeat("é", 1000)+"needle"+strings.Repeat("ü", 1000)+"\n")
	o := b.do("search_files", args{"pattern": "needle"})
	b.expect(o, agent.CallOK, "needle", "long:1: …éé", "üü…\n")
	if len(o.Text) > 400 {
		t.Errorf("text of %d bytes", len(o.Text))
	}
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, "needle %d %s\n", i, strings.Repeat("x", 200))
	}
	b.put("many", many.String())
	o = b.do("search_files", args{"pattern": "needle", "path": "many", "max_results": 500})
	b.expect(o, agent.CallOK, "stopped at 30 KiB of text: there is more")
	if len(o.Text) > 30<<10 {
		t.Errorf("text of %d bytes", len(o.Text))
	}
	b.must(sparse(b.at("huge"), 1<<40))
	b.expect(b.do("search_files", args{"pattern": "needle 7 "}), agent.CallOK, "1 matching line in 2 files searched; 1 above 10 MiB left out")
}

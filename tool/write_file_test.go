package tool_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"belay/agent"
)

func TestWriteFile(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		files  map[string]string
		first  func(b *bench) // before the call
		args   args
		status agent.CallStatus
		text   string
		left   string // what the file holds then
	}{
		{"a new file", nil, nil, args{"path": "a", "content": "x\ny"}, agent.CallOK, "wrote a: a new file of 2 lines, 3 bytes\n", "x\ny"},
		{"a new folder", nil, nil, args{"path": "d/e/a", "content": "x\n"}, agent.CallOK, "wrote d/e/a: a new file of 1 line, 2 bytes\n", "x\n"},
		{"an empty new file", nil, nil, args{"path": "a", "content": ""}, agent.CallOK, "wrote a: a new file of 0 lines, 0 bytes\n", ""},
		{"never read", map[string]string{"a": "x\n"}, nil, args{"path": "a", "content": "y\n"}, agent.CallFailed,
			"a exists and was not read in this run; read it first, or change a part of it with edit_file", "x\n"},
		{"never read but empty", map[string]string{"a": ""}, nil, args{"path": "a", "content": "y\n"}, agent.CallOK, "wrote a\n--- a/a\n+++ b/a\n@@ -0,0 +1,1 @@\n+y\n", "y\n"},
		{"never read but the same", map[string]string{"a": "x\n"}, nil, args{"path": "a", "content": "x\n"}, agent.CallOK, "a holds exactly this already\n", "x\n"},
		{"read", map[string]string{"a": "x\ny\n"}, func(b *bench) { b.do("read_file", args{"path": "a"}) },
			args{"path": "a", "content": "x\nz\n"}, agent.CallOK, "wrote a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n", "x\nz\n"},
		{"written before", nil, func(b *bench) { b.do("write_file", args{"path": "a", "content": "1"}) },
			args{"path": "a", "content": "2"}, agent.CallOK, "", "2"},
		{"edited before", map[string]string{"a": "1\n"}, func(b *bench) { b.do("edit_file", args{"path": "a", "old": "1", "new": "2"}) },
			args{"path": "a", "content": "3\n"}, agent.CallOK, "", "3\n"},
		{"changed since it was read", map[string]string{"a": "x\n"}, func(b *bench) {
			b.do("read_file", args{"path": "a"})
			b.do("shell", args{"command": "echo more >> a"})
		}, args{"path": "a", "content": "y\n"}, agent.CallFailed, "a changed since it was read in this run; read it again first", "x\nmore\n"},
		{"changed, and read again", map[string]string{"a": "x\n"}, func(b *bench) {
			b.do("read_file", args{"path": "a"})
			b.do("shell", args{"command": "echo more >> a"})
			b.do("read_file", args{"path": "a"})
		}, args{"path": "a", "content": "y\n"}, agent.CallOK, "", "y\n"},
		{"deleted since it was read", map[string]string{"a": "x\n"}, func(b *bench) {
			b.do("read_file", args{"path": "a"})
			b.do("shell", args{"command": "rm a"})
		}, args{"path": "a", "content": "y\n"}, agent.CallOK, "wrote a: a new file of 1 line, 2 bytes\n", "y\n"},
		{"NUL and CRLF stay", nil, nil, args{"path": "a", "content": "a\x00b\r\n"}, agent.CallOK, "", "a\x00b\r\n"},
		{"below a file", map[string]string{"a": ""}, nil, args{"path": "a/b", "content": ""}, agent.CallFailed, "a/b: not a directory", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, row.files)
			if row.first != nil {
				row.first(b)
			}
			o := b.do("write_file", row.args)
			b.expect(o, row.status)
			if row.text != "" && o.Text != row.text {
				t.Errorf("\n got %q\nwant %q", o.Text, row.text)
			}
			name := strings.TrimSuffix(row.args["path"].(string), "/b")
			if got := b.get(name); got != row.left {
				t.Errorf("the file holds %q; want %q", got, row.left)
			}
		})
	}
}

// Permissions stay, the set-user-id bit does not, and new files are for everyone to read whatever the worker's umask.
func TestWriteFileModes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		mode os.FileMode // of the file before; 0: there is none
		want os.FileMode
	}{
		{"new", 0, 0o644},
		{"executable", 0o755, 0o755},
		{"read-only", 0o400, 0o400},
		{"set-user-id", 0o755 | os.ModeSetuid, 0o755},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			if row.mode != 0 {
				b.put("a", "old\n")
				b.must(os.Chmod(b.at("a"), row.mode))
				b.do("read_file", args{"path": "a"})
			}
			b.expect(b.do("write_file", args{"path": "a", "content": "new\n"}), agent.CallOK)
			info, err := os.Stat(b.at("a"))
			b.must(err)
			if info.Mode() != row.want {
				t.Errorf("mode %v; want %v", info.Mode(), row.want)
			}
		})
	}
}

// What the worker writes belongs to the user that the sandbox's commands are.
func TestWriteFileOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"theirs": "x\n"})
	b.must(b.asRoot(os.Chown(b.at("."), 12345, 12346)))
	b.must(b.asRoot(os.Chown(b.at("theirs"), 12347, 12348)))
	b.do("read_file", args{"path": "theirs"})
	b.expect(b.do("write_file", args{"path": "theirs", "content": "y\n"}), agent.CallOK)
	b.expect(b.do("write_file", args{"path": "d/e/new", "content": "y\n"}), agent.CallOK)
	for name, want := range map[string]uint32{"theirs": 12347, "d": 12345, "d/e": 12345, "d/e/new": 12345} {
		info, err := os.Stat(b.at(name))
		b.must(err)
		if got := info.Sys().(*syscall.Stat_t).Uid; got != want {
			t.Errorf("%s belongs to %d; want %d", name, got, want)
		}
	}
}

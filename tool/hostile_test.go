package tool_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"belay/agent"
)

// What a command may have left in the workspace neither lets a file tool out, nor makes it wait, nor fill the memory.
func TestHostilePaths(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	invalid, failed := agent.CallInvalid, agent.CallFailed
	for _, row := range []struct {
		name        string
		make        func(b *bench, at string) error // puts something at the path "x"
		path        string
		read, write agent.CallStatus
		text        string
	}{
		{"dots", nil, "../x", invalid, invalid, "is outside the workspace"},
		{"absolute", nil, "/etc/passwd", invalid, invalid, "is outside the workspace"},
		{"link out", func(_ *bench, at string) error { return os.Symlink(filepath.Join(outside, "secret"), at) }, "x", invalid, invalid, "/workspace/x is a link to "},
		{"relative link out", func(_ *bench, at string) error { return os.Symlink("../../../../../etc/passwd", at) }, "x", invalid, invalid, "/workspace/x leads outside the workspace"},
		{"link to a folder out", func(_ *bench, at string) error { return os.Symlink(outside, at) }, "x/secret", invalid, invalid, "/workspace/x is a link to "},
		{"link through the workspace and out", func(_ *bench, at string) error { return os.Symlink("/workspace/../etc/passwd", at) }, "x", invalid, invalid, "leads outside the workspace"},
		{"link to itself", func(_ *bench, at string) error { return os.Symlink("x", at) }, "x", failed, failed, "more than 40 symbolic links on the way"},
		{"link to /proc", func(_ *bench, at string) error { return os.Symlink("/proc/self/root/etc/passwd", at) }, "x", invalid, invalid, "is a link to"},
		{"dangling link out", func(_ *bench, at string) error { return os.Symlink("nothing/../../x", at) }, "x", invalid, invalid, "leads outside the workspace"},
		{"FIFO", func(_ *bench, at string) error { return syscall.Mkfifo(at, 0o600) }, "x", failed, failed, "/workspace/x is not a regular file (named pipe)"},
		{"socket", listenAt, "x", failed, failed, "/workspace/x is not a regular file (socket)"},
		{"device", func(b *bench, at string) error { return b.asRoot(syscall.Mknod(at, syscall.S_IFCHR|0o600, 1<<8|3)) }, "x", failed, failed, "/workspace/x is not a regular file (device)"},
		{"folder", func(_ *bench, at string) error { return os.Mkdir(at, 0o755) }, "x", failed, failed, "/workspace/x is a folder"},
		{"huge", func(_ *bench, at string) error { return sparse(at, 1<<40) }, "x", failed, failed, "/workspace/x has 1099511627776 bytes; the file tools handle at most 10485760"},
		{"just too large", func(_ *bench, at string) error { return sparse(at, 10<<20+1) }, "x", failed, failed, "/workspace/x has 10485761 bytes"},
		{"hard link of another user", func(b *bench, at string) error { return b.foreignLink(outside, at) }, "x", failed, failed, "/workspace/x has another name outside the workspace"},
		{"long name", nil, strings.Repeat("n", 300), failed, failed, "file name too long"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			if row.make != nil {
				b.must(row.make(b, b.at("x")))
			}
			b.expect(b.do("read_file", args{"path": row.path}), row.read, row.text)
			b.expect(b.do("write_file", args{"path": row.path, "content": "owned"}), row.write, row.text)
			b.expect(b.do("edit_file", args{"path": row.path, "old": "secret", "new": "owned"}), row.write, row.text)
			o := b.do("search_files", args{"pattern": "secret"})
			b.expect(o, agent.CallOK, "0 matching lines")
			b.expect(b.do("list_files", args{}), agent.CallOK)
			if o := b.do("list_files", args{"path": row.path}); row.name != "folder" && o.Status == agent.CallOK {
				t.Errorf("listed: %s", o.Text)
			}
			if got, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(got) != "secret\n" {
				t.Errorf("outside: %q, %v", got, err)
			}
			if left, err := filepath.Glob(b.at(".belay-*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func listenAt(b *bench, at string) error {
	l, err := net.Listen("unix", at)
	if err == nil {
		b.t.Cleanup(func() { l.Close() })
	}
	return err
}

func sparse(at string, size int64) error {
	f, err := os.Create(at)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}

// foreignLink makes a second name for a file of another user, as one could outside of a sandbox.
func (b *bench) foreignLink(outside, at string) error {
	theirs := filepath.Join(outside, "theirs")
	if err := os.WriteFile(theirs, []byte("secret\n"), 0o644); err != nil {
		return err
	}
	if err := b.asRoot(os.Chown(theirs, 12345, 12345)); err != nil {
		return err
	}
	return os.Link(theirs, at)
}

// asRoot skips a row that only root can set up.
func (b *bench) asRoot(err error) error {
	if os.Geteuid() != 0 && err != nil {
		b.t.Skipf("needs root: %v", err)
	}
	return err
}

// Links that stay inside are read through, and never written through: what was judged is what is changed.
func TestLinksInside(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, target, link, path string }{
		{"relative", "d/real", "link", "link"},
		{"absolute", "/workspace/d/real", "link", "link"},
		{"a folder", "d", "link", "link/real"},
		{"with dots", "d/../d/./real", "link", "link"},
		{"dots after a link", "hop/../real", "link", "link"}, // hop is d/sub: its ".." is d
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, map[string]string{"d/real": "text\n", "d/sub/x": "", "real": "wrong\n"})
			b.must(os.Symlink("d/sub", b.at("hop")))
			b.must(os.Symlink(row.target, b.at(row.link)))
			b.expect(b.do("read_file", args{"path": row.path}), agent.CallOK, "(a link to d/real)", "\ttext\n")
			want := row.path + " is reached by a link; the file is d/real: name that one"
			b.expect(b.do("write_file", args{"path": row.path, "content": "new"}), agent.CallFailed, want)
			b.expect(b.do("edit_file", args{"path": row.path, "old": "text", "new": "new"}), agent.CallFailed, want)
			// It was read, by whatever name, so it may be written by its own.
			b.expect(b.do("write_file", args{"path": "d/real", "content": "new\n"}), agent.CallOK)
			if b.get("d/real") != "new\n" || b.get("real") != "wrong\n" {
				t.Errorf("%q, %q", b.get("d/real"), b.get("real"))
			}
		})
	}
}

// A file with two names of the workspace's own user is written as one of them.
func TestHardLinkInside(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"a": "text\n"})
	b.must(os.Link(b.at("a"), b.at("b")))
	b.expect(b.do("edit_file", args{"path": "a", "old": "text", "new": "new"}), agent.CallOK, "(the file had 2 names; the others keep the old content)")
	if b.get("a") != "new\n" || b.get("b") != "text\n" {
		t.Errorf("a %q, b %q", b.get("a"), b.get("b"))
	}
}

package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
)

// archive makes a tar of headers; a regular file's content is its Linkname.
func archive(headers ...tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Linkname = h.Linkname, ""
			h.Size = int64(len(content))
		}
		must(0, w.WriteHeader(&h))
		must(w.Write([]byte(content)))
	}
	must(0, w.Close())
	return b.Bytes()
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	must(w.Write(b))
	must(0, w.Close())
	return out.Bytes()
}

func TestImport(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	roots := workspace(t)
	write(t, roots, map[string]string{"src/a.go": "package a\n", "src/d/e/f": "x"})
	must(0, roots.Chmod("src/a.go", 0o755))
	must(0, roots.Symlink("d/../a.go", "src/link"))
	must(0, roots.Mkdir("src/empty", 0o755))
	must(0, roots.Symlink("src", "alias"))
	plain := archive(
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./a.go", Typeflag: tar.TypeReg, Mode: 0o4755, Linkname: "package a\n"},
		tar.Header{Name: "d/e/f", Typeflag: tar.TypeReg, Mode: 0o644, Linkname: "x"},
		tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "empty", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "d/../a.go"},
	)
	write(t, roots, map[string]string{"a.tar": string(plain), "b.tar.gz": string(zipped(plain)), "C.TGZ": string(zipped(plain))})
	src := must(roots.OpenRoot("src"))
	defer src.Close()
	want := must(tenant.ListTree(t.Context(), must(tenant.SaveTree(t.Context(), src, "")).Tree))
	for _, source := range []string{"src", "alias", "a.tar", "b.tar.gz", "C.TGZ"} {
		to := workspace(t)
		if skipped, err := Import(t.Context(), roots, source, to); err != nil || len(skipped) > 0 {
			t.Fatalf("%s: %v, %v", source, skipped, err)
		}
		got := must(tenant.ListTree(t.Context(), must(tenant.SaveTree(t.Context(), to, "")).Tree))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", source, diff)
		}
	}
}

func TestImportRefusesSources(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	must(0, os.WriteFile(filepath.Join(outside, "x.tar"), archive(), 0o600))
	roots := workspace(t)
	write(t, roots, map[string]string{"notes.txt": "x", "junk.tar": "this is no archive", "cut.tar.gz": string(zipped(archive(tar.Header{Name: "a", Typeflag: tar.TypeReg, Linkname: "x"}))[:40])})
	must(0, os.Symlink(outside, filepath.Join(roots.Name(), "out")))
	must(0, syscall.Mkfifo(filepath.Join(roots.Name(), "fifo.tar"), 0o600))
	for _, source := range []string{"", "..", "../x", "/etc", outside, "out", "out/x.tar", "gone", "notes.txt", "junk.tar", "cut.tar.gz", "fifo.tar", "a\x00b"} {
		_, err := Import(t.Context(), roots, source, workspace(t))
		if agent.TypeOf(err) != agent.InvalidInput || !strings.Contains(err.Error(), "workspace source") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v; want one line of InvalidInput", source, err)
		}
	}
}

func TestImportDirSkipsAndDoesNotFollow(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	must(0, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	from, to := workspace(t), workspace(t)
	write(t, from, map[string]string{"f": "x", "ro/g": "y"})
	must(0, os.Symlink(outside, filepath.Join(from.Name(), "out")))
	must(0, syscall.Mkfifo(filepath.Join(from.Name(), "fifo"), 0o600))
	must(0, from.Chmod("ro/g", 0o444))
	must(0, from.Chmod("ro", 0o555))
	defer from.Chmod("ro", 0o755)
	skipped, err := ImportDir(t.Context(), from, to)
	if diff := cmp.Diff([]string{"fifo (FIFO)"}, skipped); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if target := must(to.Readlink("out")); target != outside {
		t.Errorf("the link was copied as %s", target)
	}
	for p, mode := range map[string]os.FileMode{"ro": 0o755, "ro/g": 0o644} {
		if got := must(to.Stat(p)).Mode().Perm(); got != mode {
			t.Errorf("%s has mode %o; want %o: its owner must be able to work with it", p, got, mode)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ImportDir(ctx, from, workspace(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestHostileArchives(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Linkname: "x"} }
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	for name, c := range map[string]struct {
		headers []tar.Header
		want    string
	}{
		"absolute path":              {[]tar.Header{file("/etc/passwd")}, "absolute path"},
		"dots":                       {[]tar.Header{file("a/../../b")}, `".."`},
		"dots that stay":             {[]tar.Header{file("a/../b")}, `".."`},
		"link out":                   {[]tar.Header{link("l", "../x")}, "outside of the workspace"},
		"link out from below":        {[]tar.Header{link("a/b/l", "../../../x")}, "outside of the workspace"},
		"absolute link":              {[]tar.Header{link("l", "/etc")}, "outside of the workspace"},
		"file below a link":          {[]tar.Header{link("l", "d"), file("l/f")}, `"l" is not a folder`},
		"file below a file":          {[]tar.Header{file("f"), file("f/g")}, `"f" is not a folder`},
		"folder in a link's place":   {[]tar.Header{link("l", "d"), {Name: "l/", Typeflag: tar.TypeDir}}, `"l" is not a folder`},
		"same file twice":            {[]tar.Header{file("f"), file("./f")}, "twice"},
		"file in a folder's place":   {[]tar.Header{file("d/f"), file("d")}, "twice"},
		"link in a file's place":     {[]tar.Header{file("f"), link("f", "g")}, "twice"},
		"device":                     {[]tar.Header{{Name: "sda", Typeflag: tar.TypeBlock}}, "expected files, folders and links"},
		"FIFO":                       {[]tar.Header{{Name: "p", Typeflag: tar.TypeFifo}}, "expected files, folders and links"},
		"hard link to the outside":   {[]tar.Header{{Name: "h", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}, "no file before it"},
		"hard link to a later file":  {[]tar.Header{{Name: "h", Typeflag: tar.TypeLink, Linkname: "f"}, file("f")}, "no file before it"},
		"hard link through a link":   {[]tar.Header{link("l", "d"), {Name: "h", Typeflag: tar.TypeLink, Linkname: "l"}}, "no file before it"},
		"the workspace is a file":    {[]tar.Header{file(".")}, "expected a folder"},
		"more bytes than allowed":    {[]tar.Header{{Name: "big", Typeflag: tar.TypeReg, Linkname: strings.Repeat("x", 2000)}}, "at most 1000 bytes"},
		"more files than allowed":    {[]tar.Header{file("1"), file("2"), file("3"), file("4"), file("5"), file("6")}, "at most 5 entries"},
		"a path of many thousand":    {[]tar.Header{file(strings.Repeat("a/", 3000) + "f")}, "expected a path"},
		"sum of bytes above allowed": {[]tar.Header{{Name: "a", Typeflag: tar.TypeReg, Linkname: strings.Repeat("x", 600)}, {Name: "b", Typeflag: tar.TypeReg, Linkname: strings.Repeat("x", 600)}}, "at most 1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			must(0, os.Mkdir(filepath.Join(parent, "w"), 0o755))
			to := must(os.OpenRoot(filepath.Join(parent, "w")))
			defer to.Close()
			for _, raw := range [][]byte{archive(c.headers...), zipped(archive(c.headers...))} {
				err := importTar(t.Context(), bytes.NewReader(raw), to, sourceBounds{bytes: 1000, entries: 5})
				last := c.headers[len(c.headers)-1].Name
				if agent.TypeOf(err) != agent.InvalidInput || !strings.Contains(err.Error(), c.want) || (len(last) < 100 && !strings.Contains(err.Error(), `archive entry "`)) {
					t.Errorf("got %v; want InvalidInput with %q", err, c.want)
				}
				for _, n := range must(topFolder(to).names()) {
					must(0, topFolder(to).remove(n))
				}
			}
			if entries := must(os.ReadDir(parent)); len(entries) != 1 {
				t.Errorf("%v beside the workspace", entries)
			}
		})
	}
}

func TestArchiveWithHardLink(t *testing.T) {
	t.Parallel()
	to := workspace(t)
	raw := archive(tar.Header{Name: "a", Typeflag: tar.TypeReg, Linkname: "x"}, tar.Header{Name: "d/b", Typeflag: tar.TypeLink, Linkname: "a"})
	if err := ImportTar(t.Context(), bytes.NewReader(raw), to); err != nil {
		t.Fatal(err)
	}
	if got := must(to.ReadFile("d/b")); string(got) != "x" {
		t.Errorf("got %q", got)
	}
}

func FuzzImportTar(f *testing.F) {
	f.Add(archive(tar.Header{Name: "a/b", Typeflag: tar.TypeReg, Linkname: "x"}, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a"}))
	f.Add(zipped(archive(tar.Header{Name: "../x", Typeflag: tar.TypeReg, Linkname: "x"})))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		parent := t.TempDir()
		must(0, os.Mkdir(filepath.Join(parent, "w"), 0o755))
		to := must(os.OpenRoot(filepath.Join(parent, "w")))
		defer to.Close()
		if err := importTar(t.Context(), bytes.NewReader(raw), to, sourceBounds{bytes: 1 << 16, entries: 20}); err != nil && agent.TypeOf(err) != agent.InvalidInput {
			t.Errorf("got %v; want InvalidInput", err)
		}
		if entries := must(os.ReadDir(parent)); len(entries) != 1 {
			t.Errorf("%v beside the workspace", entries)
		}
	})
}

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
)

// workspace gives an empty folder.
func workspace(t *testing.T) *os.Root {
	t.Helper()
	root := must(os.OpenRoot(t.TempDir()))
	t.Cleanup(func() { root.Close() })
	return root
}

// write makes the files named by path, with their folders.
func write(t *testing.T, root *os.Root, files map[string]string) {
	t.Helper()
	for p, content := range files {
		must(0, root.MkdirAll(filepath.Dir(p), 0o755))
		must(0, root.WriteFile(p, []byte(content), 0o644))
	}
}

// listing describes everything under root: what TestTrees compares, by means other than the store's.
func listing(t *testing.T, root *os.Root) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root.Name(), func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root.Name() {
			return err
		}
		info := must(d.Info())
		what := info.Mode().String()
		switch info.Mode().Type() {
		case 0:
			what += " " + string(sumOf(must(os.ReadFile(p))))
		case fs.ModeSymlink:
			what = "link " + must(os.Readlink(p))
		}
		all[must(filepath.Rel(root.Name(), p))] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// scribble makes or changes a random tree.
func scribble(t *testing.T, root *os.Root, rnd *rand.Rand) {
	t.Helper()
	names := []string{"a", "b", "c.txt", "with space", "\xff\xfe", "a.b", "ünïcode", "-", "new\nline", `q"uote`, ".hidden", "a-"}
	dirs := []string{""}
	for range 60 {
		p := dirs[rnd.IntN(len(dirs))] + names[rnd.IntN(len(names))]
		if _, err := root.Lstat(p); err == nil && rnd.IntN(3) > 0 {
			continue
		}
		must(0, topFolder(root).remove(p))
		dirs = slices.DeleteFunc(dirs, func(d string) bool { return strings.HasPrefix(d, p+"/") })
		switch k := rnd.IntN(10); {
		case k < 4:
			must(0, root.Mkdir(p, 0o700))
			dirs = append(dirs, p+"/")
		case k < 5:
			must(0, root.Symlink([]string{"a", "../..", "/etc/passwd", "gone", "b/\xff"}[rnd.IntN(5)], p))
		case k < 6:
			must(0, root.WriteFile(p, bytes.Repeat([]byte{byte(k)}, packedFile+rnd.IntN(3)), 0o600))
		case k < 9:
			must(0, root.WriteFile(p, fmt.Appendf(nil, "%d", rnd.IntN(40)), 0o600))
			must(0, root.Chmod(p, fs.FileMode(rnd.IntN(0o1000))|0o600)) // a test reads it too
		}
	}
	for _, d := range dirs[1:] {
		must(0, root.Chmod(strings.TrimSuffix(d, "/"), fs.FileMode(rnd.IntN(0o1000))|0o700))
	}
}

func TestTrees(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			_, tenant := open(t)
			rnd := rand.New(rand.NewPCG(seed, 1))
			root, restored, index := workspace(t), workspace(t), filepath.Join(t.TempDir(), "index")
			var trees []agent.Digest
			var want []map[string]string
			for range 4 {
				scribble(t, root, rnd)
				saved, err := tenant.SaveTree(t.Context(), root, index)
				if err != nil {
					t.Fatal(err)
				}
				if again := must(tenant.SaveTree(t.Context(), root, "")); again.Tree != saved.Tree || again.Bytes != saved.Bytes || again.Files != saved.Files {
					t.Fatalf("with an index %+v, without %+v", saved, again)
				}
				trees, want = append(trees, saved.Tree), append(want, listing(t, root))
			}
			for _, i := range []int{0, 3, 1, 1, 2, 0} { // over what is there already
				if err := tenant.RestoreTree(t.Context(), trees[i], restored); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want[i], listing(t, restored)); diff != "" {
					t.Fatalf("tree %d: %s", i, diff)
				}
				if again := must(tenant.SaveTree(t.Context(), restored, "")); again.Tree != trees[i] {
					t.Fatalf("tree %d is another tree after it was restored", i)
				}
			}
			if err := tenant.RestoreTree(t.Context(), trees[3], root); err != nil || !cmp.Equal(want[3], listing(t, root)) {
				t.Fatal("restoring what is there changes it", err)
			}
		})
	}
}

func TestTreeIsIndependentOfOrderTimeAndStore(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	_, other := openAt(t, t.TempDir(), Options{})
	a, b := workspace(t), workspace(t)
	files := []string{"x", "y", "z/1", "z/2"}
	for i := range files {
		write(t, a, map[string]string{files[i]: files[i]})
		write(t, b, map[string]string{files[len(files)-1-i]: files[len(files)-1-i]})
	}
	must(0, b.Chtimes("x", time.Unix(1, 0), time.Unix(1, 0)))
	if one, two := must(tenant.SaveTree(t.Context(), a, "")), must(other.SaveTree(t.Context(), b, "")); one.Tree != two.Tree {
		t.Errorf("%s and %s", one.Tree, two.Tree)
	}
	must(0, b.Chmod("x", 0o600))
	if one, two := must(tenant.SaveTree(t.Context(), a, "")), must(tenant.SaveTree(t.Context(), b, "")); one.Tree == two.Tree {
		t.Error("the mode is not part of the tree")
	}
}

func TestUnchangedFilesAreNotReadAgain(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	root, index := workspace(t), filepath.Join(t.TempDir(), "index")
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%d/e%d/f%d", i%7, i%11, i)] = fmt.Sprint("content ", i)
	}
	files["large"] = strings.Repeat("large", packedFile)
	write(t, root, files)
	save := func(wantRead int, wantWrites int64) {
		t.Helper()
		before := s.Stats()
		saved := must(tenant.SaveTree(t.Context(), root, index))
		after := s.Stats()
		if saved.Files != 301 || saved.Read != wantRead || after.Reads != before.Reads || after.Writes-before.Writes > wantWrites {
			t.Errorf("%d files, %d read (want %d), %d objects read, %d written (want at most %d)", saved.Files, saved.Read, wantRead,
				after.Reads-before.Reads, after.Writes-before.Writes, wantWrites)
		}
		if probes := after.Probes - before.Probes; wantRead < 10 && probes > 6 {
			t.Errorf("%d questions to the bucket", probes)
		}
	}
	save(301, 4)
	save(0, 0)
	write(t, root, map[string]string{"d0/e0/f0": "content X", "d1/e1/f1": "content Y", "d2/e2/f2": "other length"})
	save(3, 3)
	must(0, root.Rename("d0/e0/f0", "d0/e0/moved"))
	save(1, 2) // renaming changes the ctime; its content is known
	must(0, root.Chmod("large", 0o600))
	save(1, 1)
	save(0, 0)
}

// A file that is written again within the same tick of the clock, to the same length, looks the same.
func TestFilesChangedJustNowAreReadAgain(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	root, index := workspace(t), filepath.Join(t.TempDir(), "index")
	write(t, root, map[string]string{"f": "one"})
	changed := newStamp(must(root.Lstat("f")), time.Now()).changed
	s.now = func() time.Time { return time.Unix(0, changed+1) }
	must(tenant.SaveTree(t.Context(), root, index))
	s.now = func() time.Time { return time.Unix(0, changed).Add(time.Minute) }
	if saved := must(tenant.SaveTree(t.Context(), root, index)); saved.Read != 1 {
		t.Errorf("read %d files; want the one that was changed as it was read", saved.Read)
	}
	if saved := must(tenant.SaveTree(t.Context(), root, index)); saved.Read != 0 {
		t.Errorf("read %d files; want none: it is at rest now", saved.Read)
	}
}

func TestIndexThatCanNotBeTrusted(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	root, index := workspace(t), filepath.Join(t.TempDir(), "index")
	write(t, root, map[string]string{"a": "1", "d/b": "2", "d/e/c": "3"})
	want := must(tenant.SaveTree(t.Context(), root, index))
	good := must(os.ReadFile(index))
	for how, raw := range damages(good) {
		if _, err := decodeIndex(raw); err == nil {
			t.Errorf("%s: not noticed", how)
		}
	}
	for how, raw := range damages(good[:10]) { // each of them cut short, too
		must(0, os.WriteFile(index, raw, 0o600))
		got, err := tenant.SaveTree(t.Context(), root, index)
		if err != nil || got.Tree != want.Tree || got.Read != 3 {
			t.Fatalf("%s: %+v, %v; want everything read anew", how, got, err)
		}
		if !bytes.Equal(must(os.ReadFile(index)), good) {
			t.Fatalf("%s: the index was not made anew", how)
		}
	}
	for name, other := range map[string]*Tenant{"another tenant": s.Tenant("other"), "another store": second2(open(t))} {
		got := must(other.SaveTree(t.Context(), root, index))
		restored := workspace(t)
		if err := other.RestoreTree(t.Context(), got.Tree, restored); err != nil || got.Tree != want.Tree {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := tenant.SaveTree(t.Context(), root, filepath.Join(t.TempDir(), "no", "folder")); err == nil {
		t.Error("an index that can't be written went unnoticed")
	}
}

func second2[A, B any](_ A, b B) B { return b }

func TestManySmallFiles(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	root, index := workspace(t), filepath.Join(t.TempDir(), "index")
	for d := range 200 {
		dir := fmt.Sprintf("pkg%d/sub", d)
		must(0, root.MkdirAll(dir, 0o755))
		sub := must(root.OpenRoot(dir))
		for i := range 100 {
			must(0, sub.WriteFile(fmt.Sprint("file", i, ".go"), fmt.Appendf(nil, "package p%d // %d\n%s", d, i, strings.Repeat("x\n", i)), 0o644))
		}
		sub.Close()
	}
	saved := must(tenant.SaveTree(t.Context(), root, index))
	if writes := s.Stats().Writes; saved.Files != 20_000 || writes > 20 {
		t.Errorf("%d files became %d objects", saved.Files, writes)
	}
	before := s.Stats()
	write(t, root, map[string]string{"pkg1/sub/file1.go": "1", "pkg77/sub/file2.go": "2", "pkg150/sub/file3.go": "3"})
	changed := must(tenant.SaveTree(t.Context(), root, index))
	after := s.Stats()
	if changed.Read != 3 || after.Writes-before.Writes > 3 || after.Reads != before.Reads || after.BytesWritten-before.BytesWritten > 64<<10 {
		t.Errorf("three changes: %d read, %+v then %+v", changed.Read, before, after)
	}
	fresh, cold := s.cold(tenant)
	if got := must(cold.ReadTreeFile(t.Context(), changed.Tree, "pkg77/sub/file2.go")); string(got) != "2" || fresh.Stats().Reads > 4 {
		t.Errorf("one file: %q with %d reads", got, fresh.Stats().Reads)
	}
	restored := workspace(t)
	must(0, cold.RestoreTree(t.Context(), changed.Tree, restored))
	if reads := fresh.Stats().Reads; reads > 25 {
		t.Errorf("restoring took %d reads", reads)
	}
	if again := must(tenant.SaveTree(t.Context(), restored, "")); again.Tree != changed.Tree {
		t.Error("the restored tree is another")
	}
}

func TestSkippedEntries(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	root := workspace(t)
	write(t, root, map[string]string{"d/f": "x"})
	must(0, syscall.Mkfifo(filepath.Join(root.Name(), "d", "fifo"), 0o600))
	fd := must(syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))
	defer syscall.Close(fd)
	must(0, syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Join(root.Name(), "so\x01ck")}))
	saved := must(tenant.SaveTree(t.Context(), root, ""))
	if diff := cmp.Diff([]string{"d/fifo (FIFO)", `"so\x01ck" (socket)`}, saved.Skipped); diff != "" || saved.Files != 1 {
		t.Errorf("%d files, skipped: %s", saved.Files, diff)
	}
	var many skips
	for range maxListed + 7 {
		many.add(&trail{name: "x"}, fs.ModeDevice)
	}
	if l := many.list(); len(l) != maxListed+1 || l[0] != "x (device)" || l[maxListed] != "and 7 more" {
		t.Errorf("%d entries: %v", len(l), l[maxListed:])
	}
}

// A FIFO that takes a file's place between the look and the opening must not be waited for.
func TestFIFOInAFilesPlace(t *testing.T) {
	t.Parallel()
	root := workspace(t)
	write(t, root, map[string]string{"f": "x"})
	seen := must(root.Lstat("f"))
	must(0, root.Remove("f"))
	must(0, syscall.Mkfifo(filepath.Join(root.Name(), "f"), 0o600))
	if _, err := topFolder(root).open("f", seen); !errors.Is(err, errChanged) {
		t.Errorf("got %v; want that it changed", err)
	}
	write(t, root, map[string]string{"d/x": "", "other/x": ""})
	seen = must(root.Lstat("d"))
	must(0, root.Rename("d", "moved"))
	must(0, root.Symlink("other", "d"))
	if _, err := topFolder(root).enter("d", seen); !errors.Is(err, errChanged) {
		t.Errorf("a link in a folder's place: got %v; want that it changed", err)
	}
}

func TestFileThatNeverRests(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	root := workspace(t)
	must(0, root.WriteFile("busy.log", make([]byte, 24<<20), 0o644))
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		f := must(root.OpenFile("busy.log", os.O_WRONLY, 0))
		defer f.Close()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				must(f.WriteAt(fmt.Append(nil, i), int64(i%1000)))
			}
		}
	})
	var err error
	for range 20 { // the writer may get no time during one of them
		if _, err = tenant.SaveTree(t.Context(), root, ""); err != nil {
			break
		}
	}
	close(stop)
	writer.Wait()
	wantStateError(t, err, "busy.log: changed while it was read")
	if saved, err := tenant.SaveTree(t.Context(), root, ""); err != nil || saved.Files != 1 {
		t.Errorf("at rest: %v", err)
	}
}

func TestSparseAndOversizedFiles(t *testing.T) {
	t.Parallel()
	s, tenant := openAt(t, "mem://", Options{MaxTreeBytes: 60 << 20})
	root := workspace(t)
	write(t, root, map[string]string{"sparse": ""})
	must(0, os.Truncate(filepath.Join(root.Name(), "sparse"), 40<<20))
	saved := must(tenant.SaveTree(t.Context(), root, ""))
	if saved.Bytes != 40<<20 || s.Stats().BytesWritten > 1<<20 {
		t.Errorf("%+v, %+v", saved, s.Stats())
	}
	restored := workspace(t)
	must(0, tenant.RestoreTree(t.Context(), saved.Tree, restored))
	if info := must(restored.Stat("sparse")); info.Size() != 40<<20 {
		t.Errorf("restored %d bytes", info.Size())
	}
	must(0, os.Truncate(filepath.Join(root.Name(), "sparse"), 1<<43))
	if _, err := tenant.SaveTree(t.Context(), root, ""); agent.TypeOf(err) != agent.ValidationError || !strings.Contains(err.Error(), "sparse") {
		t.Errorf("a file of 8 TiB: got %v; want ValidationError", err)
	}
}

func TestDeepTree(t *testing.T) {
	t.Parallel()
	const levels = 3000
	_, tenant := open(t)
	root, index := workspace(t), filepath.Join(t.TempDir(), "index")
	deep := func(root *os.Root, levels int, bottom string) {
		at := topFolder(root)
		defer func() { at.close() }()
		for range levels {
			must(0, at.root.Mkdir(at.at("level"), 0o755))
			next := must(at.enter("level", must(at.lstat("level"))))
			if next.owned {
				at.close()
			} else {
				next.owned, at.owned = at.owned, false
			}
			at = next
		}
		must(0, at.writeFile("bottom", 0o644, strings.NewReader(bottom)))
	}
	deep(root, levels, "one")
	saved := must(tenant.SaveTree(t.Context(), root, index))
	if again := must(tenant.SaveTree(t.Context(), root, index)); again.Tree != saved.Tree || again.Read != 0 {
		t.Errorf("again: %+v", again)
	}
	restored := workspace(t)
	deep(restored, levels+10, "another")
	must(0, tenant.RestoreTree(t.Context(), saved.Tree, restored))
	if again := must(tenant.SaveTree(t.Context(), restored, "")); again.Tree != saved.Tree {
		t.Error("the restored tree is another")
	}
	path := strings.Repeat("level/", levels) + "bottom"
	if got := must(tenant.ReadTreeFile(t.Context(), saved.Tree, path)); string(got) != "one" {
		t.Errorf("read %q", got)
	}
	empty := must(tenant.SaveTree(t.Context(), workspace(t), ""))
	must(0, tenant.RestoreTree(t.Context(), empty.Tree, restored))
	must(0, tenant.RestoreTree(t.Context(), empty.Tree, root)) // t.TempDir can't remove that by itself
	if names := must(topFolder(restored).names()); len(names) > 0 {
		t.Errorf("%v is left of it", names)
	}
}

// Whoever writes in the workspace swaps folders and files for links that lead out, while it is saved and restored.
func TestLinksSwappedInNeverLeadOut(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	outside := t.TempDir()
	must(0, os.WriteFile(filepath.Join(outside, "secret"), []byte("SECRET-CONTENT"), 0o600))
	before := listing(t, must(os.OpenRoot(outside)))
	root := workspace(t)
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("d/e%d/secret", i)] = "inside"
	}
	write(t, root, files)
	tree := must(tenant.SaveTree(t.Context(), root, "")).Tree
	stop := make(chan struct{})
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			p := filepath.Join(root.Name(), fmt.Sprintf("d/e%d", i%30))
			target := p
			if i%2 == 0 {
				target = filepath.Join(p, "secret")
			}
			if os.Rename(target, target+".gone") == nil {
				link := outside
				if i%2 == 0 {
					link = filepath.Join(outside, "secret")
				}
				_ = os.Symlink(link, target) // loses races with the store
				_ = os.Remove(target)
				_ = os.Rename(target+".gone", target)
			}
		}
	})
	deadline := time.Now().Add(2 * time.Second)
	saves := 0
	for time.Now().Before(deadline) {
		if saved, err := tenant.SaveTree(t.Context(), root, ""); err == nil {
			saves++
			for _, e := range must(tenant.ListTree(t.Context(), saved.Tree)) {
				if e.Type == TypeFile && e.Digest == sumOf([]byte("SECRET-CONTENT")) {
					t.Fatalf("%s was read from outside", e.Path)
				}
			}
		}
		_ = tenant.RestoreTree(t.Context(), tree, root) // may lose against the attacker, but never writes outside
	}
	close(stop)
	attacker.Wait()
	if saves == 0 {
		t.Error("no save came through: the test shows nothing")
	}
	if diff := cmp.Diff(before, listing(t, must(os.OpenRoot(outside)))); diff != "" {
		t.Errorf("outside was changed: %s", diff)
	}
	if err := tenant.RestoreTree(t.Context(), tree, root); err != nil {
		t.Error(err)
	}
	if again := must(tenant.SaveTree(t.Context(), root, "")); again.Tree != tree {
		t.Error("the tree is not restored after the attack")
	}
}

func TestHardLinkToTheOutsideIsNotWrittenThrough(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	root, outside := workspace(t), filepath.Join(t.TempDir(), "f")
	write(t, root, map[string]string{"f": "tree"})
	tree := must(tenant.SaveTree(t.Context(), root, "")).Tree
	must(0, os.WriteFile(outside, []byte("host"), 0o644))
	must(0, root.Remove("f"))
	must(0, os.Link(outside, filepath.Join(root.Name(), "f")))
	must(0, tenant.RestoreTree(t.Context(), tree, root))
	if got := must(os.ReadFile(outside)); string(got) != "host" {
		t.Errorf("the file outside holds %q", got)
	}
}

func TestDamagedTree(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	root := workspace(t)
	write(t, root, map[string]string{"a": "1", "d/b": "2"})
	tree := must(tenant.SaveTree(t.Context(), root, "")).Tree
	keys := s.objects(t, "")
	if len(keys) != 3 { // files, folders, the top
		t.Fatalf("objects: %v", keys)
	}
	restored := workspace(t)
	for _, key := range keys {
		whole := s.raw(t, key)
		all := damages(whole)
		all["something else"] = s.codec.seal([]byte("something else"))
		for how, raw := range all {
			s.setRaw(t, key, raw)
			err := tenant.RestoreTree(t.Context(), tree, restored)
			if agent.TypeOf(err) != agent.StateError || !strings.Contains(err.Error(), string(tree)) {
				t.Errorf("%s, %s: got %v; want a StateError that names the tree", key, how, err)
			}
		}
		must(0, s.bucket.Delete(t.Context(), key))
		err := tenant.RestoreTree(t.Context(), tree, workspace(t))
		wantStateError(t, err, string(tree))
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s gone: got %v; want ErrNotFound in it", key, err)
		}
		s.setRaw(t, key, whole)
	}
}

func TestReadTreeFileAndListTree(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	root := workspace(t)
	write(t, root, map[string]string{"a/b": "x", "a.c": "", "z": strings.Repeat("z", packedFile+1)})
	must(0, root.Symlink("z", "link"))
	must(0, root.Mkdir("empty", 0o700))
	tree := must(tenant.SaveTree(t.Context(), root, "")).Tree
	want := []Entry{
		{Path: "a", Type: TypeFolder, Mode: 0o755},
		{Path: "a/b", Type: TypeFile, Mode: 0o644, Size: 1, Digest: sumOf([]byte("x"))},
		{Path: "a.c", Type: TypeFile, Mode: 0o644, Digest: sumOf(nil)},
		{Path: "empty", Type: TypeFolder, Mode: 0o700},
		{Path: "link", Type: TypeSymlink, Target: "z"},
		{Path: "z", Type: TypeFile, Mode: 0o644, Size: packedFile + 1, Digest: sumOf(bytes.Repeat([]byte("z"), packedFile+1))},
	}
	if diff := cmp.Diff(want, must(tenant.ListTree(t.Context(), tree))); diff != "" {
		t.Error(diff)
	}
	for name, size := range map[string]int{"a/b": 1, "a.c": 0, "z": packedFile + 1} {
		if got, err := tenant.ReadTreeFile(t.Context(), tree, name); err != nil || len(got) != size {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	for name, missing := range map[string]bool{"b": true, "a/c": true, "a/b/c": false, "a": false, "link": false, "link/x": false, "": false, "/a": false, "a/../z": false, "..": false} {
		_, err := tenant.ReadTreeFile(t.Context(), tree, name)
		if agent.TypeOf(err) != agent.InvalidInput || errors.Is(err, ErrNotFound) != missing {
			t.Errorf("%q: got %v; want InvalidInput, missing: %v", name, err, missing)
		}
	}
}

// What its owner locked away is saved and restored as it is, whether or not permission bits hold for this process.
func TestLockedFilesAndFolders(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	root, restored := workspace(t), workspace(t)
	write(t, root, map[string]string{"locked/f": "x", "locked/sub/g": "y", "readonly/h": "z"})
	modes := map[string]fs.FileMode{"locked/f": 0, "locked/sub": 0o100, "locked": 0, "readonly": 0o555}
	lock := func(root *os.Root) {
		for _, p := range []string{"locked/f", "locked/sub", "locked", "readonly"} { // from the bottom up
			must(0, root.Chmod(p, modes[p]))
		}
	}
	unlock := func(root *os.Root) {
		for _, p := range []string{"readonly", "locked", "locked/sub"} {
			if got := must(root.Lstat(p)).Mode().Perm(); got != modes[p] {
				t.Errorf("%s has mode %o; want %o", p, got, modes[p])
			}
			must(0, root.Chmod(p, 0o700))
		}
		if got := must(root.Lstat("locked/f")).Mode().Perm(); got != 0 {
			t.Errorf("locked/f has mode %o; want 0", got)
		}
	}
	lock(root)
	saved := must(tenant.SaveTree(t.Context(), root, ""))
	unlock(root)
	if saved.Files != 3 || saved.Bytes != 3 {
		t.Errorf("%+v", saved)
	}
	must(0, tenant.RestoreTree(t.Context(), saved.Tree, restored))
	if again := must(tenant.SaveTree(t.Context(), restored, "")); again.Tree != saved.Tree {
		t.Error("the restored tree is another")
	}
	unlock(restored)
	lock(restored)
	empty := must(tenant.SaveTree(t.Context(), workspace(t), ""))
	must(0, tenant.RestoreTree(t.Context(), empty.Tree, restored))
	if names := must(topFolder(restored).names()); len(names) > 0 {
		t.Errorf("%v is left", names)
	}
}

func TestCancelledSaveAndRestore(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	root := workspace(t)
	write(t, root, map[string]string{"f": "x"})
	tree := must(tenant.SaveTree(t.Context(), root, "")).Tree
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tenant.SaveTree(ctx, root, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
	if err := tenant.RestoreTree(ctx, tree, workspace(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("restore: %v", err)
	}
}

func FuzzDecodeFolder(f *testing.F) {
	here := &pack{sum: sum{1}}
	nodes := []*node{
		{name: "a", kind: kindFile, perm: 0o644, size: 3, digest: sum{2}, at: place{pack: &pack{sum: sum{3}}, offset: 4, length: 3}},
		{name: "b", kind: kindFolder, perm: 0o755, digest: sum{5}, at: place{pack: here, offset: 1, length: 2}},
		{name: "c", kind: kindLink, target: "../x"},
		{name: "d", kind: kindFile, digest: sum{6}},
	}
	entries := entriesOf(nodes)
	f.Add(encodeFolder(entries, nodes, here))
	f.Add(encodeFolder(nil, nil, nil))
	f.Fuzz(func(t *testing.T, stored []byte) {
		w := wire{rest: stored}
		nodes, err := decodeFolder(stored, treeSum(w.text()), here)
		if err != nil {
			return
		}
		for _, n := range nodes {
			if !validName(n.name) || n.perm > 0o777 || n.at.offset < 0 || n.at.length < 0 {
				t.Errorf("%+v", n)
			}
		}
		again := encodeFolder(entriesOf(nodes), nodes, here)
		if back, err := decodeFolder(again, treeSum(entriesOf(nodes)), here); err != nil || len(back) != len(nodes) {
			t.Errorf("%d nodes become %d, %v", len(nodes), len(back), err)
		}
	})
}

func FuzzDecodeIndex(f *testing.F) {
	p := &pack{sum: sum{9}}
	x := &treeIndex{tree: sum{1}, top: []*node{
		{name: "a", kind: kindFile, perm: 0o600, size: 3, digest: sum{2}, at: place{pack: p, length: 3}, stamp: stamp{1, 2, -3, 4, true}},
		{name: "b", kind: kindFolder, digest: sum{3}, at: place{pack: p, offset: 3, length: 2}, children: []*node{{name: "c", kind: kindLink, target: "t"}}},
	}}
	f.Add(encodeIndex(x))
	f.Add(encodeIndex(&treeIndex{}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		x, err := decodeIndex(raw)
		if err != nil { // nearly always: look behind the checksum too
			d := indexDecoder{w: wire{rest: raw}}
			d.folder(0)
			return
		}
		again := encodeIndex(x)
		if back, err := decodeIndex(again); err != nil || !bytes.Equal(encodeIndex(back), again) {
			t.Errorf("not stable: %v", err)
		}
	})
}

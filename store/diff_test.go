package store

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
)

// gitView describes what git can see of a folder: files with their execute bit, and links.
func gitView(t *testing.T, root *os.Root) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root.Name(), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info := must(d.Info())
		name := must(filepath.Rel(root.Name(), p))
		if info.Mode().Type() == fs.ModeSymlink {
			all[name] = "link " + must(os.Readlink(p))
		} else {
			all[name] = fmt.Sprintf("%v %s", info.Mode()&0o100 != 0, sumOf(must(os.ReadFile(p))))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// gitApply applies a patch to a folder with the real git.
func gitApply(t *testing.T, root *os.Root, patch []byte, flags ...string) {
	t.Helper()
	if len(patch) == 0 {
		return // git refuses an empty patch
	}
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"apply", "--whitespace=nowarn"}, flags...)...)
	cmd.Dir, cmd.Stdin = root.Name(), bytes.NewReader(patch)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(root.Name()))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, patch[:min(len(patch), 4000)])
	}
}

// tree makes and saves a workspace: contents by path; "->x" is a link, "+x" executable, a trailing "/" an empty folder.
func tree(t *testing.T, tenant *Tenant, files map[string]string) (*os.Root, agent.Digest) {
	t.Helper()
	root := workspace(t)
	for p, content := range files {
		if strings.HasSuffix(p, "/") {
			must(0, root.MkdirAll(p, 0o755))
			continue
		}
		must(0, root.MkdirAll(filepath.Dir(p), 0o755))
		target, isLink := strings.CutPrefix(content, "->")
		content, isProgram := strings.CutPrefix(content, "+")
		switch {
		case isLink:
			must(0, root.Symlink(target, p))
		case isProgram:
			must(0, root.WriteFile(p, []byte(content), 0o755))
		default:
			must(0, root.WriteFile(p, []byte(content), 0o644))
		}
	}
	return root, must(tenant.SaveTree(t.Context(), root, "")).Tree
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, "line", i)
	}
	return b.String()
}

var patchCases = []struct {
	name     string
	from, to map[string]string
}{
	{"nothing", map[string]string{"a": "1"}, map[string]string{"a": "1"}},
	{"new, changed and deleted", map[string]string{"a": lines(1, 50), "b": "gone\n"}, map[string]string{"a": lines(1, 20) + "new\n" + lines(22, 50), "d/e/c": "new\n"}},
	{"far apart", map[string]string{"a": lines(1, 100)}, map[string]string{"a": "first\n" + lines(1, 100) + "last\n"}},
	{"no newline at the end", map[string]string{"a": "x\ny", "b": "x\ny\n", "c": "x\ny"}, map[string]string{"a": "x\ny\n", "b": "x\ny", "c": "x\nz"}},
	{"empty files", map[string]string{"a": "", "b": "x\n", "c": ""}, map[string]string{"b": "", "c": "x\n", "d": ""}},
	{"execute bit", map[string]string{"a": "x\n", "b": "+y\n", "c": "x\n"}, map[string]string{"a": "+x\n", "b": "z\n", "c": "+c\n", "d": "+new\n"}},
	{"links", map[string]string{"a": "->x", "b": "->gone"}, map[string]string{"a": "->y/z", "c": "->/etc/passwd"}},
	{"file becomes link, and back", map[string]string{"a": "x\n", "b": "->x"}, map[string]string{"a": "->x", "b": "x\n"}},
	{"file becomes folder", map[string]string{"a": "x\n"}, map[string]string{"a/b": "x\n", "a/c": "y\n"}},
	{"folder becomes file", map[string]string{"a/b": "x\n", "a/c": "y\n"}, map[string]string{"a": "x\n"}},
	{"binary", map[string]string{"a": "\x00\x01" + lines(1, 300), "b": "text\n", "gone": "\x00"}, map[string]string{"a": "\x00\x02" + lines(1, 310), "b": "\x00", "new": strings.Repeat("\x00\xff", 53)}},
	{"odd names", map[string]string{"with space": "1\n", "tab\tx": "1\n", "q\"\\": "1\n", "ünï": "1\n"},
		map[string]string{"with space": "2\n", "tab\tx": "2\n", "q\"\\": "2\n", "ünï": "2\n", "new\nline": "1\n", "\xff\x01": "1\n", "-n": "1\n", " lead and trail ": "1\n", "a b/c d": "1\n"}},
	{"carriage returns and bytes that are not UTF-8", map[string]string{"a": "x\r\ny\r\n", "b": "\xff\xfe\n"}, map[string]string{"a": "x\r\nz\r\n", "b": "\xff\xfd\nä\n"}},
	{"text that looks like a patch", map[string]string{"a": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n"}, map[string]string{"a": "--- a\n+++ b\n@@ -1 +1 @@\n-y\n-- \n\\ No newline\n"}},
	{"repeated lines", map[string]string{"a": strings.Repeat("}\n", 40)}, map[string]string{"a": strings.Repeat("}\n", 17) + "x\n" + strings.Repeat("}\n", 29)}},
}

func TestDiffAppliesWithGit(t *testing.T) {
	t.Parallel()
	for _, c := range patchCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, tenant := open(t)
			root, from := tree(t, tenant, c.from)
			want, to := tree(t, tenant, c.to)
			before := gitView(t, root)
			patch := must(tenant.Diff(t.Context(), from, to))
			gitApply(t, root, patch)
			if diff := cmp.Diff(gitView(t, want), gitView(t, root)); diff != "" {
				t.Errorf("%s\n%s", diff, patch)
			}
			gitApply(t, root, patch, "-R")
			if diff := cmp.Diff(before, gitView(t, root)); diff != "" {
				t.Errorf("taken back: %s\n%s", diff, patch)
			}
			if (len(patch) == 0) != (from == to) {
				t.Errorf("a patch of %d bytes", len(patch))
			}
		})
	}
}

func TestDiffOfRandomTreesAppliesWithGit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			_, tenant := open(t)
			rnd := rand.New(rand.NewPCG(seed, 2))
			root, at := workspace(t), workspace(t)
			trees := []agent.Digest{""}
			for range 3 {
				scribble(t, root, rnd)
				trees = append(trees, must(tenant.SaveTree(t.Context(), root, "")).Tree)
				last := len(trees) - 1
				gitApply(t, at, must(tenant.Diff(t.Context(), trees[last-1], trees[last])))
				if diff := cmp.Diff(gitView(t, root), gitView(t, at)); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

func TestDiffLeavesOutWhatGitRefuses(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	_, from := tree(t, tenant, map[string]string{"a": "1\n", ".git/HEAD": "x\n"})
	root, to := tree(t, tenant, map[string]string{"a": "1\n", ".git/HEAD": "y\n", "sub/.GIT/config": "z\n", "empty/": ""})
	must(0, root.Chmod("a", 0o640))
	to2 := must(tenant.SaveTree(t.Context(), root, "")).Tree
	for _, tree := range []agent.Digest{to, to2} {
		if patch := must(tenant.Diff(t.Context(), from, tree)); len(patch) > 0 {
			t.Errorf("got\n%s\nwant nothing", patch)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	files := map[string]string{"same/deep/f": "x", "mod/f": "1", "gone/f": "x", "turn": "file", "link": "->a", "mode": "x"}
	_, from := tree(t, tenant, files)
	_, to := tree(t, tenant, map[string]string{"same/deep/f": "x", "mod/f": "2", "new/": "", "turn/f": "y", "link": "->b", "mode": "+x"})
	fresh, cold := s.cold(tenant)
	var got []string
	for _, c := range must(cold.Changes(t.Context(), from, to)) {
		if (c.From == nil) != (c.Kind == Added) || (c.To == nil) != (c.Kind == Deleted) {
			t.Errorf("%+v", c)
		}
		got = append(got, string(c.Kind)+" "+c.Path)
	}
	want := []string{"deleted gone", "deleted gone/f", "modified link", "modified mod/f", "chmod mode", "added new", "deleted turn", "added turn", "added turn/f"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if fresh.Stats().Reads > 4 {
		t.Errorf("%d reads", fresh.Stats().Reads)
	}
	if got := must(tenant.Changes(t.Context(), to, to)); len(got) > 0 {
		t.Errorf("a tree differs from itself: %v", got)
	}
	_, err := tenant.Changes(t.Context(), from, sumOf([]byte("no tree")))
	wantStateError(t, err, string(sumOf([]byte("no tree"))))
}

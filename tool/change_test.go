package tool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"belay/agent"
	"belay/tool"
)

// A call that changes a file, crashed at every use of the memory, before and after that took effect, and repeated: the
// change is made once, and the model is told what it would have been told without the crash.
func TestChangeSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, tool string
		args       args
		before     map[string]string
		read       bool
		left       string
	}{
		{"edit", "edit_file", args{"path": "f", "old": "a", "new": "aa"}, map[string]string{"f": "a\n"}, true, "aa\n"},
		{"edit of a file that was not read", "edit_file", args{"path": "f", "old": "a", "new": "b"}, map[string]string{"f": "a\n"}, false, "b\n"},
		{"edit that matches what it made", "edit_file", args{"path": "f", "old": "x", "new": "xx", "all": true}, map[string]string{"f": "x x\n"}, true, "xx xx\n"},
		{"overwrite", "write_file", args{"path": "f", "content": "new\n"}, map[string]string{"f": "old\n"}, true, "new\n"},
		{"new file", "write_file", args{"path": "f", "content": "new\n"}, nil, false, "new\n"},
	} {
		clean := newBench(t, row.before)
		if row.read {
			clean.do("read_file", args{"path": "f"})
		}
		used := clean.notes.uses
		want, err := clean.call("c9", row.tool, row.args)
		clean.must(err)
		uses := clean.notes.uses - used
		if uses < 4 { // the intent and what was seen, each read and written
			t.Fatalf("%s: %d uses of the memory: %v", row.name, uses, clean.notes.log)
		}
		for n := 1; n <= uses; n++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/use %d/took effect %t", row.name, n, after), func(t *testing.T) {
					t.Parallel()
					b := newBench(t, row.before)
					if row.read {
						b.do("read_file", args{"path": "f"})
					}
					b.notes.failAt, b.notes.failedAfter = b.notes.uses+n, after
					if _, err := b.call("c9", row.tool, row.args); agent.TypeOf(err) != agent.StateError {
						t.Fatalf("the crash gave %v", err)
					}
					for range 2 { // the repetition, and one of a call that had ended
						o, err := b.call("c9", row.tool, row.args)
						b.must(err)
						if o.Status != want.Status || o.Text != want.Text {
							t.Errorf("got %s %q\nwant %s %q", o.Status, o.Text, want.Status, want.Text)
						}
						if got := b.get("f"); got != row.left {
							t.Errorf("the file holds %q; want %q", got, row.left)
						}
					}
					// What the call left is what the run has seen.
					b.expect(b.do("write_file", args{"path": "f", "content": "next\n"}), agent.CallOK)
					b.alone("f")
				})
			}
		}
	}
}

// alone checks that there is nothing in the workspace but that file.
func (b *bench) alone(name string) {
	b.t.Helper()
	entries, err := os.ReadDir(b.box.dir)
	b.must(err)
	if len(entries) != 1 || entries[0].Name() != name {
		b.t.Errorf("the workspace holds %v; want only %s", entries, name)
	}
}

// A crash between the temporary file and its rename leaves that file. Only the call itself, repeated, may meet it.
func TestChangeRemovesItsOwnLeftover(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"f": "a\n"})
	edit := args{"path": "f", "old": "a", "new": "b"}
	b.put(tool.TempName("c1", "/workspace/f"), "half of som")
	b.expect(b.do("edit_file", edit), agent.CallOK)
	if b.get("f") != "b\n" {
		t.Errorf("the file holds %q", b.get("f"))
	}
	b.alone("f")
}

// A workspace that was restored from a checkpoint holds the content before; the memory is newer. The batch is repeated.
func TestChangeAfterARestore(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"f": "a\n"})
	b.do("read_file", args{"path": "f"})
	calls := []struct {
		id   string
		args args
	}{{"c8", args{"path": "f", "old": "a", "new": "b"}}, {"c9", args{"path": "f", "old": "b", "new": "c"}}}
	for round := range 3 {
		for _, c := range calls {
			o, err := b.call(c.id, "edit_file", c.args)
			b.must(err)
			b.expect(o, agent.CallOK, "edited f: 1 place\n")
		}
		if b.get("f") != "c\n" {
			t.Fatalf("round %d: the file holds %q", round, b.get("f"))
		}
		b.put("f", "a\n") // the restore
	}
}

func TestChangeOfWhatSomethingElseChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"f": "a\n"})
	edit := args{"path": "f", "old": "a", "new": "b"}
	_, err := b.call("c9", "edit_file", edit)
	b.must(err)
	b.put("f", "a something else\n")
	o, err := b.call("c9", "edit_file", edit)
	b.must(err)
	b.expect(o, agent.CallFailed, "f changed while this call was being repeated after a crash; read it again")
	if b.get("f") != "a something else\n" {
		t.Errorf("the file holds %q", b.get("f"))
	}
}

// A reviewer may edit a call: the same id with other arguments is another change.
func TestChangeOfAnEditedCall(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"f": "a\nb\n"})
	_, err := b.call("c9", "edit_file", args{"path": "f", "old": "a", "new": "A"})
	b.must(err)
	o, err := b.call("c9", "edit_file", args{"path": "f", "old": "b", "new": "B"})
	b.must(err)
	b.expect(o, agent.CallOK)
	if b.get("f") != "A\nB\n" {
		t.Errorf("the file holds %q", b.get("f"))
	}
}

// A disk that is full, or whatever else stops a change halfway, leaves the old file and nothing else.
func TestChangeThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"f": "a\n"})
	b.put(filepath.Join(tool.TempName("c1", "/workspace/f"), "x"), "") // a folder in the way that is not empty
	b.expect(b.do("edit_file", args{"path": "f", "old": "a", "new": "b"}), agent.CallFailed, "directory not empty")
	if b.get("f") != "a\n" {
		t.Errorf("the file holds %q", b.get("f"))
	}
}

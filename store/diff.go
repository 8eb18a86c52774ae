package store

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // the name that git gives a blob, not a protection
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"belay/agent"
)

const (
	// maxTextDiff is the largest file that is compared by lines; a larger one is given whole, as binary.
	maxTextDiff = 8 << 20
	// maxPatch is how long a patch may be, in bytes.
	maxPatch = 128 << 20
)

// Diff gives what changed between two trees ("" is the empty one) as a patch that "git apply" takes, and "git apply -R"
// takes back: text by lines, everything else as git's binary patches. It holds what git can hold: of the permission bits
// the owner's execute bit, no empty folders, and nothing below a ".git", which git refuses to touch; Changes lists those
// too. A patch of more than 128 MiB is ResourceExhausted.
func (t *Tenant) Diff(ctx context.Context, from, to agent.Digest) ([]byte, error) {
	p := patch{ctx: ctx}
	c := comparison{reader: treeReader{tenant: t}, found: p.entry}
	p.reader = &c.reader
	if err := c.run(ctx, from, to); err != nil {
		return nil, err
	}
	return p.out.Bytes(), nil
}

// patch is a patch in the making.
type patch struct {
	ctx    context.Context
	reader *treeReader
	out    bytes.Buffer
}

// side is one entry as git sees it before or after a change; the zero value is none.
type side struct {
	mode    string
	content []byte
}

func (p *patch) side(n *node) (s side, err error) {
	switch {
	case n == nil:
		return side{}, nil
	case n.kind == kindLink:
		return side{"120000", []byte(n.target)}, nil
	case n.perm&0o100 != 0:
		s.mode = "100755"
	default:
		s.mode = "100644"
	}
	s.content, err = p.reader.file(p.ctx, n)
	return s, err
}

func (p *patch) entry(path string, a, b *node) error {
	if (a != nil && a.kind == kindFolder) || (b != nil && b.kind == kindFolder) || ofGit(path) {
		return nil
	}
	before, err := p.side(a)
	if err != nil {
		return err
	}
	after, err := p.side(b)
	if err != nil {
		return err
	}
	same := bytes.Equal(before.content, after.content)
	if same && before.mode == after.mode {
		return nil
	}
	p.header(path, before, after)
	if !same || a == nil || b == nil {
		p.index(before, after)
	}
	switch {
	case same:
	case isText(before.content) && isText(after.content):
		p.text(path, before, after)
	default:
		p.binary(before, after)
	}
	if p.out.Len() > maxPatch {
		return agent.Errorf(agent.ResourceExhausted, "patch: more than %d bytes at %q", maxPatch, path)
	}
	return nil
}

// ofGit says whether git would refuse to write at path.
func ofGit(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(name, ".git") {
			return true
		}
	}
	return false
}

func (p *patch) header(path string, before, after side) {
	fmt.Fprintf(&p.out, "diff --git %s %s\n", quoted("a/"+path), quoted("b/"+path))
	switch {
	case before.mode == "":
		fmt.Fprintf(&p.out, "new file mode %s\n", after.mode)
	case after.mode == "":
		fmt.Fprintf(&p.out, "deleted file mode %s\n", before.mode)
	case before.mode != after.mode:
		fmt.Fprintf(&p.out, "old mode %s\nnew mode %s\n", before.mode, after.mode)
	}
}

func (p *patch) index(before, after side) {
	fmt.Fprintf(&p.out, "index %s..%s", before.blob(), after.blob())
	if before.mode == after.mode {
		fmt.Fprintf(&p.out, " %s", after.mode)
	}
	p.out.WriteByte('\n')
}

// blob is the name that git gives to the content.
func (s side) blob() string {
	if s.mode == "" {
		return strings.Repeat("0", 2*sha1.Size)
	}
	h := sha1.New() //nolint:gosec // as above
	fmt.Fprintf(h, "blob %d\x00", len(s.content))
	h.Write(s.content)
	return fmt.Sprintf("%x", h.Sum(nil))
}

func isText(content []byte) bool {
	return len(content) <= maxTextDiff && bytes.IndexByte(content, 0) < 0
}

func (p *patch) text(path string, before, after side) {
	hunks := diff.Diff("a", before.content, "b", after.content)
	_, hunks, _ = bytes.Cut(hunks, []byte("\n+++ b\n"))
	fmt.Fprintf(&p.out, "--- %s\n+++ %s\n", before.label("a/"+path), after.label("b/"+path))
	p.out.Write(hunks)
}

// label names a side in front of its hunks. A tab ends a name with spaces.
func (s side) label(path string) string {
	if s.mode == "" {
		return "/dev/null"
	}
	if q := quoted(path); q != path || !strings.Contains(path, " ") {
		return q
	}
	return path + "\t"
}

// quoted gives a path as git writes it: as it is or, if it holds odd bytes, as a C string.
func quoted(path string) string {
	var b strings.Builder
	odd := false
	for i := range len(path) {
		c := path[i]
		if short := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c); short >= 0 {
			odd = true
			b.WriteByte('\\')
			b.WriteByte("abtnvfr\"\\"[short])
		} else if c < ' ' || c >= 0x7f {
			odd = true
			fmt.Fprintf(&b, "\\%03o", c)
		} else {
			b.WriteByte(c)
		}
	}
	if !odd {
		return path
	}
	return `"` + b.String() + `"`
}

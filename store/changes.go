package store

import (
	"context"
	"strings"

	"belay/agent"
)

// ChangeKind is what happened to an entry between two trees.
type ChangeKind string

// The kinds of changes. An entry that became another type is deleted and added.
const (
	Added    ChangeKind = "added"
	Deleted  ChangeKind = "deleted"
	Modified ChangeKind = "modified" // a file's content or a symlink's target, perhaps the mode too
	Chmod    ChangeKind = "chmod"    // the permission bits only
)

// Change is one entry that differs between two trees.
type Change struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
	From *Entry     `json:"from,omitempty"` // nil: it was not there
	To   *Entry     `json:"to,omitempty"`   // nil: it is not there any more
}

// Changes lists what differs between two trees, in the order of ListTree. "" is the empty tree. Folders that are the same
// in both are not read.
func (t *Tenant) Changes(ctx context.Context, from, to agent.Digest) ([]Change, error) {
	var changes []Change
	c := comparison{reader: treeReader{tenant: t}, found: func(path string, a, b *node) error {
		change := Change{Path: path, Kind: kindOfChange(a, b)}
		if a != nil {
			e := a.entry(path)
			change.From = &e
		}
		if b != nil {
			e := b.entry(path)
			change.To = &e
		}
		changes = append(changes, change)
		return nil
	}}
	return changes, c.run(ctx, from, to)
}

func kindOfChange(a, b *node) ChangeKind {
	switch {
	case a == nil:
		return Added
	case b == nil:
		return Deleted
	case a.digest != b.digest && a.kind == kindFile, a.target != b.target:
		return Modified
	}
	return Chmod
}

// comparison walks two trees at once and reports each entry that differs: once as gone (b nil) and once as new (a nil)
// where it became another type.
type comparison struct {
	reader treeReader
	found  func(path string, a, b *node) error
	paths  int // bytes of those reported
}

func (c *comparison) run(ctx context.Context, from, to agent.Digest) error {
	if from == to {
		return nil
	}
	a, err := c.reader.top(ctx, from)
	if err != nil {
		return err
	}
	b, err := c.reader.top(ctx, to)
	if err != nil {
		return err
	}
	return c.folders(ctx, nil, a, b)
}

func (c *comparison) folders(ctx context.Context, at *trail, a, b []*node) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for len(a) > 0 || len(b) > 0 {
		var before, after *node
		order := 0
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = strings.Compare(a[0].name, b[0].name)
		}
		if order <= 0 {
			before, a = a[0], a[1:]
		}
		if order >= 0 {
			after, b = b[0], b[1:]
		}
		if err := c.entry(ctx, at, before, after); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) entry(ctx context.Context, at *trail, a, b *node) error {
	if a != nil && b != nil && a.kind != b.kind {
		if err := c.entry(ctx, at, a, nil); err != nil {
			return err
		}
		return c.entry(ctx, at, nil, b)
	}
	n := a
	if n == nil {
		n = b
	}
	path := &trail{up: at, name: n.name}
	both := a != nil && b != nil
	same := both && a.digest == b.digest && a.target == b.target
	if !both || a.perm != b.perm || (!same && n.kind != kindFolder) {
		if err := c.report(path, a, b); err != nil {
			return err
		}
	}
	if same || n.kind != kindFolder {
		return nil
	}
	before, err := c.below(ctx, a)
	if err != nil {
		return err
	}
	after, err := c.below(ctx, b)
	if err != nil {
		return err
	}
	return c.folders(ctx, path, before, after)
}

func (c *comparison) report(path *trail, a, b *node) error {
	p := path.path()
	if c.paths += len(p); c.paths > maxPaths {
		return agent.Errorf(agent.ResourceExhausted, "%s: the paths that differ are longer than %d bytes", path, maxPaths)
	}
	return c.found(p, a, b)
}

func (c *comparison) below(ctx context.Context, n *node) ([]*node, error) {
	if n == nil {
		return nil, nil
	}
	return c.reader.folder(ctx, n)
}

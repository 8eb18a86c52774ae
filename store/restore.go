package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"belay/agent"
)

// RestoreTree makes what is under root the same as the tree: what is not in it goes, what is there already and the same
// stays untouched. Each file and link is replaced whole or not at all. Nothing outside of root is touched whatever links
// there are or come to be. The bits of root itself are left alone; restored files carry the time of their restoration.
func (t *Tenant) RestoreTree(ctx context.Context, tree agent.Digest, root *os.Root) error {
	r := restore{treeReader{tenant: t}}
	nodes, err := r.top(ctx, tree)
	if err == nil {
		err = r.fill(ctx, topFolder(root), nodes)
	}
	if err != nil {
		return hostError(agent.StateError, "restore tree "+string(tree), err)
	}
	return nil
}

type restore struct{ treeReader }

// fill makes the content of f the same as want.
func (r *restore) fill(ctx context.Context, f folder, want []*node) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	names, err := f.names()
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	for _, name := range names {
		if find(want, name) == nil {
			if err := f.remove(name); err != nil {
				return fmt.Errorf("remove %s: %w", &trail{up: f.path, name: name}, err)
			}
		}
	}
	for _, n := range want {
		if err := r.entry(ctx, f, n); err != nil {
			if agent.TypeOf(err) != "" {
				return err
			}
			return fmt.Errorf("%s: %w", &trail{up: f.path, name: n.name}, err)
		}
	}
	return nil
}

func (r *restore) entry(ctx context.Context, f folder, n *node) error {
	seen, err := f.lstat(n.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && seen.IsDir() != (n.kind == kindFolder) {
		if err := f.remove(n.name); err != nil {
			return err
		}
		seen = nil
	}
	switch n.kind {
	case kindFolder:
		return r.subfolder(ctx, f, n, seen)
	case kindLink:
		if seen != nil && seen.Mode().Type() == fs.ModeSymlink {
			if target, err := f.root.Readlink(f.at(n.name)); err == nil && target == n.target {
				return nil
			}
		}
		return f.writeLink(n.name, n.target)
	}
	return r.regular(ctx, f, n, seen)
}

func (r *restore) subfolder(ctx context.Context, f folder, n *node, seen fs.FileInfo) (err error) {
	switch {
	case seen == nil:
		err = f.root.Mkdir(f.at(n.name), 0o700)
	case seen.Mode().Perm()&0o700 != 0o700:
		err = f.root.Chmod(f.at(n.name), 0o700)
	}
	if err == nil {
		seen, err = f.lstat(n.name)
	}
	if err != nil {
		return err
	}
	sub, err := f.enter(n.name, seen)
	if err != nil {
		return err
	}
	defer sub.close()
	nodes, err := r.folder(ctx, n)
	if err != nil {
		return err
	}
	if err := r.fill(ctx, sub, nodes); err != nil {
		return err
	}
	return sub.chmod(fs.FileMode(n.perm)) // last: a folder may forbid what was just done in it
}

func (r *restore) regular(ctx context.Context, f folder, n *node, seen fs.FileInfo) error {
	if seen != nil && r.same(f, n, seen) {
		return nil
	}
	content, err := r.open(ctx, n)
	if err != nil {
		return err
	}
	defer content.Close()
	return f.writeFile(n.name, fs.FileMode(n.perm), ctxReader{ctx, content})
}

// same says whether the file that is there is the one that should be. When in doubt it is not.
func (r *restore) same(f folder, n *node, seen fs.FileInfo) bool {
	if !seen.Mode().IsRegular() || seen.Size() != n.size || seen.Mode().Perm() != fs.FileMode(n.perm) {
		return false
	}
	file, err := f.open(n.name, seen)
	if err != nil {
		return false
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(file, n.size+1)); err != nil {
		return false
	}
	return sum(h.Sum(nil)) == n.digest
}

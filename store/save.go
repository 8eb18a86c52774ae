package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"belay/agent"
)

const (
	// packSize is about how large a pack is, and packedFile the largest file that goes into one.
	packSize   = 4 << 20
	packedFile = 256 << 10
	// maxEntries is how many files, folders and links a workspace may hold.
	maxEntries = 1 << 20
	// readTries is how often a file that changes while it is read is tried.
	readTries = 5
)

// Saved says what SaveTree found and did.
type Saved struct {
	Tree    agent.Digest `json:"tree"`
	Files   int          `json:"files"`             // regular files in the tree
	Read    int          `json:"read"`              // of those, how many were read: the others were known from the index
	Bytes   int64        `json:"bytes"`             // of all files in the tree
	Skipped []string     `json:"skipped,omitempty"` // what a tree can't hold, such as "run/ctl.sock (socket)"; quoted if odd
}

// SaveTree stores everything under root and gives the digest of its tree. index is a file of the host, outside of root,
// that remembers what was read, so that the next save of the same folder reads only what changed; it is made and replaced
// here, may be absent, and is ignored when it is damaged or of another store. "" saves without one.
//
// Nothing should write under root meanwhile. A file that does change is read again, and is a StateError in the end; links
// are stored and never followed; sockets, devices and FIFOs are skipped and listed. A workspace of more than
// Options.MaxTreeBytes, 1,048,576 entries or 10,000 levels is ValidationError.
func (t *Tenant) SaveTree(ctx context.Context, root *os.Root, index string) (Saved, error) {
	s, old, err := t.newSave(ctx, index)
	if err != nil {
		return Saved{}, err
	}
	nodes, err := s.folder(ctx, topFolder(root), s.last.top)
	if err != nil {
		return Saved{}, hostError(agent.StateError, "save workspace", err)
	}
	tree, err := s.store(ctx, nodes)
	if err != nil {
		return Saved{}, err
	}
	s.saved.Tree = tree.digest()
	s.saved.Skipped = s.skips.list()
	if err := writeIndex(index, &treeIndex{tree: tree, top: nodes}, old); err != nil {
		return Saved{}, fmt.Errorf("workspace index: %w", err)
	}
	return s.saved, nil
}

// save is one run of SaveTree.
type save struct {
	tenant  *Tenant
	last    treeIndex
	known   map[sum]place // files and folders that the store has, and where
	files   packer
	saved   Saved
	skips   skips
	entries int
}

func (t *Tenant) newSave(ctx context.Context, path string) (*save, []byte, error) {
	s := &save{tenant: t, known: map[sum]place{}, files: packer{tenant: t}}
	x, raw, err := readIndex(path)
	if err != nil {
		return nil, nil, fmt.Errorf("workspace index: %w", err)
	}
	if x == nil {
		return s, raw, nil
	}
	// A tree is stored after all that it refers to, so one question tells whether the store has what the index says.
	d := x.tree.digest()
	there, err := t.store.exists(ctx, t.key(areaTrees, d), treeName(d))
	if err != nil {
		return nil, nil, err
	}
	if there {
		s.last = *x
		s.know(x.top)
	}
	return s, raw, nil
}

func (s *save) know(nodes []*node) {
	for _, n := range nodes {
		if n.kind != kindLink {
			s.known[n.digest] = n.at
			s.know(n.children)
		}
	}
}

// folder looks at everything in f. last is what the save before found there.
func (s *save) folder(ctx context.Context, f folder, last []*node) ([]*node, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	names, err := f.names()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	if s.entries += len(names); s.entries > maxEntries {
		return nil, agent.Errorf(agent.ValidationError, "%s: the workspace holds more than %d files and folders", f.path, maxEntries)
	}
	nodes := make([]*node, 0, len(names))
	for _, name := range names {
		n, err := s.entry(ctx, f, name, find(last, name))
		if err != nil {
			return nil, err
		}
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

func find(nodes []*node, name string) *node {
	i, ok := slices.BinarySearchFunc(nodes, name, func(n *node, name string) int { return strings.Compare(n.name, name) })
	if !ok {
		return nil
	}
	return nodes[i]
}

// entry captures one name; nil when there is nothing to capture.
func (s *save) entry(ctx context.Context, f folder, name string, last *node) (*node, error) {
	path := &trail{up: f.path, name: name}
	for range readTries {
		seen, err := f.lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		var n *node
		if err == nil {
			n, err = s.capture(ctx, f, name, seen, last)
		}
		switch {
		case errors.Is(err, errChanged) || errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil && (agent.TypeOf(err) != "" || ctx.Err() != nil):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return n, nil
	}
	return nil, agent.Errorf(agent.StateError, "workspace file %s: %w, %d times", path, errChanged, readTries)
}

func (s *save) capture(ctx context.Context, f folder, name string, seen fs.FileInfo, last *node) (*node, error) {
	n := &node{name: name, perm: uint16(seen.Mode().Perm())}
	switch seen.Mode().Type() {
	case 0:
		n.kind = kindFile
		return n, s.file(ctx, f, n, seen, last)
	case fs.ModeDir:
		n.kind = kindFolder
		return n, f.permitted(name, seen, 0o500, func() error { return s.subfolder(ctx, f, n, seen, last) })
	case fs.ModeSymlink:
		n.kind, n.perm = kindLink, 0
		target, err := f.root.Readlink(f.at(name))
		n.target = target
		return n, err
	}
	s.skips.add(&trail{up: f.path, name: name}, seen.Mode())
	return nil, nil
}

func (s *save) subfolder(ctx context.Context, f folder, n *node, seen fs.FileInfo, last *node) error {
	sub, err := f.enter(n.name, seen)
	if err != nil {
		return err
	}
	defer sub.close()
	var before []*node
	if last != nil && last.kind == kindFolder {
		before = last.children
	}
	n.children, err = s.folder(ctx, sub, before)
	return err
}

// file captures a regular file, from the index if it is the same as then.
func (s *save) file(ctx context.Context, f folder, n *node, seen fs.FileInfo, last *node) error {
	n.size = seen.Size()
	if limit := s.tenant.store.opts.MaxTreeBytes; n.size > limit-s.saved.Bytes {
		return agent.Errorf(agent.ValidationError, "%s: %d bytes; the workspace is larger than %d bytes",
			&trail{up: f.path, name: n.name}, n.size, limit)
	}
	n.stamp = newStamp(seen, s.tenant.store.now())
	if last != nil && last.kind == kindFile && last.size == n.size && last.stamp.same(n.stamp) {
		n.stamp, n.digest, n.at = last.stamp, last.digest, last.at
	} else {
		err := f.permitted(n.name, seen, 0o400, func() error { return s.read(ctx, f, n, seen) })
		if err != nil {
			return err
		}
		s.saved.Read++
	}
	s.saved.Files++
	s.saved.Bytes += n.size
	return nil
}

// read stores the content of a file that does not change meanwhile.
func (s *save) read(ctx context.Context, f folder, n *node, seen fs.FileInfo) error {
	file, err := f.open(n.name, seen)
	if err != nil {
		return err
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return err
	}
	n.stamp, n.size = newStamp(before, s.tenant.store.now()), before.Size()
	content := io.LimitReader(file, n.size+1)
	unchanged := func(size int64) error {
		after, err := file.Stat()
		if err == nil && (size != n.size || after.Size() != n.size || !after.ModTime().Equal(before.ModTime()) ||
			newStamp(after, s.tenant.store.now()).changed != n.stamp.changed) {
			err = errChanged
		}
		return err
	}
	if n.size > packedFile {
		digest, size, err := s.tenant.PutFrom(ctx, content)
		if err != nil {
			return err
		}
		n.digest, err = parseSum(digest)
		return errors.Join(err, unchanged(size))
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(content); err != nil {
		return err
	}
	if err := unchanged(int64(b.Len())); err != nil {
		return err
	}
	n.digest = sha256.Sum256(b.Bytes())
	n.at, err = s.place(ctx, n.digest, b.Bytes())
	return err
}

// place puts a small file into a pack, unless the store has it.
func (s *save) place(ctx context.Context, d sum, content []byte) (place, error) {
	if len(content) == 0 {
		return place{}, nil // nothing to store
	}
	if p, ok := s.known[d]; ok {
		return p, nil
	}
	p, err := s.files.add(ctx, content)
	s.known[d] = p
	return p, err
}

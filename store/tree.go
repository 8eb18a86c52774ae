package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"path"
	"strings"

	"belay/agent"
)

// EntryType is what an entry of a workspace tree is.
type EntryType string

// The types of entries.
const (
	TypeFile    EntryType = "file"
	TypeFolder  EntryType = "folder"
	TypeSymlink EntryType = "symlink"
)

// Entry is one file, folder or link of a workspace tree.
type Entry struct {
	Path   string       `json:"path"` // below the workspace, with "/"; bytes as they are, which need not be UTF-8
	Type   EntryType    `json:"type"`
	Mode   fs.FileMode  `json:"mode,omitempty"`   // permission bits of a file or folder
	Size   int64        `json:"size,omitempty"`   // of a file
	Digest agent.Digest `json:"digest,omitempty"` // of a file's content
	Target string       `json:"target,omitempty"` // of a symlink
}

func (n *node) entry(path string) Entry {
	e := Entry{Path: path, Mode: fs.FileMode(n.perm)}
	switch n.kind {
	case kindFile:
		e.Type, e.Size, e.Digest = TypeFile, n.size, n.digest.digest()
	case kindFolder:
		e.Type = TypeFolder
	case kindLink:
		e.Type, e.Target = TypeSymlink, n.target
	}
	return e
}

// maxPaths is how many bytes of paths a list may hold: a tree of thousands of levels has endless ones.
const maxPaths = 256 << 20

// ListTree gives everything in a tree, folders before what is in them, each folder's entries sorted by their bytes.
func (t *Tenant) ListTree(ctx context.Context, tree agent.Digest) ([]Entry, error) {
	changes, err := t.Changes(ctx, "", tree)
	entries := make([]Entry, 0, len(changes))
	for _, c := range changes {
		entries = append(entries, *c.To)
	}
	return entries, err
}

// ReadTreeFile gives the content of a file of a tree. A path that is not there is InvalidInput and wraps ErrNotFound; one
// that is not a file is InvalidInput.
func (t *Tenant) ReadTreeFile(ctx context.Context, tree agent.Digest, name string) ([]byte, error) {
	if name == "" || path.IsAbs(name) || path.Clean(name) != name || strings.HasPrefix(name, "..") {
		return nil, agent.Errorf(agent.InvalidInput, "path %q: expected a clean path below the workspace", name)
	}
	r := treeReader{tenant: t}
	nodes, err := r.top(ctx, tree)
	if err != nil {
		return nil, err
	}
	folder, rest := nodes, name
	for {
		first, below, more := strings.Cut(rest, "/")
		n := find(folder, first)
		switch {
		case n == nil:
			return nil, agent.Errorf(agent.InvalidInput, "tree %s: file %q: %w", tree, name, ErrNotFound)
		case more && n.kind == kindFolder:
			if folder, err = r.folder(ctx, n); err != nil {
				return nil, err
			}
			rest = below
			continue
		case more || n.kind != kindFile:
			return nil, agent.Errorf(agent.InvalidInput, "tree %s: %q is not a file", tree, name)
		}
		return r.file(ctx, n)
	}
}

// packsHeld is how many bytes of packs a treeReader keeps.
const packsHeld = 64 << 20

// treeReader reads the folders and files of trees. It keeps the packs that it read last.
type treeReader struct {
	tenant *Tenant
	packs  map[sum][]byte
	order  []sum // oldest first
	held   int
}

// top gives the entries of a tree; "" is the empty one.
func (r *treeReader) top(ctx context.Context, tree agent.Digest) ([]*node, error) {
	if tree == "" {
		return nil, nil
	}
	want, err := parseSum(tree)
	if err != nil {
		return nil, err
	}
	stored, err := r.tenant.store.readObject(ctx, r.tenant.key(areaTrees, tree), treeName(tree), MaxContent)
	if err != nil {
		return nil, err
	}
	nodes, err := decodeFolder(stored, want, nil)
	if err != nil {
		return nil, agent.Errorf(agent.StateError, "%s: %w", treeName(tree), err)
	}
	return nodes, nil
}

// folder gives the entries of a folder.
func (r *treeReader) folder(ctx context.Context, n *node) ([]*node, error) {
	if n.at.pack == nil {
		return r.top(ctx, n.digest.digest())
	}
	stored, err := r.slice(ctx, n.at)
	if err == nil {
		var nodes []*node
		if nodes, err = decodeFolder(stored, n.digest, n.at.pack); err == nil {
			return nodes, nil
		}
	}
	return nil, n.broken(err)
}

// file gives the content of a file of at most MaxContent bytes.
func (r *treeReader) file(ctx context.Context, n *node) ([]byte, error) {
	content, err := r.open(ctx, n)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return readLimited(content, contentName(n.digest.digest()), MaxContent)
}

// open gives the content of a file as a stream, verified at its end.
func (r *treeReader) open(ctx context.Context, n *node) (io.ReadCloser, error) {
	if n.size > 0 && n.at.pack == nil {
		return r.tenant.Open(ctx, n.digest.digest())
	}
	var content []byte
	if n.size > 0 {
		var err error
		if content, err = r.slice(ctx, n.at); err != nil {
			return nil, n.broken(err)
		}
	}
	if sha256.Sum256(content) != n.digest {
		return nil, n.broken(errDamaged)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

func (n *node) broken(err error) error {
	what := contentName(n.digest.digest())
	if n.kind == kindFolder {
		what = treeName(n.digest.digest())
	}
	return hostError(agent.StateError, what, err)
}

// slice gives what lies at a place in a pack.
func (r *treeReader) slice(ctx context.Context, at place) ([]byte, error) {
	content, ok := r.packs[at.pack.sum]
	if !ok {
		var err error
		if content, err = r.tenant.Get(ctx, at.pack.sum.digest()); err != nil {
			return nil, err
		}
		r.keep(at.pack.sum, content)
	}
	if at.offset > int64(len(content)) || at.length > int64(len(content))-at.offset {
		return nil, errForm
	}
	return content[at.offset : at.offset+at.length : at.offset+at.length], nil
}

func (r *treeReader) keep(s sum, content []byte) {
	for len(r.order) > 0 && r.held+len(content) > packsHeld {
		r.held -= len(r.packs[r.order[0]])
		delete(r.packs, r.order[0])
		r.order = r.order[1:]
	}
	if r.packs == nil {
		r.packs = map[sum][]byte{}
	}
	r.packs[s], r.order, r.held = content, append(r.order, s), r.held+len(content)
}

package store

import (
	"context"

	"belay/agent"
)

// packer puts many small things into few objects.
type packer struct {
	tenant *Tenant
	open   *pack // the one that is being filled; nil: none
	buf    []byte
}

// add gives the place where content will be once its pack is complete.
func (p *packer) add(ctx context.Context, content []byte) (place, error) {
	if err := p.room(ctx, len(content)); err != nil {
		return place{}, err
	}
	if p.open == nil {
		p.open = &pack{}
	}
	at := place{pack: p.open, offset: int64(len(p.buf)), length: int64(len(content))}
	p.buf = append(p.buf, content...)
	return at, nil
}

// room completes the open pack if n bytes more would make it too large.
func (p *packer) room(ctx context.Context, n int) error {
	if len(p.buf) > 0 && len(p.buf)+n > packSize {
		return p.complete(ctx)
	}
	return nil
}

// complete stores the open pack, if there is one.
func (p *packer) complete(ctx context.Context) error {
	if p.open == nil {
		return nil
	}
	digest, err := p.tenant.Put(ctx, p.buf)
	if err != nil {
		return err
	}
	p.open.sum, err = parseSum(digest)
	p.open, p.buf = nil, p.buf[:0]
	return err
}

// store writes what is new of a workspace: files first, then the folders from the bottom up, the top one last.
func (s *save) store(ctx context.Context, top []*node) (sum, error) {
	if err := s.files.complete(ctx); err != nil {
		return sum{}, err
	}
	folders := packer{tenant: s.tenant}
	if err := s.storeFolders(ctx, &folders, top); err != nil {
		return sum{}, err
	}
	entries := entriesOf(top)
	tree := treeSum(entries)
	if s.last.top != nil && tree == s.last.tree {
		return tree, nil
	}
	if err := folders.complete(ctx); err != nil {
		return sum{}, err
	}
	d := tree.digest()
	key := s.tenant.key(areaTrees, d)
	there, err := s.tenant.store.exists(ctx, key, treeName(d))
	if err != nil || there {
		return tree, err
	}
	return tree, s.tenant.store.writeObject(ctx, key, treeName(d), encodeFolder(entries, top, nil))
}

func (s *save) storeFolders(ctx context.Context, folders *packer, nodes []*node) error {
	for _, n := range nodes {
		if n.kind != kindFolder {
			continue
		}
		if err := s.storeFolders(ctx, folders, n.children); err != nil {
			return err
		}
		entries := entriesOf(n.children)
		n.digest = treeSum(entries)
		at, ok := s.known[n.digest]
		if !ok {
			// Whether an entry lies in the same pack must be known before the folder is written. With the places of
			// its entries, a folder is less than three times as long as without.
			if err := folders.room(ctx, 3*len(entries)+16); err != nil {
				return err
			}
			var err error
			if at, err = folders.add(ctx, encodeFolder(entries, n.children, folders.open)); err != nil {
				return err
			}
			s.known[n.digest] = at
		}
		n.at = at
	}
	return nil
}

func treeName(d agent.Digest) string { return "tree " + string(d) }

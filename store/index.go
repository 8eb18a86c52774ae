package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// treeIndex is what the last save of a workspace saw: its folders, with where everything lies in the store.
type treeIndex struct {
	tree sum
	top  []*node
}

const (
	indexForm = "belay index 1\n"
	maxIndex  = 1 << 30
)

// readIndex gives the index in a file; nil when it is absent or not whole: then everything is read anew.
func readIndex(path string) (*treeIndex, []byte, error) {
	if path == "" {
		return nil, nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxIndex))
	if err != nil {
		return nil, nil, err
	}
	x, err := decodeIndex(raw)
	if err != nil {
		return nil, raw, nil //nolint:nilerr // an index is only a memory of what was read: without it, all is read
	}
	return x, raw, nil
}

// writeIndex replaces the index in a file, unless it holds old, which is what it should.
func writeIndex(path string, x *treeIndex, old []byte) error {
	if path == "" {
		return nil
	}
	raw := encodeIndex(x)
	if bytes.Equal(raw, old) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func encodeIndex(x *treeIndex) []byte {
	e := indexEncoder{b: append([]byte(indexForm), x.tree[:]...), packs: map[sum]int{}}
	e.folder(x.top)
	check := sha256.Sum256(e.b)
	return append(e.b, check[:]...)
}

type indexEncoder struct {
	b     []byte
	packs map[sum]int // number of each pack, in the order in which they come up
}

func (e *indexEncoder) uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

func (e *indexEncoder) folder(nodes []*node) {
	e.uint(uint64(len(nodes)))
	for _, n := range nodes {
		e.b = append(e.b, byte(n.kind))
		e.uint(uint64(n.perm))
		e.b = appendText(e.b, n.name)
		switch n.kind {
		case kindFile:
			e.uint(uint64(n.size))
			e.stamp(n.stamp)
			e.place(n)
		case kindFolder:
			e.place(n)
			e.folder(n.children)
		case kindLink:
			e.b = appendText(e.b, n.target)
		}
	}
}

func (e *indexEncoder) stamp(s stamp) {
	rest := byte(0)
	if s.atRest {
		rest = 1
	}
	e.b = append(e.b, rest)
	for _, v := range []uint64{s.device, s.inode, uint64(s.modified), uint64(s.changed)} {
		e.b = binary.BigEndian.AppendUint64(e.b, v)
	}
}

func (e *indexEncoder) place(n *node) {
	e.b = append(e.b, n.digest[:]...)
	if n.at.pack == nil {
		e.uint(placeAlone)
		return
	}
	i, ok := e.packs[n.at.pack.sum]
	if !ok {
		i = len(e.packs)
		e.packs[n.at.pack.sum] = i
	}
	e.uint(uint64(placeListed + i))
	if !ok {
		e.b = append(e.b, n.at.pack.sum[:]...)
	}
	e.uint(uint64(n.at.offset))
	e.uint(uint64(n.at.length))
}

func decodeIndex(raw []byte) (*treeIndex, error) {
	body, ok := bytes.CutPrefix(raw, []byte(indexForm))
	if !ok || len(body) < 2*sha256.Size {
		return nil, errForm
	}
	end := len(raw) - sha256.Size
	if sum(raw[end:]) != sha256.Sum256(raw[:end]) {
		return nil, errDamaged
	}
	d := indexDecoder{w: wire{rest: body[:len(body)-sha256.Size]}}
	x := &treeIndex{tree: d.w.sum()}
	x.top = d.folder(0)
	return x, d.w.end()
}

type indexDecoder struct {
	w     wire
	packs []*pack
}

func (d *indexDecoder) folder(depth int) []*node {
	count := d.w.uint(uint64(len(d.w.rest)))
	if depth > maxDepth {
		d.w.fail()
	}
	nodes := make([]*node, 0, min(count, 1<<10))
	for range count {
		n := &node{kind: kind(d.w.byte()), perm: uint16(d.w.uint(0o777)), name: string(d.w.text())}
		switch n.kind {
		case kindFile:
			n.size = d.w.int64()
			n.stamp = d.stamp()
			d.place(n)
		case kindFolder:
			d.place(n)
			n.children = d.folder(depth + 1)
		case kindLink:
			n.target = string(d.w.text())
		default:
			d.w.fail()
		}
		if d.w.failed {
			return nil
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func (d *indexDecoder) stamp() (s stamp) {
	s.atRest = d.w.byte() == 1
	b := d.w.bytes(4 * 8)
	if d.w.failed {
		return stamp{}
	}
	s.device, s.inode = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	s.modified, s.changed = int64(binary.BigEndian.Uint64(b[16:])), int64(binary.BigEndian.Uint64(b[24:]))
	return s
}

func (d *indexDecoder) place(n *node) {
	n.digest = d.w.sum()
	p := d.w.uint(uint64(placeListed + len(d.packs)))
	if p < placeListed {
		return
	}
	if p -= placeListed; p == uint64(len(d.packs)) {
		d.packs = append(d.packs, &pack{sum: d.w.sum()})
	}
	n.at = place{pack: d.packs[p], offset: d.w.int64(), length: d.w.int64()}
}

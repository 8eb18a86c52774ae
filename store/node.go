package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"time"
)

// kind is what an entry of a folder is.
type kind byte

const (
	kindFile   kind = 'f'
	kindFolder kind = 'd'
	kindLink   kind = 'l'
)

// node is one entry of a workspace tree.
type node struct {
	name   string
	kind   kind
	perm   uint16
	size   int64  // of a file
	digest sum    // of a file's content, or of a folder's tree
	target string // of a link
	at     place

	stamp    stamp   // of a file, when it was read from a disk
	children []*node // of a folder, when it was read from a disk or an index; sorted by name
}

// place says where the bytes of a file or folder lie: in a pack, or (the zero value) as content of their own.
type place struct {
	pack   *pack
	offset int64
	length int64
}

// pack is content made of several files or folders, one after the other. Its digest is known when it is complete.
type pack struct {
	sum sum
}

// stamp is what tells whether a file is the one that was read before. Two stamps are equal only if it is, provided that the
// file was at rest when it was read.
type stamp struct {
	device, inode     uint64
	modified, changed int64 // Unix ns
	atRest            bool
}

// newStamp describes a file that is read from now on. A write within the same tick of the file system's clock as the last
// one leaves no trace, so a file that was changed a tick ago or less is read again next time.
func newStamp(info fs.FileInfo, now time.Time) stamp {
	s := stamp{modified: info.ModTime().UnixNano()}
	if !identify(&s, info) {
		return s
	}
	tick := 20 * time.Millisecond
	if s.changed%int64(time.Second) == 0 { // most likely a clock of seconds
		tick = 2 * time.Second
	}
	s.atRest = s.changed < now.Add(-tick).UnixNano()
	return s
}

// same says whether a file with stamp t is still the one that s was taken of.
func (s stamp) same(t stamp) bool {
	return s.atRest && s.device == t.device && s.inode == t.inode && s.modified == t.modified && s.changed == t.changed
}

// A folder's digest covers its entries and nothing else.
const treeDomain = "belay tree 1\n"

func entriesOf(nodes []*node) []byte {
	var b []byte
	for _, n := range nodes {
		b = append(b, byte(n.kind))
		b = binary.AppendUvarint(b, uint64(n.perm))
		b = appendText(b, n.name)
		switch n.kind {
		case kindFile:
			b = binary.AppendUvarint(b, uint64(n.size))
			b = append(b, n.digest[:]...)
		case kindFolder:
			b = append(b, n.digest[:]...)
		case kindLink:
			b = appendText(b, n.target)
		}
	}
	return b
}

func treeSum(entries []byte) sum {
	h := sha256.New()
	h.Write([]byte(treeDomain))
	h.Write(entries)
	return sum(h.Sum(nil))
}

// Where an entry lies, in encoded folders: by itself, in the pack that holds the folder, or in a listed pack.
const (
	placeAlone = iota
	placeHere
	placeListed
)

// encodeFolder gives a folder as it is stored in the pack here (nil: by itself): its entries, and where their bytes lie.
func encodeFolder(entries []byte, nodes []*node, here *pack) []byte {
	listed := map[sum]int{}
	var packs, places []byte
	for _, n := range nodes {
		if n.kind == kindLink {
			continue
		}
		switch p := n.at.pack; {
		case p == nil:
			places = append(places, placeAlone)
		case p == here:
			places = append(places, placeHere)
		default:
			i, ok := listed[p.sum]
			if !ok {
				i = len(listed)
				listed[p.sum] = i
				packs = append(packs, p.sum[:]...)
			}
			places = binary.AppendUvarint(places, uint64(placeListed+i))
		}
		if n.at.pack != nil {
			places = binary.AppendUvarint(places, uint64(n.at.offset))
			places = binary.AppendUvarint(places, uint64(n.at.length))
		}
	}
	b := appendText(nil, entries)
	b = binary.AppendUvarint(b, uint64(len(listed)))
	return append(append(b, packs...), places...)
}

// decodeFolder reads a folder that must have the given digest and was stored in the pack here.
func decodeFolder(stored []byte, want sum, here *pack) ([]*node, error) {
	w := wire{rest: stored}
	entries := w.text()
	if w.failed {
		return nil, errForm
	}
	if treeSum(entries) != want {
		return nil, errDamaged
	}
	nodes, err := decodeEntries(entries)
	if err != nil {
		return nil, err
	}
	packs := make([]*pack, w.uint(uint64(len(w.rest)/sha256.Size)))
	for i := range packs {
		packs[i] = &pack{sum: w.sum()}
	}
	for _, n := range nodes {
		if n.kind == kindLink {
			continue
		}
		switch p := w.uint(uint64(placeListed + len(packs))); {
		case p == placeAlone:
			continue
		case p == placeHere && here != nil:
			n.at.pack = here
		case p >= placeListed && p-placeListed < uint64(len(packs)):
			n.at.pack = packs[p-placeListed]
		default:
			return nil, errForm
		}
		n.at.offset, n.at.length = w.int64(), w.int64()
	}
	return nodes, w.end()
}

func decodeEntries(entries []byte) ([]*node, error) {
	var nodes []*node
	w := wire{rest: entries}
	last := ""
	for len(w.rest) > 0 {
		n := &node{kind: kind(w.byte()), perm: uint16(w.uint(0o777)), name: string(w.text())}
		switch n.kind {
		case kindFile:
			n.size, n.digest = w.int64(), w.sum()
		case kindFolder:
			n.digest = w.sum()
		case kindLink:
			n.target = string(w.text())
		default:
			return nil, errForm
		}
		if w.failed || !validName(n.name) || n.name <= last {
			return nil, errForm
		}
		last = n.name
		nodes = append(nodes, n)
	}
	return nodes, w.end()
}

// validName says whether name is one that a folder can hold, and that stays in it.
func validName(name string) bool {
	return name != "" && name != "." && name != ".." && !bytes.ContainsAny([]byte(name), "/\x00")
}

package store

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
)

// binary writes both contents whole, so that the patch can be taken back.
func (p *patch) binary(before, after side) {
	p.out.WriteString("GIT binary patch\n")
	p.literal(after.content)
	p.literal(before.content)
}

// lineBytes is how many bytes a line of a binary patch holds.
const lineBytes = 52

func (p *patch) literal(content []byte) {
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	z.Write(content) // to memory: can't fail
	z.Close()
	fmt.Fprintf(&p.out, "literal %d\n", len(content))
	for deflated.Len() > 0 {
		p.line(deflated.Next(lineBytes))
	}
	p.out.WriteByte('\n')
}

// base85 is git's alphabet, which is not that of encoding/ascii85.
const base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// line writes a letter for how many bytes there are, and five digits for every four of them.
func (p *patch) line(b []byte) {
	if n := len(b); n <= 26 {
		p.out.WriteByte(byte('A' + n - 1))
	} else {
		p.out.WriteByte(byte('a' + n - 27))
	}
	for len(b) > 0 {
		var four [4]byte
		b = b[copy(four[:], b):]
		var digits [5]byte
		for v, i := binary.BigEndian.Uint32(four[:]), 4; i >= 0; i-- {
			digits[i] = base85[v%85]
			v /= 85
		}
		p.out.Write(digits[:])
	}
	p.out.WriteByte('\n')
}

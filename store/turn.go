package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"belay/agent"
)

// A turn is stored as content: a line that says which turn it is and which one was before it, and its JSON.
const turnLine = "belay turn %d %s\n"

// noTurn stands for the turn before the first.
const noTurn = "-"

// turnHead gives the digest of turn n, and so of the conversation that ends with it.
func turnHead(n int, prev agent.Digest, body []byte) agent.Digest {
	return sum(sha256.Sum256(encodeTurn(n, prev, body))).digest()
}

func encodeTurn(n int, prev agent.Digest, body []byte) []byte {
	if prev == "" {
		prev = noTurn
	}
	return append(fmt.Appendf(make([]byte, 0, len(body)+96), turnLine, n, prev), body...)
}

// decodeTurn takes apart what encodeTurn made.
func decodeTurn(content []byte) (n int, prev agent.Digest, body []byte, err error) {
	line, body, _ := bytes.Cut(content, []byte("\n"))
	f := bytes.Split(line, []byte(" "))
	if len(f) != 4 {
		return 0, "", nil, errForm
	}
	n, err = strconv.Atoi(string(f[2]))
	prev = agent.Digest(f[3])
	switch {
	case err != nil || n < 1 || (n == 1) != (prev == noTurn) || (n > 1 && !prev.Valid()):
		return 0, "", nil, errForm
	case n == 1:
		prev = ""
	}
	if !bytes.Equal(encodeTurn(n, prev, body), content) {
		return 0, "", nil, errForm
	}
	return n, prev, body, nil
}

// marshalTurn gives the JSON of a turn; the same for the same turn.
func marshalTurn(turn agent.Turn) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // shorter, and readable when it is looked at
	if err := e.Encode(turn); err != nil {
		return nil, fmt.Errorf("turn: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func unmarshalTurn(body []byte) (turn agent.Turn, err error) {
	err = json.Unmarshal(body, &turn)
	return turn, err
}

// turnPack is a run of turns of one conversation. What it holds is proven by the digest that it is filed under: that of
// the last turn, which follows from the turn before the first one and the bodies.
type turnPack struct {
	first  int          // number of the first turn in it
	prev   agent.Digest // the turn before that
	bodies [][]byte
}

func (p turnPack) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(p.first))
	b = appendText(b, p.prev)
	for _, body := range p.bodies {
		b = appendText(b, body)
	}
	return b
}

// decodeTurnPack reads a pack and checks that it ends with head. It also gives the head after each of its turns.
func decodeTurnPack(content []byte, head agent.Digest) (p turnPack, heads []agent.Digest, err error) {
	w := wire{rest: content}
	p.first = int(w.uint(math.MaxInt32))
	p.prev = agent.Digest(w.text())
	if w.failed || p.first < 1 || (p.prev == "") != (p.first == 1) || (p.prev != "" && !p.prev.Valid()) {
		return turnPack{}, nil, errForm
	}
	for at := p.prev; len(w.rest) > 0; {
		body := w.text()
		at = turnHead(p.first+len(p.bodies), at, body)
		p.bodies, heads = append(p.bodies, body), append(heads, at)
	}
	if err := w.end(); err != nil {
		return turnPack{}, nil, err
	}
	if len(heads) == 0 || heads[len(heads)-1] != head {
		return turnPack{}, nil, errDamaged
	}
	return p, heads, nil
}

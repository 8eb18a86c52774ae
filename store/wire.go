package store

import (
	"encoding/binary"
	"errors"
	"math"
)

var errForm = errors.New("not of the form that the store writes")

// appendText appends a string with its length before it.
func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// wire reads what append… wrote. After the first value that is not there everything is zero and failed is set.
type wire struct {
	rest   []byte
	failed bool
}

func (w *wire) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(w.rest)
	if n <= 0 || v > limit {
		w.fail()
		return 0
	}
	w.rest = w.rest[n:]
	return v
}

func (w *wire) int64() int64 { return int64(w.uint(math.MaxInt64)) }

func (w *wire) bytes(n uint64) []byte {
	if n > uint64(len(w.rest)) {
		w.fail()
		return nil
	}
	b := w.rest[:n:n]
	w.rest = w.rest[n:]
	return b
}

func (w *wire) text() []byte { return w.bytes(w.uint(math.MaxUint64)) }

func (w *wire) byte() byte {
	if b := w.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (w *wire) sum() (s sum) {
	copy(s[:], w.bytes(uint64(len(s))))
	return s
}

func (w *wire) fail() { w.rest, w.failed = nil, true }

// end is nil when everything was read and nothing was missing.
func (w *wire) end() error {
	if w.failed || len(w.rest) > 0 {
		return errForm
	}
	return nil
}

package store

import (
	"io"
	"testing"
)

func BenchmarkPutFrom(b *testing.B) {
	s, err := Open(b.Context(), "mem://")
	if err != nil {
		b.Fatal(err)
	}
	t := s.Tenant("a")
	b.SetBytes(64 << 20)
	for b.Loop() {
		if _, _, err := t.PutFrom(b.Context(), io.LimitReader(zeros{}, 64<<20)); err != nil {
			b.Fatal(err)
		}
	}
}

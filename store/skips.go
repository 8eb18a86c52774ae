package store

import (
	"fmt"
	"io/fs"
)

// maxListed is how many skipped entries are named.
const maxListed = 100

// skips lists what a workspace tree can't hold: the first ones by name, the others by their number.
type skips struct {
	named []string
	more  int
}

func (s *skips) add(path *trail, mode fs.FileMode) {
	what := "device"
	switch {
	case mode&fs.ModeNamedPipe != 0:
		what = "FIFO"
	case mode&fs.ModeSocket != 0:
		what = "socket"
	}
	if len(s.named) < maxListed {
		s.named = append(s.named, fmt.Sprintf("%s (%s)", path, what))
		return
	}
	s.more++
}

func (s *skips) list() []string {
	if s.more > 0 {
		return append(s.named, fmt.Sprintf("and %d more", s.more))
	}
	return s.named
}

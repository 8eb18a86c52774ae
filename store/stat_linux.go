package store

import (
	"io/fs"
	"syscall"
)

// identify adds to a stamp what tells a file from another one in its place, and a change of it from none.
func identify(s *stamp, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok {
		s.device, s.inode, s.changed = uint64(st.Dev), st.Ino, st.Ctim.Nano()
	}
	return ok
}

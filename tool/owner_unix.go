//go:build unix

package tool

import (
	"io/fs"
	"os"
	"syscall"
)

// linksAndOwner says how many names a file has and which user it belongs to.
func linksAndOwner(info fs.FileInfo) (links uint64, owner uint32) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1, 0
	}
	return uint64(st.Nlink), st.Uid
}

// giveTo makes a file belong to whom another one belongs to: the worker may be another user than the sandbox's commands,
// which must be able to change what the tools wrote.
func giveTo(f *os.File, like fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	have, ok := info.Sys().(*syscall.Stat_t)
	want, okToo := like.Sys().(*syscall.Stat_t)
	if !ok || !okToo || have.Uid == want.Uid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}

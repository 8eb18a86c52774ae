//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// adopt gives every file below a folder to a user. Where the worker is root, what it writes into the workspace is root's,
// and the sandbox's user could not change it. Names are taken relative to open folders and links are never followed, so
// commands that run meanwhile can at most get files of their own workspace.
func adopt(dir string, uid int) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("adopt %s: %w", dir, err)
	}
	if err := unix.Fchown(fd, uid, uid); err != nil {
		unix.Close(fd)
		return fmt.Errorf("adopt %s: %w", dir, err)
	}
	if err := adoptBelow(os.NewFile(uintptr(fd), dir), uid); err != nil {
		return fmt.Errorf("adopt %s: %w", dir, err)
	}
	return nil
}

func adoptBelow(dir *os.File, uid int) error {
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := adoptOne(int(dir.Fd()), name, uid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%.80q: %w", name, err)
		}
	}
	return nil
}

func adoptOne(parent int, name string, uid int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if int(st.Uid) != uid {
		if err := unix.Fchownat(parent, name, uid, uid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ENOTDIR || err == unix.ELOOP { // a command has just replaced it
		return nil
	}
	if err != nil {
		return err
	}
	return adoptBelow(os.NewFile(uintptr(fd), name), uid)
}

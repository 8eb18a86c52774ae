package tool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"belay/agent"
	"belay/sandbox"
)

// maxFile is the largest file, in bytes, that the file tools read or leave behind. The Markdown files say so.
const maxFile = 10 << 20

// refusal is why a file was not touched, in words that a model can act on.
type refusal struct {
	status agent.CallStatus
	text   string
}

func (r refusal) Error() string { return r.text }

func refuse(format string, args ...any) error {
	return refusal{agent.CallFailed, fmt.Sprintf(format, args...)}
}

// content is a regular file as it was read, once.
type content struct {
	path   string // with every link followed
	bytes  []byte
	digest agent.Digest // empty: there is no such file
	info   fs.FileInfo
}

// binary says whether a file is something else than text, as git does: by a NUL among its first bytes.
func (c content) binary() bool { return isBinary(c.bytes) }

func isBinary(b []byte) bool {
	return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0
}

// load reads the regular file at an absolute path, whole. A path without a file is a content without a digest.
func load(root *os.Root, abs string) (content, error) {
	real, err := follow(root, abs)
	if err != nil {
		return content{}, err
	}
	c := content{path: real}
	f, info, err := openRegular(root, real)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	c.info = info
	if c.bytes, err = io.ReadAll(io.LimitReader(f, maxFile+1)); err != nil {
		return content{}, err
	}
	if len(c.bytes) > maxFile {
		return content{}, tooLarge(real, info.Size())
	}
	c.digest = contentDigest(c.bytes)
	return c, nil
}

func tooLarge(abs string, size int64) error {
	return refuse("%s has %d bytes; the file tools handle at most %d: use shell (head, tail, sed -n)", visibleName(abs), size, maxFile)
}

// openRegular opens a file for reading if it is a regular one of bounded size. What a command in the sandbox may have put
// in its place neither hangs the worker (a FIFO: it is opened without waiting) nor is opened at all (a device).
func openRegular(root *os.Root, abs string) (*os.File, fs.FileInfo, error) {
	info, err := root.Lstat(inRoot(abs))
	if err == nil {
		err = regular(root, abs, info)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := root.OpenFile(inRoot(abs), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil { // again: it may be another file by now
		err = regular(root, abs, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// regular refuses everything but a regular file of bounded size that is the workspace's own. A file with several names
// that belongs to another user than the workspace was linked in from outside of it.
func regular(root *os.Root, abs string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return refuse("%s is a folder; list_files shows what is in it", visibleName(abs))
	case !info.Mode().IsRegular():
		return refuse("%s is not a regular file (%s)", visibleName(abs), kindOf(info.Mode()))
	case info.Size() > maxFile:
		return tooLarge(abs, info.Size())
	}
	if links, owner := linksAndOwner(info); links > 1 {
		top, err := root.Lstat(".")
		if err != nil {
			return err
		}
		if _, own := linksAndOwner(top); own != owner {
			return refuse("%s has another name outside the workspace (a hard link of another user)", visibleName(abs))
		}
	}
	return nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "link"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// replace puts a whole file in the place of abs, in one step: whoever looks sees the old one or the new one. The file
// keeps the permissions of old; its folders are made. temp is a name in the same folder that is this call's own, so a
// repeated call removes what a crashed one left there.
func replace(root *os.Root, abs, temp string, data []byte, old fs.FileInfo) (err error) {
	if err := makeFolders(root, path.Dir(abs)); err != nil {
		return err
	}
	tempName := inRoot(path.Join(path.Dir(abs), temp))
	if err := root.Remove(tempName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(tempName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(f.Close()), root.Remove(tempName))
		}
	}()
	mode, owner := fs.FileMode(0o644), old
	if old != nil {
		mode = old.Mode().Perm()
	} else if owner, err = root.Lstat(inRoot(path.Dir(abs))); err != nil {
		return err
	}
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = giveTo(f, owner); err != nil {
		return err
	}
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return root.Rename(tempName, inRoot(abs))
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// makeFolders makes what is missing of a folder, each for the owner of the one above it.
func makeFolders(root *os.Root, abs string) error {
	at := sandbox.Workspace
	for _, step := range split(inRoot(abs)) {
		parent, err := root.Lstat(inRoot(at))
		if err != nil {
			return err
		}
		at = path.Join(at, step)
		if err := root.Mkdir(inRoot(at), 0o755); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		f, err := root.OpenFile(inRoot(at), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		err = errors.Join(giveTo(f, parent), f.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

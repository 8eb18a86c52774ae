package store

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"belay/agent"
)

// maxArchivePath is how long a path in an archive may be, in bytes.
const maxArchivePath = 4096

// ImportTar unpacks a tar, compressed with gzip or not, into to, which is empty. The archive may be hostile: a path or link
// that leads out, an entry below one that is not a folder, the same file twice, a device or FIFO, or more than a workspace
// may hold is InvalidInput that names the entry. Permission bits are kept, owners may always read and write; owners and
// times in the archive are ignored.
func ImportTar(ctx context.Context, r io.Reader, to *os.Root) error {
	return importTar(ctx, r, to, defaultBounds())
}

func importTar(ctx context.Context, r io.Reader, to *os.Root, bounds sourceBounds) error {
	in := bufio.NewReader(ctxReader{ctx, r})
	var plain io.Reader = in
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return agent.Errorf(agent.InvalidInput, "archive: %w", err)
		}
		plain = z
	}
	u := unpacking{to: topFolder(to), left: bounds, bounds: bounds, made: map[string]byte{}, folders: map[string]fs.FileMode{}}
	u.in = tar.NewReader(plain)
	for {
		h, err := u.in.Next()
		if errors.Is(err, io.EOF) {
			return u.finish()
		}
		if err == nil {
			err = u.entry(h)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case h == nil:
			return agent.Errorf(agent.InvalidInput, "archive: %w", err)
		default:
			return hostError(agent.InvalidInput, fmt.Sprintf("archive entry %q", shorten(h.Name)), err)
		}
	}
}

func shorten(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

// unpacking is one run of ImportTar.
type unpacking struct {
	in      *tar.Reader
	to      folder
	left    sourceBounds
	bounds  sourceBounds
	made    map[string]byte        // what stands at each path, as a type of tar entry
	folders map[string]fs.FileMode // given at the end: a folder may forbid what is still to be done in it
}

func (u *unpacking) entry(h *tar.Header) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := archivePath(h.Name)
	if err != nil {
		return err
	}
	if u.left.entries--; u.left.entries < 0 {
		return fmt.Errorf("expected at most %d entries", u.bounds.entries)
	}
	if u.left.bytes -= h.Size; h.Size < 0 || u.left.bytes < 0 {
		return fmt.Errorf("expected at most %d bytes in all files together", u.bounds.bytes)
	}
	if name == "." {
		return onlyFolder(h)
	}
	if err := u.parents(name); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		u.folders[name] = fs.FileMode(h.Mode).Perm() | 0o700
		return u.folder(name)
	}
	if _, ok := u.made[name]; ok {
		return errors.New("the same path twice")
	}
	u.made[name] = h.Typeflag
	return u.leaf(h, name)
}

func onlyFolder(h *tar.Header) error {
	if h.Typeflag != tar.TypeDir {
		return errors.New("expected a folder")
	}
	return nil
}

func (u *unpacking) leaf(h *tar.Header, name string) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		u.made[name] = tar.TypeReg
		return u.to.writeFile(name, fs.FileMode(h.Mode).Perm()|0o600, u.in)
	case tar.TypeSymlink:
		if path.IsAbs(h.Linkname) || !local(path.Join(path.Dir(name), h.Linkname)) {
			return fmt.Errorf("a link to %q, outside of the workspace", shorten(h.Linkname))
		}
		return u.to.root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		target, err := archivePath(h.Linkname)
		if err != nil || u.made[target] != tar.TypeReg {
			return fmt.Errorf("a hard link to %q, which is no file before it in the archive", shorten(h.Linkname))
		}
		u.made[name] = tar.TypeReg
		return u.to.root.Link(target, name)
	}
	return fmt.Errorf("type %q; expected files, folders and links only", h.Typeflag)
}

// archivePath gives the clean path of an entry below the workspace.
func archivePath(name string) (string, error) {
	switch {
	case name == "" || len(name) > maxArchivePath || strings.Contains(name, "\x00"):
		return "", fmt.Errorf("%d bytes; expected a path of 1 to %d bytes without NUL", len(name), maxArchivePath)
	case path.IsAbs(name):
		return "", errors.New("an absolute path; expected one below the workspace")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", errors.New(`a path with ".."; expected one below the workspace`)
	}
	return path.Clean(name), nil
}

func local(p string) bool { return p != ".." && !strings.HasPrefix(p, "../") }

// parents makes the folders above name that the archive has not named yet.
func (u *unpacking) parents(name string) error {
	for i := range len(name) {
		if name[i] == '/' {
			if err := u.folder(name[:i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *unpacking) folder(name string) error {
	switch kind, ok := u.made[name]; {
	case !ok:
		u.made[name] = tar.TypeDir
		return u.to.root.Mkdir(name, 0o755)
	case kind != tar.TypeDir:
		return fmt.Errorf("%q is not a folder", shorten(name))
	}
	return nil
}

// finish gives the folders their permission bits, the deepest first.
func (u *unpacking) finish() error {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(u.folders))) {
		if err := u.to.root.Chmod(name, u.folders[name]); err != nil {
			return agent.Errorf(agent.InvalidInput, "archive entry %q: %w", shorten(name), err)
		}
	}
	return nil
}

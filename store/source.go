package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"belay/agent"
)

// sourceBounds limit what a workspace may be made from, whoever packed it.
type sourceBounds struct {
	bytes   int64
	entries int
}

func defaultBounds() sourceBounds { return sourceBounds{bytes: 16 << 30, entries: maxEntries} }

// Import fills the empty workspace to from source: a folder, .tar, .tar.gz or .tgz below from, named relative to it. Links
// on the way are followed inside of from and refused where they lead out. What can't be imported is InvalidInput, and to is
// then left half filled. It gives what of a folder was skipped, as SaveTree does.
func Import(ctx context.Context, from *os.Root, source string, to *os.Root) (skipped []string, err error) {
	if !filepath.IsLocal(source) {
		return nil, agent.Errorf(agent.InvalidInput, "workspace source %q: expected a path below a workspace root, relative to it", source)
	}
	info, err := from.Stat(source)
	if err != nil {
		return nil, agent.Errorf(agent.InvalidInput, "workspace source %q: %w", source, err)
	}
	switch name := strings.ToLower(source); {
	case info.IsDir():
		root, err := from.OpenRoot(source)
		if err != nil {
			return nil, agent.Errorf(agent.InvalidInput, "workspace source %q: %w", source, err)
		}
		defer root.Close()
		skipped, err = ImportDir(ctx, root, to)
		return skipped, sourceError(source, err)
	case strings.HasSuffix(name, ".tar"), strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		file, err := topFolder(from).open(source, info)
		if err != nil {
			return nil, agent.Errorf(agent.InvalidInput, "workspace source %q: %w", source, err)
		}
		defer file.Close()
		return nil, sourceError(source, ImportTar(ctx, file, to))
	}
	return nil, agent.Errorf(agent.InvalidInput, "workspace source %q: expected a folder, .tar, .tar.gz or .tgz", source)
}

func sourceError(source string, err error) error {
	if err != nil {
		return hostError(agent.InvalidInput, fmt.Sprintf("workspace source %q", source), err)
	}
	return nil
}

// ImportDir copies everything under from into to, which is empty: files with their permission bits, folders, and links as
// they are, without following any. Owners may always read and write the copies. Sockets, devices and FIFOs are skipped and
// listed. Nothing should write under from meanwhile.
func ImportDir(ctx context.Context, from, to *os.Root) (skipped []string, err error) {
	c := dirCopy{ctx: ctx, bounds: defaultBounds()}
	err = c.folder(topFolder(from), topFolder(to))
	return c.skips.list(), err
}

// dirCopy is one run of ImportDir.
type dirCopy struct {
	ctx    context.Context
	bounds sourceBounds // what is left of them
	skips  skips
}

func (c *dirCopy) folder(from, to folder) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	names, err := from.names()
	if err != nil {
		return fmt.Errorf("%s: %w", from.path, err)
	}
	if c.bounds.entries -= len(names); c.bounds.entries < 0 {
		return agent.Errorf(agent.InvalidInput, "%s: expected at most %d files and folders", from.path, maxEntries)
	}
	for _, name := range names {
		if err := c.entry(from, to, name); err != nil {
			if agent.TypeOf(err) != "" {
				return err
			}
			return hostError(agent.InvalidInput, (&trail{up: from.path, name: name}).String(), err)
		}
	}
	return nil
}

func (c *dirCopy) entry(from, to folder, name string) error {
	seen, err := from.lstat(name)
	if err != nil {
		return err
	}
	switch seen.Mode().Type() {
	case 0:
		if c.bounds.bytes -= seen.Size(); c.bounds.bytes < 0 {
			return errors.New("the folder is too large for a workspace")
		}
		file, err := from.open(name, seen)
		if err != nil {
			return err
		}
		defer file.Close()
		return to.writeFile(name, seen.Mode().Perm()|0o600, ctxReader{c.ctx, io.LimitReader(file, seen.Size())})
	case fs.ModeSymlink:
		target, err := from.root.Readlink(from.at(name))
		if err != nil {
			return err
		}
		return to.root.Symlink(target, to.at(name))
	case fs.ModeDir:
		return c.subfolder(from, to, name, seen)
	}
	c.skips.add(&trail{up: from.path, name: name}, seen.Mode())
	return nil
}

func (c *dirCopy) subfolder(from, to folder, name string, seen fs.FileInfo) error {
	source, err := from.enter(name, seen)
	if err != nil {
		return err
	}
	defer source.close()
	if err := to.root.Mkdir(to.at(name), 0o700); err != nil {
		return err
	}
	made, err := to.lstat(name)
	if err != nil {
		return err
	}
	copied, err := to.enter(name, made)
	if err != nil {
		return err
	}
	defer copied.close()
	if err := c.folder(source, copied); err != nil {
		return err
	}
	return copied.chmod(seen.Mode().Perm() | 0o700)
}

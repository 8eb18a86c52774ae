package tool

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maxEntries is how many entries of one folder are read: a command may have made millions.
const maxEntries = 10_000

// readFolder gives the entries of a folder, sorted by name, the first maxEntries of them as the disk has them. It follows
// no link and waits for nothing.
func readFolder(root *os.Root, abs string) (entries []fs.DirEntry, more bool, err error) {
	f, err := root.OpenFile(inRoot(abs), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	entries, err = f.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if more = len(entries) > maxEntries; more {
		entries = entries[:maxEntries]
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, more, nil
}

// Time limits of what walks folders. The walk ends itself before the runtime ends the call, and so keeps what it found.
const (
	walkTimeout = 30 * time.Second
	walkMargin  = 10 * time.Second
)

// errSlow is the cause of a walk's end at its own time limit.
var errSlow = errors.New("took too long")

// withinLimit bounds a walk, below what the call has.
func withinLimit(ctx context.Context, env Env) (context.Context, context.CancelFunc) {
	limit := walkTimeout
	if env.Timeout > 0 {
		limit = min(limit, env.Timeout-env.Timeout/10)
	}
	return context.WithTimeoutCause(ctx, limit, errSlow)
}

// found is one entry of a folder that is being walked.
type found struct {
	path  string // absolute
	depth int    // 1 for what is in the folder itself
	entry fs.DirEntry
}

// walk calls visit for everything below a folder, the nearer first and by name, until visit says stop. It goes into
// the folders for which visit says enter. What can't be read is left out; partial says that something was, or that a
// folder has more than maxEntries.
func walk(ctx context.Context, root *os.Root, abs string, visit func(found) (enter, stop bool)) (partial bool, err error) {
	todo := []found{{path: abs}}
	for len(todo) > 0 {
		if err := context.Cause(ctx); err != nil {
			return partial, err
		}
		at := todo[0]
		todo = todo[1:]
		entries, more, err := readFolder(root, at.path)
		partial = partial || more
		if err != nil {
			if at.depth == 0 {
				return partial, err
			}
			partial = true
			continue
		}
		for _, e := range entries {
			f := found{path: path.Join(at.path, e.Name()), depth: at.depth + 1, entry: e}
			enter, stop := visit(f)
			if stop {
				return partial, nil
			}
			if enter && e.IsDir() {
				todo = append(todo, f)
			}
		}
	}
	return partial, nil
}

// folderAt finds the folder that a path leads to.
func folderAt(root *os.Root, env Env, abs string) (string, error) {
	real, err := follow(root, abs)
	if err != nil {
		return "", err
	}
	info, err := exists(root, real)
	switch {
	case err != nil:
		return "", err
	case info == nil:
		return "", absent(root, env, real)
	case !info.IsDir():
		return "", refuse("%s is not a folder but a %s; read_file shows a file", short(env.Dir, abs), kindOf(info.Mode()))
	}
	return real, nil
}

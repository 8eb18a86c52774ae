package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"belay/sandbox"
)

const (
	maxPath  = 4096 // bytes, the kernel's own bound
	maxLinks = 40   // symbolic links on the way to one file, the kernel's own bound
)

// errOutside marks a path that leads out of the workspace.
var errOutside = errors.New("outside the workspace")

// resolve gives a path that a model wrote as an absolute and clean one, as the sandbox sees it. It looks at the text
// alone: relative paths start at dir, and "a/../b" is "b".
func resolve(dir, p string) (string, error) {
	switch {
	case p == "":
		return "", errors.New("path: empty; expected the path of a file in " + sandbox.Workspace)
	case len(p) > maxPath:
		return "", fmt.Errorf("path: %d bytes; expected at most %d", len(p), maxPath)
	case strings.ContainsRune(p, 0):
		return "", errors.New("path: holds a NUL byte; expected a path without")
	}
	abs := path.Clean(p)
	if !path.IsAbs(p) {
		abs = path.Join(dir, p)
	}
	if !inWorkspace(abs) {
		return "", fmt.Errorf("path: %s is %w; expected a path below %s", quoted(p), errOutside, sandbox.Workspace)
	}
	return abs, nil
}

func inWorkspace(abs string) bool {
	return abs == sandbox.Workspace || strings.HasPrefix(abs, sandbox.Workspace+"/")
}

// inRoot gives an absolute path of the workspace as os.Root wants it.
func inRoot(abs string) string {
	if abs == sandbox.Workspace {
		return "."
	}
	return strings.TrimPrefix(abs, sandbox.Workspace+"/")
}

// short is an absolute path as a model is shown it: relative to dir where it is below it, so that it can be used as it is.
func short(dir, abs string) string {
	if rel, ok := strings.CutPrefix(abs, strings.TrimSuffix(dir, "/")+"/"); ok {
		abs = rel
	}
	return visibleName(abs)
}

// visibleName is the name of a file as text, on one line whatever it holds.
func visibleName(name string) string { return strings.ReplaceAll(visible(name), "\n", "␊") }

// follow gives the path that abs leads to when its symbolic links are followed as the sandbox would follow them. What
// does not exist yet stays as it is. A link out of the workspace is errOutside; os.Root would refuse it too, but it also
// refuses links that are absolute and lead inside.
func follow(root *os.Root, abs string) (string, error) {
	done, todo := sandbox.Workspace, split(inRoot(abs))
	for links := 0; len(todo) > 0; {
		step := todo[0]
		todo = todo[1:]
		next := path.Join(done, step) // ".." stands only in links, and done has none: this is the kernel's reading
		if !inWorkspace(next) {
			return "", fmt.Errorf("%s leads %w", visibleName(abs), errOutside)
		}
		info, err := root.Lstat(inRoot(next))
		if errors.Is(err, fs.ErrNotExist) {
			return inside(abs, path.Join(next, path.Join(todo...)))
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		target, err := root.Readlink(inRoot(next))
		if err != nil {
			return "", err
		}
		if links++; links > maxLinks {
			return "", refuse("%s: more than %d symbolic links on the way", visibleName(abs), maxLinks)
		}
		if path.IsAbs(target) {
			if !inWorkspace(target) {
				return "", fmt.Errorf("%s is a link to %s, %w", visibleName(next), quoted(target), errOutside)
			}
			done, target = sandbox.Workspace, inRoot(target)
		}
		todo = append(split(target), todo...)
	}
	return done, nil
}

func inside(abs, real string) (string, error) {
	if !inWorkspace(real) {
		return "", fmt.Errorf("%s leads %w", visibleName(abs), errOutside)
	}
	return real, nil
}

// split gives the steps of a path below the workspace, ".." included.
func split(rel string) []string {
	return slices.DeleteFunc(strings.Split(rel, "/"), func(step string) bool { return step == "" || step == "." })
}

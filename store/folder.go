package store

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"belay/agent"
)

const (
	// maxDepth is how deeply folders may nest.
	maxDepth = 10_000
	// A folder is opened by itself down to openDepth and at every openEvery-th level below: near the top that is fastest,
	// and the deepest tree needs some 650 open files.
	openDepth, openEvery = 32, 16
)

// errChanged means that a file or folder was replaced or written while it was looked at.
var errChanged = errors.New("changed while it was read")

// folder is one folder of a workspace. Everything is done by one of its names, without following a link in that place,
// and never leaves the workspace: whatever runs in it may swap a folder for a link at any time.
type folder struct {
	root  *os.Root
	below string // of root, "" or ending in "/"
	path  *trail
	owned bool // close root with the folder
}

func topFolder(root *os.Root) folder { return folder{root: root} }

func (f folder) at(name string) string { return f.below + name }

func (f folder) close() {
	if f.owned {
		f.root.Close()
	}
}

// enter opens the folder called name, which must be the one that was seen there.
func (f folder) enter(name string, seen fs.FileInfo) (folder, error) {
	path := &trail{up: f.path, name: name}
	depth := path.depth()
	if depth > maxDepth {
		return folder{}, agent.Errorf(agent.ValidationError, "workspace %s: more than %d folders deep", path, maxDepth)
	}
	if depth > openDepth && depth%openEvery != 0 {
		return folder{root: f.root, below: f.at(name) + "/", path: path}, nil
	}
	root, err := f.root.OpenRoot(f.at(name))
	if err != nil {
		return folder{}, err
	}
	if now, err := root.Stat("."); err != nil || !os.SameFile(now, seen) {
		root.Close()
		return folder{}, errors.Join(errChanged, err)
	}
	return folder{root: root, path: path, owned: true}, nil
}

// self opens the folder itself.
func (f folder) self() (*os.File, error) {
	return f.root.OpenFile(f.below+".", os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// names lists what is in the folder, sorted.
func (f folder) names() ([]string, error) {
	d, err := f.self()
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// chmod sets the folder's own permission bits.
func (f folder) chmod(perm fs.FileMode) error {
	d, err := f.self()
	if err != nil {
		return err
	}
	return errors.Join(d.Chmod(perm), d.Close())
}

func (f folder) lstat(name string) (fs.FileInfo, error) { return f.root.Lstat(f.at(name)) }

// open opens the regular file that was seen under name. It never waits for the other end of a FIFO.
func (f folder) open(name string, seen fs.FileInfo) (*os.File, error) {
	file, err := f.root.OpenFile(f.at(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	now, err := file.Stat()
	if err != nil || !now.Mode().IsRegular() || !os.SameFile(now, seen) {
		file.Close()
		return nil, errors.Join(errChanged, err)
	}
	return file, nil
}

// permitted does what needs permission bits of name that it may lack, and then puts them back as they were.
func (f folder) permitted(name string, seen fs.FileInfo, bits fs.FileMode, do func() error) error {
	err := do()
	if !errors.Is(err, fs.ErrPermission) || seen.Mode().Perm()&bits == bits {
		return err
	}
	if err := f.root.Chmod(f.at(name), seen.Mode().Perm()|bits); err != nil {
		return err
	}
	return errors.Join(do(), f.root.Chmod(f.at(name), seen.Mode().Perm()))
}

// remove removes name and, if it is a folder, everything in it.
func (f folder) remove(name string) error {
	seen, err := f.lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if seen.IsDir() {
		if err := f.clear(name, seen); err != nil {
			return err
		}
	}
	return f.root.Remove(f.at(name))
}

func (f folder) clear(name string, seen fs.FileInfo) error {
	if seen.Mode().Perm()&0o700 != 0o700 {
		if err := f.root.Chmod(f.at(name), seen.Mode().Perm()|0o700); err != nil {
			return err
		}
	}
	sub, err := f.enter(name, seen)
	if err != nil {
		return err
	}
	defer sub.close()
	names, err := sub.names()
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := sub.remove(n); err != nil {
			return err
		}
	}
	return nil
}

// temporary gives a name that is not in use.
func temporary() string { return ".belay-" + rand.Text() }

// writeFile puts a file in name's place, whole or not at all; what is there must not be a folder.
func (f folder) writeFile(name string, perm fs.FileMode, content io.Reader) (err error) {
	temp := temporary()
	out, err := f.root.OpenFile(f.at(temp), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.root.Remove(f.at(temp)))
		}
	}()
	_, err = io.Copy(out, content)
	if err = errors.Join(err, out.Chmod(perm), out.Close()); err != nil {
		return err
	}
	return f.root.Rename(f.at(temp), f.at(name))
}

// writeLink puts a symbolic link in name's place; what is there must not be a folder.
func (f folder) writeLink(name, target string) error {
	temp := temporary()
	if err := f.root.Symlink(target, f.at(temp)); err != nil {
		return err
	}
	if err := f.root.Rename(f.at(temp), f.at(name)); err != nil {
		return errors.Join(err, f.root.Remove(f.at(temp)))
	}
	return nil
}

// trail is a path that shares its folders' part, so that the deepest tree needs memory for its names only.
type trail struct {
	up   *trail
	name string
	down int // levels, counted once
}

func (t *trail) depth() int {
	if t == nil {
		return 0
	}
	if t.down == 0 {
		t.down = t.up.depth() + 1
	}
	return t.down
}

// String gives the path as people can read it: quoted where it holds odd bytes, cut where it is endless.
func (t *trail) String() string {
	s := t.path()
	if len(s) > 300 {
		s = s[:140] + "…" + s[len(s)-140:]
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// path gives the path itself.
func (t *trail) path() string {
	if t == nil {
		return "."
	}
	names := make([]string, t.depth())
	for i := len(names) - 1; i >= 0; i-- {
		names[i], t = t.name, t.up
	}
	return strings.Join(names, "/")
}

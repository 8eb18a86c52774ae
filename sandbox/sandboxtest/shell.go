package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"belay/sandbox"
)

// session is the shell state that a script leaves.
type session struct {
	dir string
	env map[string]string
}

// shell interprets one command of a box.
type shell struct {
	box      *fakeBox
	root     *os.Root
	readOnly bool
	mu       sync.Mutex
	out      bytes.Buffer
}

// Write collects output and errors in the order in which they come.
func (s *shell) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// interpret runs a command in the Fake's own shell. The result has no more than exit, output and folder.
func (b *fakeBox) interpret(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	root, err := b.Workspace()
	if err != nil {
		return sandbox.Result{}, err
	}
	defer root.Close()
	s := &shell{box: b, root: root, readOnly: c.ReadOnly}
	b.mu.Lock()
	from := b.sessions[c.Session]
	b.mu.Unlock()
	env := map[string]string{"HOME": "/home/agent", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
	for _, m := range []map[string]string{b.profile.Env, from.env, c.Env} {
		maps.Copy(env, m)
	}
	dir := sandbox.Workspace
	for _, d := range []string{from.dir, c.Dir} {
		if d != "" {
			dir = d
		}
	}
	if st, err := s.stat(ctx, dir, true); err != nil || !st.IsDir() {
		return sandbox.Result{Exit: 126, Output: fmt.Appendf(nil, "belay: cannot start in %s: no such folder\n", dir)}, nil
	}
	runner, exit, err := s.run(ctx, c, dir, env)
	if err != nil {
		return sandbox.Result{}, err
	}
	r := sandbox.Result{Exit: exit, Output: s.out.Bytes()}
	if c.Session == "" || ctx.Err() != nil {
		return r, nil
	}
	r.Dir = runner.Dir
	if !c.ReadOnly {
		left := session{dir: runner.Dir, env: map[string]string{}}
		maps.Copy(left.env, from.env)
		maps.Copy(left.env, c.Env)
		for name, v := range runner.Vars {
			if v.Exported {
				left.env[name] = v.String()
			} else {
				delete(left.env, name)
			}
		}
		b.mu.Lock()
		b.sessions[c.Session] = left
		b.mu.Unlock()
	}
	return r, nil
}

func (s *shell) run(ctx context.Context, c sandbox.Command, dir string, env map[string]string) (*interp.Runner, int, error) {
	source, err := script(c)
	if err != nil {
		return nil, 0, err
	}
	var pairs []string
	for k, v := range env {
		pairs = append(pairs, k+"="+v)
	}
	runner, err := interp.New(
		interp.Env(expand.ListEnviron(pairs...)), interp.StdIO(nil, s, s),
		interp.OpenHandler(s.open), interp.StatHandler(s.stat), interp.ReadDirHandler2(s.readDir),
		interp.AccessHandler(func(context.Context, string, interp.AccessMode) error { return nil }),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.exec }),
	)
	if err != nil {
		return nil, 0, err
	}
	runner.Dir = dir
	program, err := syntax.NewParser().Parse(strings.NewReader(source), "")
	if err != nil {
		fmt.Fprintf(s, "bash: %v\n", err)
		return runner, 2, nil
	}
	err = runner.Run(ctx, program)
	if status, ok := errors.AsType[interp.ExitStatus](err); ok {
		return runner, int(status), nil
	}
	if ctx.Err() != nil {
		err = nil
	}
	return runner, 0, err
}

// script gives what the shell runs for a command.
func script(c sandbox.Command) (string, error) {
	if c.Script != "" {
		return c.Script, nil
	}
	var words []string
	for _, a := range c.Argv {
		q, err := syntax.Quote(a, syntax.LangBash)
		if err != nil {
			return "", err
		}
		words = append(words, q)
	}
	return strings.Join(words, " "), nil
}

// inside gives a path's name below the workspace.
func inside(p string) (string, error) {
	p = path.Clean(p)
	if p == sandbox.Workspace {
		return ".", nil
	}
	name, ok := strings.CutPrefix(p, sandbox.Workspace+"/")
	if !ok {
		return "", &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	return name, nil
}

func (s *shell) open(ctx context.Context, p string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	if !path.IsAbs(p) {
		p = path.Join(interp.HandlerCtx(ctx).Dir, p)
	}
	if p == "/dev/null" {
		return os.OpenFile(os.DevNull, flag, 0)
	}
	name, err := inside(p)
	if err != nil {
		return nil, err
	}
	if s.readOnly && flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0 {
		return nil, &fs.PathError{Op: "open", Path: p, Err: syscall.EROFS}
	}
	s.box.still.RLock()
	defer s.box.still.RUnlock()
	f, err := s.root.OpenFile(name, flag, perm.Perm())
	if err != nil {
		return nil, err
	}
	return file{f, &s.box.still}, nil
}

// file is a workspace file that nobody writes to while the box is frozen.
type file struct {
	*os.File
	still *sync.RWMutex
}

// Write implements io.Writer.
func (f file) Write(p []byte) (int, error) {
	f.still.RLock()
	defer f.still.RUnlock()
	return f.File.Write(p)
}

func (s *shell) stat(_ context.Context, p string, follow bool) (fs.FileInfo, error) {
	name, err := inside(p)
	if err != nil {
		return nil, err
	}
	if follow {
		return s.root.Stat(name)
	}
	return s.root.Lstat(name)
}

func (s *shell) readDir(_ context.Context, p string) ([]fs.DirEntry, error) {
	name, err := inside(p)
	if err != nil {
		return nil, err
	}
	return fs.ReadDir(s.root.FS(), name)
}

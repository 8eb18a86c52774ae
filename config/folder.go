package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"belay/agent"
	"belay/strictyaml"
)

// The files of a configuration folder, and the extensions of those in its subfolders.
const (
	reviewersFile = "reviewers.yaml"
	sandboxFile   = "sandbox.yaml"
	agentsDir     = "agents"
	modelsDir     = "models"
	policyDir     = "policy"
	tenantsDir    = "tenants"
)

var (
	rootFiles  = []string{reviewersFile, sandboxFile, "README.md"}
	subfolders = []string{agentsDir, modelsDir, policyDir, tenantsDir}
)

// maxFile bounds one file, in bytes.
const maxFile = 1 << 20

// folder is a configuration folder as it was at one moment, by slash-separated path. It is a file system, so that whatever
// reads it later reads what was hashed.
type folder map[string][]byte

// readFolder reads a configuration folder. Hidden files are skipped, as a mounted ConfigMap has them; every other file
// that has no place in the folder is a problem, since it would be ignored in silence.
func readFolder(fsys fs.FS) (folder, []*strictyaml.Problem) {
	f := folder{}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return f, []*strictyaml.Problem{unreadable(".", err, "a folder")}
	}
	var problems []*strictyaml.Problem
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, "."):
		case slices.Contains(subfolders, name):
			problems = append(problems, f.readSubfolder(fsys, name)...)
		case slices.Contains(rootFiles, name):
			problems = append(problems, f.read(fsys, name)...)
		default:
			problems = append(problems, &strictyaml.Problem{File: name, Line: 1, Text: "unexpected here; " + strictyaml.Suggest(name, slices.Concat(subfolders, rootFiles))})
		}
	}
	return f, problems
}

func (f folder) readSubfolder(fsys fs.FS, dir string) (problems []*strictyaml.Problem) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return []*strictyaml.Problem{unreadable(dir, err, "a folder")}
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch ext := path.Ext(name); {
		case strings.HasPrefix(e.Name(), "."):
		case ext == ".yaml" || ext == ".md":
			problems = append(problems, f.read(fsys, name)...)
		default:
			problems = append(problems, &strictyaml.Problem{File: name, Line: 1, Text: "unexpected here; expected files named *.yaml or *.md"})
		}
	}
	return problems
}

func (f folder) read(fsys fs.FS, name string) []*strictyaml.Problem {
	b, err := fs.ReadFile(fsys, name)
	switch {
	case err != nil:
		return []*strictyaml.Problem{unreadable(name, err, "a file")}
	case len(b) > maxFile:
		return []*strictyaml.Problem{{File: name, Line: 1, Text: fmt.Sprintf("%d bytes; expected at most %d", len(b), maxFile)}}
	}
	f[name] = b
	return nil
}

func unreadable(name string, err error, want string) *strictyaml.Problem {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return &strictyaml.Problem{File: name, Line: 1, Text: fmt.Sprintf("%v; expected %s that can be read", err, want)}
}

// yamlIn lists the YAML files of a subfolder, sorted.
func (f folder) yamlIn(dir string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if path.Dir(name) == dir && path.Ext(name) == ".yaml" {
			names = append(names, name)
		}
	}
	return names
}

// digest names the folder's content: every path and every byte.
func (f folder) digest() agent.Digest {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(h, "%s\x00%d\x00", name, len(f[name]))
		h.Write(f[name])
	}
	return agent.Digest(hex.EncodeToString(h.Sum(nil)))
}

// Open opens one file for reading.
func (f folder) Open(name string) (fs.File, error) {
	b, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{Reader: bytes.NewReader(b), name: path.Base(name)}, nil
}

// file is one open file of a folder, and what there is to know about it.
type file struct {
	*bytes.Reader
	name string
}

func (f *file) Stat() (fs.FileInfo, error) { return f, nil }
func (f *file) Close() error               { return nil }
func (f *file) Name() string               { return f.name }
func (f *file) Mode() fs.FileMode          { return 0o444 }
func (f *file) ModTime() time.Time         { return time.Time{} }
func (f *file) IsDir() bool                { return false }
func (f *file) Sys() any                   { return nil }

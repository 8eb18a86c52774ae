package belay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows says which packages of this project each package may import. Nothing points up: what stands further down in the
// list is built from what stands above it. Tests may import anything.
var arrows = map[string][]string{
	"":      {},
	"agent": {},

	"strictyaml": {"agent"},

	"policy":  {"agent", "strictyaml"},
	"store":   {"agent"},
	"model":   {"agent"},
	"sandbox": {},
	"tool":    {"agent", "sandbox", "store"},
	"config":  {"agent", "model", "policy", "sandbox", "strictyaml", "tool"},

	"sandbox/sandboxtest": {"sandbox"},

	// Adapters: only worker imports them.
	"model/openai":             {"agent", "model"},
	"model/scripted":           {"agent", "strictyaml"},
	"sandbox/docker":           {"sandbox", "sandbox/docker/container", "sandbox/process", "sandbox/process/wire"},
	"sandbox/docker/container": {"sandbox", "sandbox/process/wire"},
	"sandbox/docker/launch":    {"sandbox/docker/container", "sandbox/process/wire"},
	"sandbox/process":          {"sandbox", "sandbox/process/cgroup", "sandbox/process/seccomp", "sandbox/process/wire"},
	"sandbox/process/cgroup":   {"sandbox"},
	"sandbox/process/guest":    {"sandbox", "sandbox/process/cgroup", "sandbox/process/wire"},
	"sandbox/process/seccomp":  {},
	"sandbox/process/wire":     {"sandbox", "sandbox/process/cgroup"},

	"activities": {"agent", "config", "model", "policy", "sandbox", "store", "tool"},
	"workflows":  {"activities", "agent", "model", "policy"},
	"events":     {"activities", "agent", "store", "workflows"},

	"starter": {
		"activities", "agent", "config", "events", "model", "policy", "sandbox", "store", "strictyaml", "tool", "workflows",
	},
	"worker": {
		"activities", "agent", "config", "events", "model", "model/openai", "model/scripted", "policy", "sandbox", "sandbox/docker",
		"sandbox/process", "store", "tool", "workflows",
	},

	"testserver": {},
	"bench": {
		"activities", "agent", "config", "events", "model", "sandbox", "sandbox/sandboxtest", "store", "testserver", "workflows",
	},
}

// pure are the standard packages that agent, strictyaml, policy and workflows may import: nothing that reads a clock, a file
// or the network, nothing random, no threads. Of time they use types and arithmetic, see clocks.
var pure = []string{
	"bytes", "cmp", "crypto/sha256", "embed", "encoding", "encoding/hex", "encoding/json", "errors", "fmt", "io", "io/fs", "iter",
	"maps", "math", "math/big", "net/netip", "net/url", "path", "reflect", "regexp", "slices", "sort", "strconv", "strings", "time",
	"unicode", "unicode/utf8",
}

// alsoPure are what one of them may import besides: policy reads its tables once.
var alsoPure = map[string][]string{"policy": {"sync"}}

// clocks are what the packages above may not use of package time.
var clocks = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

const (
	maxFile     = 300 // lines
	maxFunction = 80  // lines
)

// file is one Go file that is neither a test nor generated, for whatever system it is.
type file struct {
	*ast.File
	path string // slash-separated, below the root of the module
	fset *token.FileSet
}

func (f file) line(p token.Pos) int { return f.fset.Position(p).Line }

// imported are the packages that a file imports.
func (f file) imported(t *testing.T) (paths []string) {
	t.Helper()
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

// source parses the module's Go files, by the folder of their package; "" is the root.
func source(t *testing.T) map[string][]file {
	t.Helper()
	fset := token.NewFileSet()
	pkgs := map[string][]file{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return enter(name)
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(parsed) {
			return err
		}
		pkg := strings.TrimPrefix(path.Dir(name), ".")
		pkgs[pkg] = append(pkgs[pkg], file{File: parsed, path: name, fset: fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

// enter skips what the go command does not build as part of this module.
func enter(dir string) error {
	base := path.Base(dir)
	if dir == "." {
		return nil
	}
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func TestImportsFollowTheArrows(t *testing.T) {
	t.Parallel()
	pkgs := source(t)
	for pkg, files := range pkgs {
		allowed, known := arrows[pkg]
		if !known {
			t.Errorf("package %s has no arrows; say in arch_test.go what it may import", pkg)
			continue
		}
		for _, f := range files {
			for _, p := range f.imported(t) {
				ours, isOurs := strings.CutPrefix(p, "belay/")
				if isOurs && !slices.Contains(allowed, ours) {
					t.Errorf("%s imports %s; %q may import only %q", f.path, p, pkg, allowed)
				}
			}
		}
	}
	for pkg := range arrows {
		if pkgs[pkg] == nil {
			t.Errorf("arrows name package %q, which is not there", pkg)
		}
	}
}

func TestPurePackagesReachNothingOutside(t *testing.T) {
	t.Parallel()
	pkgs := source(t)
	for _, pkg := range []string{"agent", "strictyaml", "policy", "workflows"} {
		for _, f := range pkgs[pkg] {
			for _, p := range f.imported(t) {
				first, _, _ := strings.Cut(p, "/")
				standard := !strings.Contains(first, ".") && first != "belay"
				if standard && !slices.Contains(pure, p) && !slices.Contains(alsoPure[pkg], p) {
					t.Errorf("%s imports %s, which is not among the pure packages", f.path, p)
				}
				if pkg == "agent" && !standard {
					t.Errorf("%s imports %s; agent imports the standard library only", f.path, p)
				}
			}
			ast.Inspect(f.File, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && isIdent(s.X, "time") && slices.Contains(clocks, s.Sel.Name) {
					t.Errorf("%s:%d: time.%s; a pure package has no clock", f.path, f.line(s.Pos()), s.Sel.Name)
				}
				return true
			})
		}
	}
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for pkg, files := range source(t) {
		var docs []string
		for _, f := range files {
			if f.Doc != nil {
				docs = append(docs, f.path)
			}
		}
		if len(docs) != 1 {
			t.Errorf("package %q has a doc comment in %d files %v; expected one", pkg, len(docs), docs)
		}
	}
}

func TestFilesAndFunctionsStaySmall(t *testing.T) {
	t.Parallel()
	for _, files := range source(t) {
		for _, f := range files {
			if n := f.line(f.FileEnd); n > maxFile {
				t.Errorf("%s has %d lines; at most %d", f.path, n, maxFile)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if n := f.line(fn.End()) - f.line(fn.Pos()) + 1; n > maxFunction {
					t.Errorf("%s:%d: %s has %d lines; at most %d", f.path, f.line(fn.Pos()), fn.Name.Name, n, maxFunction)
				}
				if fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s:%d: init; wiring is done in worker and starter, in the open", f.path, f.line(fn.Pos()))
				}
			}
		}
	}
}

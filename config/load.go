package config

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"belay/agent"
	"belay/model"
	"belay/policy"
	"belay/sandbox"
	"belay/strictyaml"
)

// Load reads a configuration folder as a whole. Its error joins a strictyaml.Problem for everything that is wrong
// with it.
func Load(fsys fs.FS) (*Bundle, error) {
	f, problems := readFolder(fsys)
	return parse(f, problems)
}

// LoadDir is Load for a folder of the host; its problems name files by their path from the working folder.
func LoadDir(dir string) (*Bundle, error) {
	b, err := Load(os.DirFS(dir))
	return b, strictyaml.Within(dir, err)
}

// loader turns the files of a folder into a bundle and gathers what is wrong with them.
type loader struct {
	folder   folder
	problems []*strictyaml.Problem
	docs     map[string]*strictyaml.Document // of what decoded, by file
}

func parse(f folder, problems []*strictyaml.Problem) (*Bundle, error) {
	l := &loader{folder: f, problems: problems, docs: map[string]*strictyaml.Document{}}
	b := &Bundle{
		Agents:   definitions(l, agentsDir, l.agent),
		Models:   definitions(l, modelsDir, l.model),
		Tenants:  map[agent.TenantID]Tenant{},
		Profiles: map[string]sandbox.Profile{},
		Policy:   l.policy(),
		digest:   f.digest(),
	}
	for name, t := range definitions(l, tenantsDir, l.tenant) {
		b.Tenants[agent.TenantID(name)] = t
	}
	if d := l.decode(sandboxFile, &b.Profiles); d != nil {
		for _, name := range sortedNames(b.Profiles) {
			p := b.Profiles[name]
			l.profile(name, &p, d)
			b.Profiles[name] = p
		}
	}
	if _, written := f[reviewersFile]; written {
		if d := l.decode(reviewersFile, &b.Reviewers); d != nil {
			l.reviewers(&b.Reviewers, d)
		}
	}
	l.references(b)
	if err := strictyaml.Join(l.problems); err != nil {
		return nil, err
	}
	return b, nil
}

// definitions reads a subfolder with one definition a file, each by the name of its file. One that does not decode is kept
// by its name alone, so that references to it are not called wrong as well.
func definitions[T any](l *loader, dir string, check func(name string, v *T, d *strictyaml.Document)) map[string]T {
	all := map[string]T{}
	files := l.folder.yamlIn(dir)
	if len(files) == 0 {
		l.file(dir, "no definitions; expected at least one file <name>.yaml")
	}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".yaml")
		var v T
		if d := l.decode(file, &v); d != nil {
			check(name, &v, d)
		}
		all[name] = v
	}
	return all
}

// decode reads one file; nil when it can't be read.
func (l *loader) decode(file string, v any) *strictyaml.Document {
	src, ok := l.folder[file]
	if !ok {
		l.file(file, "missing; expected this file")
		return nil
	}
	d, err := strictyaml.Decode(file, src, v)
	if err != nil {
		l.problems = append(l.problems, strictyaml.Problems(err)...)
		return nil
	}
	l.docs[file] = d
	return d
}

// file notes what is wrong with a file as a whole.
func (l *loader) file(name, text string) {
	l.problems = append(l.problems, &strictyaml.Problem{File: name, Line: 1, Text: text})
}

func (l *loader) wrong(d *strictyaml.Document, path, format string, args ...any) {
	l.problems = append(l.problems, d.Problem(path, format, args...))
}

// name checks the name that a definition has by its file, and the one written in it.
func (l *loader) name(d *strictyaml.Document, file string, written *string) {
	if !agent.ValidName(file) {
		l.wrong(d, "", "the file is named %.40q; expected %s", file, agent.NameForm)
	}
	if *written != "" && *written != file {
		l.wrong(d, "name", "%.40q; expected %q, as the file is named, or nothing", *written, file)
	}
	*written = file
}

func (l *loader) model(name string, m *model.Config, d *strictyaml.Document) {
	l.name(d, name, &m.Name)
	for _, err := range m.Validate() {
		l.problems = append(l.problems, d.At(err))
	}
}

// policy reads the rules; their package checks them.
func (l *loader) policy() *policy.Set {
	set, err := policy.Load(l.folder, l.folder.yamlIn(policyDir)...)
	if err == nil {
		return set
	}
	problems := strictyaml.Problems(err)
	if len(problems) == 0 {
		l.file(policyDir, err.Error())
	}
	l.problems = append(l.problems, problems...)
	return nil
}

func sortedNames[K ~string, V any](m map[K]V) (names []string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		names = append(names, string(k))
	}
	return names
}

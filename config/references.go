package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"belay/agent"
	"belay/strictyaml"
)

// references checks every name in one file that must be the name of something in another.
func (l *loader) references(b *Bundle) {
	for _, name := range sortedNames(b.Agents) {
		if d := l.docs[path.Join(agentsDir, name+".yaml")]; d != nil {
			known(l, d, "model", "model", b.Agents[name].Model, sortedNames(b.Models))
			if l.docs[sandboxFile] != nil { // otherwise that file is the one thing that is wrong
				known(l, d, "sandbox", "sandbox profile", b.Agents[name].Sandbox, sortedNames(b.Profiles))
			}
		}
	}
	for _, name := range sortedNames(b.Models) {
		if d := l.docs[path.Join(modelsDir, name+".yaml")]; d != nil {
			for i, f := range b.Models[name].Fallback {
				known(l, d, fmt.Sprintf("fallback[%d]", i), "model", f, sortedNames(b.Models))
			}
			if circle := b.circle(name); circle != nil {
				l.wrong(d, "fallback", "goes in a circle, %s; expected an end", strings.Join(circle, " → "))
			}
		}
	}
	for _, name := range sortedNames(b.Tenants) {
		if d := l.docs[path.Join(tenantsDir, name+".yaml")]; d != nil {
			t := b.Tenants[agent.TenantID(name)]
			l.allowedKnown(d, "agents", "agent", t.Agents, sortedNames(b.Agents))
			l.allowedKnown(d, "models", "model", t.Models, sortedNames(b.Models))
		}
	}
	_, named := l.folder[reviewersFile]
	if b.Policy != nil && (!named || l.docs[reviewersFile] != nil) {
		l.problems = append(l.problems, strictyaml.Problems(b.Policy.CheckReviewers(b.Reviewers.known()))...)
	}
}

func (l *loader) allowedKnown(d *strictyaml.Document, at, kind string, list, names []string) {
	for i, name := range list {
		if name != everything {
			known(l, d, fmt.Sprintf("%s[%d]", at, i), kind, name, names)
		}
	}
}

func known(l *loader, d *strictyaml.Document, at, kind, name string, names []string) {
	if !slices.Contains(names, name) {
		l.wrong(d, at, "%.40q: no such %s; %s", name, kind, strictyaml.Suggest(name, names))
	}
}

// circle gives the way from a model back to itself through fallbacks, if there is one; the models after the first in the
// order of their names leave it to the first to tell.
func (b *Bundle) circle(start string) []string {
	var visit func(name string, way []string) []string
	visit = func(name string, way []string) []string {
		way = append(slices.Clip(way), name)
		for _, next := range b.Models[name].Fallback {
			switch {
			case next == start && next != name:
				return append(way, next)
			case next < start || slices.Contains(way, next):
				continue
			}
			if found := visit(next, way); found != nil {
				return found
			}
		}
		return nil
	}
	return visit(start, nil)
}

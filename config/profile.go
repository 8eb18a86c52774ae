package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"belay/agent"
	"belay/sandbox"
	"belay/strictyaml"
)

// unconfinable is what a profile may let a host lack.
var unconfinable = []string{"memory", "pids", "cpu", "seccomp"}

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (l *loader) profile(name string, p *sandbox.Profile, d *strictyaml.Document) {
	if !agent.ValidName(name) {
		l.wrong(d, name, "%.40q; expected %s", name, agent.NameForm)
	}
	if p.Name != "" && p.Name != name {
		l.wrong(d, name+".name", "%.40q; expected %q, under which it stands, or nothing", p.Name, name)
	}
	p.Name = name
	for _, size := range []struct {
		field       string
		value, from int
		to          int
	}{
		{"memory_mib", p.MemoryMiB, 64, 1 << 20},
		{"pids", p.PIDs, 16, 1 << 20},
		{"cpu_percent", p.CPUPercent, 10, 100_000},
		{"tmp_mib", p.TmpMiB, 1, 1 << 20},
	} {
		if size.value < size.from || size.value > size.to {
			l.wrong(d, name+"."+size.field, "%d; expected %d to %d", size.value, size.from, size.to)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(p.Env)) {
		if !variableForm.MatchString(v) {
			l.wrong(d, name+".env."+v, "not the name of an environment variable; expected letters, digits and _")
		}
	}
	for i, u := range p.Unconfined {
		if !slices.Contains(unconfinable, u) {
			l.wrong(d, fmt.Sprintf("%s.unconfined[%d]", name, i), "%.40q; %s", u, strictyaml.Suggest(u, unconfinable))
		}
	}
}

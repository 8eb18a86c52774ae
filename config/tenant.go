package config

import (
	"fmt"
	"slices"

	"belay/agent"
	"belay/strictyaml"
)

// Tenant is who pays for tasks, and what its tasks may use at the most.
type Tenant struct {
	// Name is the file's name without its extension; it may be left out of the file.
	Name agent.TenantID `json:"name" yaml:"name"`
	// Namespace and TaskQueue are where the tenant is served; empty: everywhere.
	Namespace string `json:"namespace,omitempty" yaml:"namespace"`
	TaskQueue string `json:"task_queue,omitempty" yaml:"task_queue"`
	// Ceiling bounds every task of the tenant, and every raise. All its limits must be set; where an agent leaves a limit out,
	// the ceiling's holds.
	Ceiling agent.Limits `json:"ceiling" yaml:"ceiling"`
	// Agents and Models name what the tenant's tasks may use; "*" is all of them.
	Agents []string `json:"agents" yaml:"agents"`
	Models []string `json:"models" yaml:"models"`
}

// everything in a list of names stands for all of them.
const everything = "*"

func allows(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, everything)
}

func (l *loader) tenant(name string, t *Tenant, d *strictyaml.Document) {
	l.name(d, name, (*string)(&t.Name))
	l.limits(d, "ceiling", t.Ceiling)
	for _, limit := range t.Ceiling.Missing() {
		if at := "ceiling." + string(limit); !d.Has(at) {
			l.wrong(d, at, "missing; expected the most that a task of this tenant may use")
		}
	}
	l.allowed(d, "agents", t.Agents)
	l.allowed(d, "models", t.Models)
}

func (l *loader) allowed(d *strictyaml.Document, at string, list []string) {
	if len(list) == 0 {
		l.wrong(d, at, "missing; expected names, or %q for all", everything)
	}
	for i, name := range list {
		if slices.Contains(list[:i], name) {
			l.wrong(d, fmt.Sprintf("%s[%d]", at, i), "%q is listed twice", name)
		}
	}
}

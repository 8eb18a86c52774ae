package main

import (
	"strings"

	"github.com/kelseyhightower/envconfig"
)

// settings are what belay reads from the environment, each as BELAY_<NAME>. The connection to Temporal comes from Temporal's
// own client configuration (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, …, profiles).
type settings struct {
	TaskQueue string `envconfig:"TASK_QUEUE" default:"belay" desc:"task queue on which tasks are started"`
	Config    string `envconfig:"CONFIG" default:"deploy/config" desc:"folder with agents, models, policy, tenants and reviewers"`
	Store     string `envconfig:"STORE" default:".belay/store" desc:"where the worker keeps content: a folder or a gocloud.dev/blob URL"`
	Tenant    string `envconfig:"TENANT" default:"default" desc:"whose tasks are looked for in the store when the server has forgotten them"`
	UI        string `envconfig:"UI" default:"http://127.0.0.1:8233" desc:"address of the Temporal Web UI, for links"`
}

func readSettings() (settings, error) {
	var s settings
	if err := envconfig.Process("belay", &s); err != nil {
		return s, usagef("%w", err)
	}
	return s, nil
}

// environment is the part of --help about environment variables.
func environment() string {
	var b strings.Builder
	var s settings
	_ = envconfig.Usagef("belay", &s, &b, "Environment:\n{{range .}}  {{usage_key .}}\t{{usage_description .}} ({{usage_default .}})\n{{end}}") // a Builder does not fail
	b.WriteString("  TEMPORAL_*\tconnection to Temporal, as its own command reads it: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_PROFILE, …")
	return aligned(b.String())
}

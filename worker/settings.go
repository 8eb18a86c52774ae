package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"
)

// settings are what the worker reads from the environment, each as BELAY_<NAME>. The connection to Temporal comes from
// Temporal's own client configuration (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, …, profiles).
type settings struct {
	TaskQueue      string        `envconfig:"TASK_QUEUE" default:"belay" desc:"task queue on which tasks are started"`
	Config         string        `envconfig:"CONFIG" default:"deploy/config" desc:"folder with agents, models, policy, tenants and reviewers"`
	ReloadEvery    time.Duration `envconfig:"RELOAD_EVERY" default:"5s" desc:"how often the folder is looked at for changes"`
	Store          string        `envconfig:"STORE" default:".belay/store" desc:"where content is kept: a folder or a gocloud.dev/blob URL"`
	State          string        `envconfig:"STATE" default:".belay/state" desc:"folder of this host for sandboxes; it also holds the host's id"`
	WorkspaceRoots []string      `envconfig:"WORKSPACE_ROOTS" desc:"folders below which workspace sources may lie, comma-separated; none: only empty workspaces"`
	MaxSandboxes   int           `envconfig:"MAX_SANDBOXES" default:"64" desc:"sandboxes on this host at one time"`
	Sandbox        string        `default:"process" desc:"what keeps the sandboxes: process (bubblewrap) or docker"`
	DockerHost     string        `split_words:"true" default:"unix:///var/run/docker.sock" desc:"socket of the Docker daemon on this host"`
	DockerImage    string        `split_words:"true" desc:"image that sandboxes show, with bash and coreutils; required with docker, never pulled"`
	DockerRuntime  string        `split_words:"true" desc:"the daemon's runtime: empty (runc), runsc (gVisor) or kata (a microVM)"`
	ModelBaseURL   string        `envconfig:"MODEL_BASE_URL" desc:"use this OpenAI-compatible endpoint for every model"`
	ModelID        string        `envconfig:"MODEL_ID" desc:"that endpoint's own name for the model"`
	LogLevel       string        `envconfig:"LOG_LEVEL" default:"info" desc:"debug, info, warn or error"`
	LogFormat      string        `envconfig:"LOG_FORMAT" default:"console" desc:"console or json"`
	StopTimeout    time.Duration `envconfig:"STOP_TIMEOUT" default:"10s" desc:"how long a stopping worker waits for its activities to hand themselves back"`
	StickyTimeout  time.Duration `envconfig:"STICKY_TIMEOUT" default:"2s" desc:"how long a workflow task waits for the worker that has the workflow in memory"`
}

// readSettings takes the settings from the environment. --help prints them.
func readSettings(args []string, out io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("belay-worker", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(out, "belay-worker serves Belay's workflows and activities. It takes no flags; its settings are environment variables:\n\n")
		_ = envconfig.Usagef("belay", &s, out, envconfig.DefaultTableFormat) // writing help can only fail with its writer
	}
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q; expected none, or scripted-model", flags.Arg(0))
	}
	if err := envconfig.Process("belay", &s); err != nil {
		return s, oneLine(err)
	}
	if err := s.validate(); err != nil {
		return s, err
	}
	return s.absolute()
}

// oneLine makes envconfig's errors name the variable, the value and what was expected.
func oneLine(err error) error {
	p, ok := errors.AsType[*envconfig.ParseError](err)
	if !ok {
		return err
	}
	want := "a whole number"
	if p.TypeName == "time.Duration" {
		want = `a duration such as "90s" or "5m"`
	}
	return fmt.Errorf("%s: %q; expected %s", p.KeyName, p.Value, want)
}

func (s settings) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"RELOAD_EVERY", s.ReloadEvery}, {"STOP_TIMEOUT", s.StopTimeout}, {"STICKY_TIMEOUT", s.StickyTimeout}} {
		if d.value <= 0 {
			return fmt.Errorf("BELAY_%s: %q; expected more than 0s", d.name, d.value)
		}
	}
	for _, t := range []struct{ name, value string }{{"TASK_QUEUE", s.TaskQueue}, {"CONFIG", s.Config}, {"STORE", s.Store}, {"STATE", s.State}} {
		if strings.TrimSpace(t.value) == "" {
			return fmt.Errorf("BELAY_%s: empty; leave it unset for the default", t.name)
		}
	}
	if s.MaxSandboxes < 1 {
		return fmt.Errorf("BELAY_MAX_SANDBOXES: %d; expected at least 1", s.MaxSandboxes)
	}
	for _, root := range s.WorkspaceRoots {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return fmt.Errorf("BELAY_WORKSPACE_ROOTS: %q is no folder here", root)
		}
	}
	return nil
}

// absolute fixes the folders, so that a supervisor started in another one finds them.
func (s settings) absolute() (settings, error) {
	paths := []*string{&s.Config, &s.State}
	if !strings.Contains(s.Store, "://") {
		paths = append(paths, &s.Store)
	}
	for i := range s.WorkspaceRoots {
		paths = append(paths, &s.WorkspaceRoots[i])
	}
	for _, p := range paths {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return s, fmt.Errorf("%s: %w", *p, err)
		}
		*p = abs
	}
	return s, nil
}

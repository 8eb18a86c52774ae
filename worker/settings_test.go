package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong with the settings ends the worker before it takes a task, in one line that names the place.
func TestBadSettingsAreToldInOneLine(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want string
	}{
		{"argument", nil, []string{"serve"}, `unexpected argument "serve"; expected none, or scripted-model`},
		{"duration", map[string]string{"BELAY_STOP_TIMEOUT": "soon"}, nil, `BELAY_STOP_TIMEOUT: "soon"; expected a duration such as "90s" or "5m"`},
		{"number", map[string]string{"BELAY_MAX_SANDBOXES": "many"}, nil, `BELAY_MAX_SANDBOXES: "many"; expected a whole number`},
		{"no reload", map[string]string{"BELAY_RELOAD_EVERY": "-1s"}, nil, `BELAY_RELOAD_EVERY: "-1s"; expected more than 0s`},
		{"no queue", map[string]string{"BELAY_TASK_QUEUE": ""}, nil, `BELAY_TASK_QUEUE: empty`},
		{"no sandboxes", map[string]string{"BELAY_MAX_SANDBOXES": "0"}, nil, `BELAY_MAX_SANDBOXES: 0; expected at least 1`},
		{"no such root", map[string]string{"BELAY_WORKSPACE_ROOTS": "/nowhere"}, nil, `BELAY_WORKSPACE_ROOTS: "/nowhere" is no folder here`},
		{"log level", map[string]string{"BELAY_LOG_LEVEL": "loud"}, nil, `BELAY_LOG_LEVEL: "loud": expected debug, info, warn or error`},
		{"log format", map[string]string{"BELAY_LOG_FORMAT": "xml"}, nil, `BELAY_LOG_FORMAT: "xml": expected console or json`},
		{"no configuration", map[string]string{"BELAY_CONFIG": "nowhere"}, nil, "nowhere"},
		{"no server", map[string]string{"BELAY_CONFIG": "../deploy/config", "TEMPORAL_ADDRESS": "127.0.0.1:1"}, nil, "reach Temporal at 127.0.0.1:1"},
		{"no scenarios", nil, []string{"scripted-model"}, "--scenarios: missing"},
		{"scenarios that are not there", nil, []string{"scripted-model", "--scenarios", "nowhere.yaml"}, "nowhere.yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			var out, errs bytes.Buffer
			err := run(context.Background(), c.args, os.Getenv, &out, &errs)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
		})
	}
}

// Each kind of sandbox announces its own level, in a folder of its own; none stands in for another.
func TestSandboxSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set   settings
		level string
		wrong string
	}{
		{settings{Sandbox: "process"}, "process", ""},
		{settings{Sandbox: "docker", DockerImage: "x"}, "container", ""},
		{settings{Sandbox: "docker", DockerImage: "x", DockerRuntime: "runsc"}, "gvisor", ""},
		{settings{Sandbox: "docker", DockerImage: "x", DockerRuntime: "kata"}, "microvm", ""},
		{settings{Sandbox: "docker", DockerImage: "x", DockerRuntime: "crun"}, "", `runtime "crun": expected nothing, runsc or kata`},
		{settings{Sandbox: "docker"}, "", "BELAY_DOCKER_IMAGE: empty; expected the image"},
		{settings{Sandbox: "docker", DockerImage: "x", DockerHost: "tcp://h:1"}, "", `host "tcp://h:1": expected unix:///`},
		{settings{Sandbox: "chroot"}, "", `BELAY_SANDBOX: "chroot": expected process or docker`},
	} {
		c.set.State = t.TempDir()
		_, level, err := newRuntime(c.set, slog.New(slog.DiscardHandler))
		if c.wrong == "" && (err != nil || level != c.level) {
			t.Errorf("%+v: level %q, %v; want %s", c.set, level, err, c.level)
		}
		if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%+v: %v; want %q", c.set, err, c.wrong)
		}
	}
}

func TestAHostKeepsItsQueue(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	first, err := hostQueue(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := hostQueue(dir)
	if err != nil || again != first {
		t.Errorf("the host's queue is %s, then %s, %v", first, again, err)
	}
	if other, err := hostQueue(t.TempDir()); err != nil || other == first {
		t.Errorf("another host has the same queue %s, %v", other, err)
	}
}

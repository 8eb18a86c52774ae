package endtoend_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"belay/testserver"
)

// said is what a command line answered.
type said struct {
	stdout, stderr string
	err            error
}

// temporal runs the real temporal command in the world.
func (w *world) temporal(t *testing.T, args ...string) said {
	t.Helper()
	path, err := testserver.CLI()
	if err != nil {
		t.Fatal(err)
	}
	return w.command(t, path, args...)
}

// belay runs the real belay command in the world.
func (w *world) belay(t *testing.T, args ...string) said {
	t.Helper()
	path, err := testserver.Program("belay")
	if err != nil {
		t.Fatal(err)
	}
	return w.command(t, path, args...)
}

func (w *world) command(t *testing.T, path string, args ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = w.environment(), &stdout, &stderr
	err := cmd.Run()
	return said{stdout.String(), stderr.String(), err}
}

// environment is what a person's shell holds who works in this world.
func (w *world) environment() []string {
	return append(w.server.Environment(w.namespace), "BELAY_STORE="+w.worker.Store, "NO_COLOR=1")
}

// must fails the test when the command failed.
func (s said) must(t *testing.T) string {
	t.Helper()
	if s.err != nil {
		t.Fatalf("%v\n%s%s", s.err, s.stdout, s.stderr)
	}
	return s.stdout
}

// reason is what a command wrote about its failure, without the quoting of its log.
func (s said) reason() string { return strings.ReplaceAll(s.stderr, `\"`, `"`) }

package endtoend_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belay/agent"
	"belay/testserver"
)

// containersOnly is the shipped configuration with a rule by which commands run in containers, or not at all.
func containersOnly(t *testing.T) string {
	t.Helper()
	root, err := testserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "deploy", "config"))); err != nil {
		t.Fatal(err)
	}
	const rule = "rules:\n  - id: containers-only\n    effect: require_sandbox\n    when: tool == \"shell\"\n    sandbox: container\n" +
		"    reason: Commands run in containers.\n    examples:\n      match: [{tool: shell, command: ls}]\n" +
		"      no_match: [{tool: read_file, args: {path: a}, reads: [/workspace/a], effect: pure}]\n"
	if err := os.WriteFile(filepath.Join(dir, "policy", "containers.yaml"), []byte(rule), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestIsolationLevels runs one task by a worker that gives the level which policy demands, and by one that does not.
func TestIsolationLevels(t *testing.T) {
	t.Parallel()
	host := os.Getenv("BELAY_TEST_DOCKER")
	if host == "" {
		t.Skip("NO TASK IN A DOCKER SANDBOX IS TESTED: BELAY_TEST_DOCKER is not set; see deploy/dev/docker-test")
	}
	s := newServer(t, "--namespace", "docker")
	config := "BELAY_CONFIG=" + containersOnly(t)
	weak := newWorld(t, s, "default", play, config)
	strong := newWorld(t, s, "docker", play, config,
		"BELAY_SANDBOX=docker", "BELAY_DOCKER_HOST="+host, "BELAY_DOCKER_IMAGE="+os.Getenv("BELAY_TEST_DOCKER_IMAGE"))
	t.Run("given", func(t *testing.T) {
		t.Parallel()
		k := strong.start(t, "write twice")
		e := k.wait(t)
		if p := strong.patch(t, e.Ledger); !strings.Contains(p, "+begin\n+end\n+begin\n+end\n") {
			t.Errorf("the commands did not run:\n%s", p)
		}
		if e.TerminationReason != agent.ReasonFinalAnswer || !strings.HasPrefix(e.WorkspaceRef.Environment, "container/") {
			t.Errorf("ended with %s in %s, want a final answer in a container", e.TerminationReason, e.WorkspaceRef.Environment)
		}
	})
	t.Run("not given", func(t *testing.T) {
		t.Parallel()
		k := weak.start(t, "write twice")
		if p := weak.patch(t, k.wait(t).Ledger); strings.Contains(p, "begin") {
			t.Errorf("a command ran below the level that policy demands:\n%s", p)
		}
		denied := ofType(k.events(t, ""), agent.EventPolicyDenied)
		if len(denied) < 2 || !strings.Contains(fmt.Sprint(denied[0].Fields), "needs a sandbox of level container") {
			t.Errorf("denied %v; want both commands, for want of a container", denied)
		}
	})
}

// Package endtoend_test shows on real processes what the unit tests show on parts: the Temporal dev server, the worker with
// its sandboxes, the scripted model, and the two command lines, some of which get killed on the way. What the model says in
// answer to which goal stands in testdata/model.yaml.
//
// The tests mostly wait for processes; at most three dev servers run at a time.
package endtoend_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"belay/agent"
	"belay/events"
	"belay/model/scripted"
	"belay/sandbox"
	"belay/sandbox/process"
	"belay/sandbox/process/wire"
	"belay/store"
	"belay/testserver"
)

// patience is how long anything may take that is to happen at all, on a busy machine.
const patience = 90 * time.Second

// play is the scenario of every test that needs no other.
const play = "testdata/model.yaml"

// TestMain lets more tests wait at a time than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err) // the flag is there in every test program
	}
	os.Exit(m.Run())
}

// world is one worker on a server, with a store, sandboxes and a namespace of its own.
type world struct {
	server    *testserver.Server
	model     *testserver.Model
	worker    *testserver.Worker
	client    client.Client
	store     *store.Store
	namespace string
	dir       string
}

// newServer starts a dev server that ends with the test. args are more arguments for it.
func newServer(t *testing.T, args ...string) *testserver.Server {
	t.Helper()
	s, err := testserver.Start(t.Context(), t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Kill() })
	return s
}

// newWorld starts a model that plays a scenario, and a worker, on a server's namespace. env adds to the worker's settings or
// changes them.
func newWorld(t *testing.T, s *testserver.Server, namespace, scenario string, env ...string) *world {
	t.Helper()
	w := &world{server: s, namespace: namespace, dir: t.TempDir()}
	var err error
	if w.model, err = testserver.StartModel(t.Context(), w.dir, scenario); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.model.Kill() })
	env = append([]string{"TEMPORAL_NAMESPACE=" + namespace}, env...)
	if w.worker, err = testserver.StartWorker(s, w.dir, w.model.BaseURL, "scripted/"+strings.TrimSuffix(filepath.Base(scenario), ".yaml"), env...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.end(t) })
	if w.client, err = s.DialNamespace(namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	if w.store, err = store.Open(t.Context(), filepath.Join(w.dir, "store")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	return w
}

// end ends the worker, and the sandboxes that tasks which were still running have left behind.
func (w *world) end(t *testing.T) {
	w.worker.Kill()
	if t.Failed() {
		t.Logf("the worker's log, without traces:\n%s", tail(w.worker.Log(), 60))
	}
	boxes, err := w.boxes()
	if err != nil {
		t.Error(err)
		return
	}
	ids, err := boxes.List(contextOf(t))
	if err != nil {
		t.Error(err)
	}
	for _, id := range ids {
		if err := boxes.Destroy(contextOf(t), id); err != nil {
			t.Error(err)
		}
	}
}

func (w *world) boxes() (sandbox.Runtime, error) {
	return process.New(process.Config{StateDir: w.sandboxes()})
}

func (w *world) sandboxes() string { return filepath.Join(w.dir, "state", "sandboxes") }

// workspace is the path of a file in the workspace of a sandbox, as the host sees it.
func (w *world) workspace(sandboxID, file string) string {
	return filepath.Join(w.sandboxes(), "sandboxes", sandboxID, wire.WorkspaceDir, file)
}

// tail gives the last lines of a log that begin with a time.
func tail(log string, lines int) string {
	var all []string
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "20") {
			all = append(all, line)
		}
	}
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// requests tells what the model was asked by the task with that goal.
func (w *world) requests(t *testing.T, goal string) []scripted.Count {
	t.Helper()
	res, err := http.Get(w.model.BaseURL + "/_scripted/requests")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var all struct{ Requests []scripted.Count }
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	var mine []scripted.Count
	for _, c := range all.Requests {
		// A goal is shown to the model with more lines below it.
		if first, _, _ := strings.Cut(c.Goal, "\n"); first == goal {
			mine = append(mine, c)
		}
	}
	return mine
}

// reader reads tasks back from server and store.
func (w *world) reader() events.Reader {
	return events.Reader{Client: w.client, Store: w.store, Tenant: "default"}
}

func (w *world) tenant() *store.Tenant { return w.store.Tenant("default") }

// patch is what a task changed in its workspace.
func (w *world) patch(t *testing.T, l agent.Ledger) string {
	t.Helper()
	p, err := w.tenant().Diff(t.Context(), l.WorkspaceRef.Base, l.WorkspaceRef.Tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// eventually waits until a condition holds. The condition says what is still missing.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	within(t, patience, what, condition)
}

// within is eventually with a deadline that matters.
func within(t *testing.T, limit time.Duration, what string, condition func() error) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s did not happen within %s: %v", what, limit, err)
		}
	}
}

// exists is the condition that a file is there.
func exists(path string) error {
	_, err := os.Stat(path)
	return err
}

// absent is the condition that a file is not there.
func absent(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is there (%v)", path, err)
	}
	return nil
}

// running finds the processes of this host whose command line holds a word that no other has.
func running(t *testing.T, word string) (pids []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), word) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

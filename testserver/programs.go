package testserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// clean leaves out what would point a program at another server or configuration.
func clean(env []string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, "TEMPORAL_") && !strings.HasPrefix(e, "BELAY_") && !strings.HasPrefix(e, "OPENAI_") {
			kept = append(kept, e)
		}
	}
	return append(kept, "TEMPORAL_CONFIG_FILE=/dev/null")
}

// Program finds one of the programs that make build makes.
func Program(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no bin/%s; run make build, or make test, which does", name)
	}
	return path, nil
}

// Model is a scripted model as a process.
type Model struct {
	*Process
	BaseURL string
	args    []string
	log     string
}

// StartModel serves a scenario file, or a folder of them.
func StartModel(ctx context.Context, dir, scenarios string) (*Model, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	m := &Model{
		BaseURL: fmt.Sprintf("http://127.0.0.1:%d", port),
		args:    []string{"scripted-model", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--scenarios", scenarios},
		log:     filepath.Join(dir, "model.log"),
	}
	return m, m.Restart(ctx)
}

// Restart starts the model again on the same port, after a Kill.
func (m *Model) Restart(ctx context.Context) error {
	path, err := Program("belay-worker")
	if err != nil {
		return err
	}
	if m.Process, err = startProcess(path, m.args, nil, m.log); err != nil {
		return err
	}
	for {
		res, err := http.Get(m.BaseURL + "/v1/models")
		if err == nil {
			return res.Body.Close()
		}
		select {
		case <-m.Done():
			return errors.New("the scripted model ended: " + m.Log())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Worker is a belay-worker as a process.
type Worker struct {
	*Process
	Store string // where its store is
	dir   string
	env   []string
	n     int
}

// StartWorker starts a worker on a server, with its state and store in dir. env adds to its settings or changes them.
func StartWorker(s *Server, dir, modelBaseURL, modelID string, env ...string) (*Worker, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	at := filepath.Join(dir, "store")
	w := &Worker{Store: at, dir: dir, env: append([]string{
		"TEMPORAL_ADDRESS=" + s.Address,
		"BELAY_CONFIG=" + filepath.Join(root, "deploy", "config"),
		"BELAY_STORE=" + at,
		"BELAY_STATE=" + filepath.Join(dir, "state"),
		"BELAY_WORKSPACE_ROOTS=" + filepath.Join(root, "examples"),
		"BELAY_MODEL_BASE_URL=" + modelBaseURL + "/v1",
		"BELAY_MODEL_ID=" + modelID,
	}, env...)}
	return w, w.Restart()
}

// Restart starts the worker again over the same state and store, after a Kill or Stop.
func (w *Worker) Restart() error {
	path, err := Program("belay-worker")
	if err != nil {
		return err
	}
	w.n++
	w.Process, err = startProcess(path, nil, w.env, filepath.Join(w.dir, fmt.Sprintf("worker-%d.log", w.n)))
	return err
}

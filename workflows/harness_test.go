package workflows_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
	"belay/config"
	"belay/events"
	"belay/model"
	"belay/model/openai"
	"belay/model/scripted"
	"belay/sandbox"
	"belay/sandbox/sandboxtest"
	"belay/store"
	"belay/workflows"
)

// world is a task's surroundings in a test: the real activities over a scripted model, a fake sandbox and a store in
// memory, and the workflow in the SDK's test environment.
type world struct {
	t     *testing.T
	env   *testsuite.TestWorkflowEnvironment
	model *scripted.Server
	boxes *sandboxtest.Fake
	store *store.Store
	act   *activities.Activities
	// ledgers are those that tasks started.
	ledgers []workflows.LedgerInput
}

// newWorld makes the surroundings of a task whose model plays a scenario, with the configuration that is shipped.
func newWorld(t *testing.T, scenario string) *world {
	t.Helper()
	w := &world{t: t, boxes: sandboxtest.NewFake(t.TempDir())}
	sc, err := scripted.Parse("test.yaml", []byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	sc.Name = "test"
	w.model = scripted.New(sc)
	if w.store, err = store.Open(t.Context(), "mem://"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	w.act = w.activities(nil)
	w.newEnv()
	return w
}

// activities are the real ones. A client makes them seal and reconcile too.
func (w *world) activities(c client.Client) *activities.Activities {
	w.t.Helper()
	server := httptest.NewServer(w.model)
	w.t.Cleanup(server.Close)
	bundle, err := config.LoadDir("../deploy/config")
	if err != nil {
		w.t.Fatal(err)
	}
	bundle, err = bundle.In(config.Place{ModelBaseURL: server.URL + "/v1", ModelID: "scripted/test", Getenv: func(string) string { return "" }})
	if err != nil {
		w.t.Fatal(err)
	}
	act, err := activities.New(activities.Config{
		Bundle: func() *config.Bundle { return bundle },
		Store:  w.store,
		Model: func(name string) (model.Model, error) {
			return openai.New(bundle.Models[name], "", server.Client())
		},
		Sandbox:        w.boxes,
		Level:          "process",
		HostQueue:      hostQueue,
		IndexDir:       w.t.TempDir(),
		WorkspaceRoots: []string{"../examples"},
		Retry:          fast(workflows.Retries()),
		Temporal:       c,
		Project: func(ctx context.Context, workflowID, runID string, seq int) ([]agent.Event, error) {
			return events.Project(ctx, c, workflowID, runID, seq)
		},
		SearchAttributes: c != nil,
		Version:          "test",
		HTTP:             http.DefaultClient,
		Log:              slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return act
}

const hostQueue = "belay-host-test"

// fast makes the waits between attempts short and leaves their number.
func fast(table agent.RetryTable) agent.RetryTable {
	for kind, rule := range table {
		rule.First, rule.Max = time.Millisecond, 5*time.Millisecond
		table[kind] = rule
	}
	return table
}

func (w *world) newEnv() {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 4}))))
	w.env = suite.NewTestWorkflowEnvironment()
	w.env.SetTestTimeout(30 * time.Second)
	w.env.RegisterActivity(w.act)
	w.env.RegisterWorkflowWithOptions(workflows.AgentTask, workflow.RegisterOptions{Name: workflows.TypeAgentTask})
	w.env.RegisterWorkflowWithOptions(func(_ workflow.Context, in workflows.LedgerInput) (agent.Ledger, error) {
		w.ledgers = append(w.ledgers, in)
		return in.Ledger, nil
	}, workflow.RegisterOptions{Name: workflows.TypeRunLedger})
}

// run runs a task to its end and gives its ledger, whatever the end.
func (w *world) run(task string) agent.Ledger {
	w.t.Helper()
	w.env.ExecuteWorkflow(workflows.TypeAgentTask, raw(w.t, task))
	return w.ledger()
}

func (w *world) ledger() agent.Ledger {
	w.t.Helper()
	if !w.env.IsWorkflowCompleted() {
		w.t.Fatal("the task did not end")
	}
	var l agent.Ledger
	err := w.env.GetWorkflowError()
	switch e := unwrapped(err).(type) {
	case nil:
		err = w.env.GetWorkflowResult(&l)
	case *temporal.ApplicationError:
		err = e.Details(&l)
	case *temporal.CanceledError:
		err = e.Details(&l)
	}
	if err != nil {
		w.t.Fatalf("the task's ledger can't be had: %v", err)
	}
	return l
}

func unwrapped(err error) error {
	for err != nil {
		switch err.(type) {
		case *temporal.ApplicationError, *temporal.CanceledError, *workflow.ContinueAsNewError:
			return err
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
	}
	return nil
}

// raw is a payload as the CLI sends it.
func raw(t *testing.T, text string) converter.RawValue {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return converter.NewRawValue(p)
}

func (w *world) signal(verb agent.Verb, text string) {
	w.env.SignalWorkflow(string(verb), raw(w.t, text))
}

// update sends a verb as an update and gives the error with which it was refused.
func (w *world) update(verb agent.Verb, text string) *answer {
	a := &answer{}
	w.env.UpdateWorkflow(string(verb), "", a, raw(w.t, text))
	return a
}

// answer takes what came of an update.
type answer struct {
	rejected, err error
	done          bool
}

func (a *answer) Accept()                   {}
func (a *answer) Reject(err error)          { a.rejected = err }
func (a *answer) Complete(_ any, err error) { a.err, a.done = err, true }
func (a *answer) refused() (text string) {
	for _, err := range []error{a.rejected, a.err} {
		if err != nil {
			text = err.Error()
		}
	}
	return text
}

func (w *world) status() (s workflows.Status) {
	w.t.Helper()
	w.query(workflows.QueryState, &s)
	return s
}

func (w *world) pending() (p []workflows.Pending) {
	w.t.Helper()
	w.query(workflows.QueryPending, &p)
	return p
}

func (w *world) query(name string, into any) {
	w.t.Helper()
	v, err := w.env.QueryWorkflow(name)
	if err == nil {
		err = v.Get(into)
	}
	if err != nil {
		w.t.Fatalf("query %s: %v", name, err)
	}
}

// whenWaiting calls f when the task waits for a person, which is when nothing else can happen.
func (w *world) whenWaiting(after time.Duration, f func()) { w.env.RegisterDelayedCallback(f, after) }

// conversation is everything that the model was told and said, one line a message.
func (w *world) conversation(l agent.Ledger) string {
	w.t.Helper()
	c, err := w.store.Tenant(l.Tenant).Conversation(w.t.Context(), l.EvidenceRefs[0].Digest)
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	for _, turn := range c.Turns {
		for _, m := range turn.Messages {
			b.WriteString(string(m.Role) + ": " + m.Text + "\n")
			for _, call := range m.Calls {
				b.WriteString("  " + string(call.ID) + " " + call.Tool + " " + call.Arguments + "\n")
			}
		}
	}
	return b.String()
}

// runs is how often a call was executed in the task's sandbox, which may be gone by now.
func (w *world) runs(call string) int {
	ids, err := w.boxes.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range w.ledgers {
		ids = append(ids, sandbox.ID(l.Ledger.WorkspaceRef.Sandbox))
	}
	n := 0
	for _, id := range ids {
		n += w.boxes.Runs(id)[sandbox.ExecID(call)]
	}
	return n
}

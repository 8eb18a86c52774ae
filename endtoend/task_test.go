package endtoend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"belay/activities"
	"belay/agent"
	"belay/events"
	"belay/workflows"
)

// task is one that was started in a world.
type task struct {
	*world
	id   string
	run  string // the first one
	goal string
}

// start starts a task with that goal. more are further fields of its input, as JSON: `"user":"ana"`.
func (w *world) start(t *testing.T, goal string, more ...string) task {
	t.Helper()
	fields := append([]string{fmt.Sprintf(`"goal":%q`, goal)}, more...)
	id := strings.ReplaceAll(goal, " ", "-")
	run, err := w.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.TaskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, workflows.TypeAgentTask, json.RawMessage("{"+strings.Join(fields, ",")+"}"))
	if err != nil {
		t.Fatal(err)
	}
	return task{world: w, id: id, run: run.GetRunID(), goal: goal}
}

// ended is how a task ended.
type ended struct {
	agent.Ledger
	Status enums.WorkflowExecutionStatus
}

// wait waits for the end of a task.
func (k task) wait(t *testing.T) (e ended) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := k.client.GetWorkflow(ctx, k.id, k.run)
	err := run.Get(ctx, &e.Ledger)
	failed, isFailure := errors.AsType[*temporal.ApplicationError](err)
	cancelled, isCancelled := errors.AsType[*temporal.CanceledError](err)
	switch {
	case isFailure:
		err = failed.Details(&e.Ledger)
	case isCancelled:
		err = cancelled.Details(&e.Ledger)
	}
	if err != nil {
		t.Fatalf("task %s left no ledger: %v", k.id, err)
	}
	e.Status = k.described(t, run.GetRunID()).GetStatus()
	return e
}

func (k task) described(t *testing.T, run string) *workflow.WorkflowExecutionInfo {
	t.Helper()
	d, err := k.client.DescribeWorkflow(t.Context(), k.id, run)
	if err != nil {
		t.Fatal(err)
	}
	return d.RawResponse.GetWorkflowExecutionInfo()
}

// doing is what the server knows of the activities that are not at their end.
func (k task) doing(t *testing.T) []*workflow.PendingActivityInfo {
	t.Helper()
	d, err := k.client.DescribeWorkflow(t.Context(), k.id, "")
	if err != nil {
		t.Fatal(err)
	}
	return d.RawResponse.GetPendingActivities()
}

func (k task) query(name string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	v, err := k.client.QueryWorkflow(ctx, k.id, "", name)
	if err != nil {
		return err
	}
	return v.Get(into)
}

func (k task) state(t *testing.T) (s workflows.Status) {
	t.Helper()
	eventually(t, "an answer of "+k.id, func() error { return k.query(workflows.QueryState, &s) })
	return s
}

// pending waits until n things of a task wait for people.
func (k task) pending(t *testing.T, n int) (p []workflows.Pending) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d things pending in %s", n, k.id), func() error {
		p = nil
		if err := k.query(workflows.QueryPending, &p); err != nil {
			return err
		}
		if len(p) != n {
			return fmt.Errorf("%d are pending", len(p))
		}
		return nil
	})
	return p
}

// asked waits until the model was asked for that turn of the task.
func (k task) asked(t *testing.T, turn int) {
	t.Helper()
	eventually(t, fmt.Sprintf("a model call for turn %d of %s", turn, k.id), func() error {
		for _, c := range k.requests(t, k.goal) {
			if c.Turn == turn {
				return nil
			}
		}
		return errors.New("not asked")
	})
}

// file waits until a file is in the task's workspace and gives its path on the host.
func (k task) file(t *testing.T, name string) (path string) {
	t.Helper()
	eventually(t, name+" in the workspace of "+k.id, func() error {
		var s workflows.Status
		if err := k.query(workflows.QueryState, &s); err != nil {
			return err
		}
		if s.Sandbox == "" {
			return errors.New("it has no sandbox yet")
		}
		path = k.workspace(s.Sandbox, name)
		return exists(path)
	})
	return path
}

// signal sends a control message.
func (k task) signal(t *testing.T, verb agent.Verb, format string, args ...any) {
	t.Helper()
	if err := k.client.SignalWorkflow(t.Context(), k.id, "", string(verb), json.RawMessage(fmt.Sprintf(format, args...))); err != nil {
		t.Fatal(err)
	}
}

// approve approves the one call that waits.
func (k task) approve(t *testing.T) {
	t.Helper()
	p := k.pending(t, 1)[0]
	k.signal(t, agent.VerbApprove, `{"call":%q,"digest":%q,"by":"ana"}`, p.Call, p.Digest.Short())
}

// history reads one run of the task; without a run, the last.
func (k task) history(t *testing.T, run string) (all []*history.HistoryEvent) {
	t.Helper()
	iter := k.client.GetWorkflowHistory(t.Context(), k.id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// executions counts how often the execution of a call was asked for in a run, and in those that continue it.
func (k task) executions(t *testing.T, run string, call agent.CallID) (n int) {
	t.Helper()
	for _, e := range k.history(t, run) {
		a := e.GetActivityTaskScheduledEventAttributes()
		var in activities.ExecuteInput
		if next := e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); next != "" {
			n += k.executions(t, next, call)
		}
		if a.GetActivityType().GetName() != "Execute" {
			continue
		}
		if err := converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &in); err != nil {
			t.Fatal(err)
		}
		if in.Call == call {
			n++
		}
	}
	return n
}

// events reads what happened in the task that began with that run.
func (k task) events(t *testing.T, run string) (all []agent.Event) {
	t.Helper()
	found, err := k.reader().Find(t.Context(), k.id, run)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range k.reader().Read(t.Context(), found) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func ofType(all []agent.Event, kind agent.EventType) (some []agent.Event) {
	for _, e := range all {
		if e.Type == kind {
			some = append(some, e)
		}
	}
	return some
}

// stored waits for the ledger of a run in the store, sealed and all.
func (k task) stored(t *testing.T, run agent.RunID) (l agent.Ledger) {
	t.Helper()
	eventually(t, fmt.Sprintf("the sealed ledger of %s, run %s, in the store", k.id, run), func() (err error) {
		l, err = activities.ReadLedger(t.Context(), k.tenant(), activities.LedgerRecord(k.id, run))
		if err == nil && !slices.ContainsFunc(l.EvidenceRefs, func(e agent.Evidence) bool { return e.Kind == "events" }) {
			err = errors.New("not sealed yet")
		}
		return err
	})
	return l
}

// ledgers gives the run ids of the ledgers in the store.
func (k task) ledgers(t *testing.T) (runs []agent.RunID) {
	t.Helper()
	all, err := events.Ledgers(t.Context(), k.tenant(), k.id)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		runs = append(runs, l.RunID)
	}
	return runs
}

// boughtOnce holds the model's side against the task: every turn was answered once, and asked for once, but for turns that
// may have been asked for once more because whoever asked was killed.
func (k task) boughtOnce(t *testing.T, repeated ...int) {
	t.Helper()
	turns := k.requests(t, k.goal)
	if len(turns) == 0 {
		t.Errorf("%s: the model was never asked", k.goal)
	}
	for _, c := range turns {
		most := 1
		if slices.Contains(repeated, c.Turn) {
			most = 2
		}
		if c.Answered != 1 || c.Requests > most {
			t.Errorf("%s: turn %d: %d requests, %d of them answered; want at most %d, and one answer", k.goal, c.Turn, c.Requests, c.Answered, most)
		}
	}
}

// contextOf is a context for what is done after a test, whose own is over.
func contextOf(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }

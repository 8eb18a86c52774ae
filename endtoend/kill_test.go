package endtoend_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"

	"belay/agent"
	"belay/sandbox/process/wire"
	"belay/workflows"
)

// checked are the acceptance checks of every task that gets killed.
const checked = `"acceptance":{"checks":["test -s runs.txt","test ! -e legacy"]}`

// once is a check that waits, and passes if it was begun once.
const once = `echo check >> build/checks.txt; until [ -e build/go ]; do sleep 0.05; done; [ "$(cat build/checks.txt)" = check ]`

// outcome is what must not depend on what was killed meanwhile.
type outcome struct {
	Status   enums.WorkflowExecutionStatus
	Reason   agent.TerminationReason
	State    agent.ExecutionState
	Base     agent.Digest
	Tree     agent.Digest
	Proposed string
	Checks   []agent.CheckResult
	Steps    int
	Calls    int
}

func outcomeOf(e ended) outcome {
	return outcome{
		Status: e.Status, Reason: e.TerminationReason, State: e.ExecutionState, Base: e.WorkspaceRef.Base, Tree: e.WorkspaceRef.Tree,
		Proposed: e.ProposedOutcome, Checks: e.Checks, Steps: e.Usage.Steps, Calls: e.Usage.ToolCalls,
	}
}

// points are four tasks of one kind, each at another point when the blow falls.
type points struct {
	model, command, approval, check task
	commandDir                      string // where the command waits for its file
}

// all are the tasks that end alike.
func (p points) all() []task { return []task{p.model, p.command, p.approval} }

// reach starts the tasks and waits until each is where it shall be. The model call comes last: it ends by itself.
func reach(t *testing.T, w *world, blow string) points {
	t.Helper()
	p := points{
		command:  w.start(t, "kill in the command: "+blow, checked),
		approval: w.start(t, "kill while an approval waits: "+blow, checked),
		check:    w.start(t, "kill in a check: "+blow, fmt.Sprintf(`"acceptance":{"checks":[%q]}`, once)),
	}
	p.check.approve(t)
	p.check.file(t, "build/checks.txt")
	p.commandDir = p.command.file(t, "build")
	p.approval.pending(t, 1)
	p.model = w.start(t, "kill in the model call: "+blow, checked)
	p.model.asked(t, 1)
	return p
}

// TestKills shows that a task ends the same whatever is killed while it runs. The server is killed too, so it is one of
// its own.
func TestKills(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := newWorld(t, s, "default", play)
	control := w.start(t, "kill nothing", checked)
	control.approve(t)
	want := outcomeOf(control.wait(t))
	if want.Reason != agent.ReasonFinalAnswer || len(want.Checks) != 2 {
		t.Fatalf("the undisturbed run ended with %+v", want)
	}
	control.boughtOnce(t)

	for _, c := range []struct {
		name  string
		again bool // the model call under way is lost, and asked for again
		blow  func(t *testing.T, p points)
	}{
		{"worker", true, func(t *testing.T, p points) {
			w.worker.Kill()
			finishAlone(t, p)
			restart(t, w)
		}},
		{"server", false, func(t *testing.T, p points) {
			s.Kill()
			finishAlone(t, p)
			restartServer(t, w)
		}},
		{"both", true, func(t *testing.T, p points) {
			w.worker.Kill()
			s.Kill()
			restartServer(t, w)
			restart(t, w)
			letGo(t, p.command)
		}},
		{"worker, with a SIGTERM", true, func(t *testing.T, p points) {
			if err := w.worker.Stop(); err != nil {
				t.Error(err)
			}
			if err := w.worker.Err(); err != nil {
				t.Errorf("the worker ended with %v, want exit code 0", err)
			}
			handedBack(t, p.model)
			handedBack(t, p.command)
			restart(t, w)
			letGo(t, p.command)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := reach(t, w, strings.ReplaceAll(c.name, ",", ""))
			c.blow(t, p)
			for _, k := range p.all() {
				k.approve(t)
			}
			letGo(t, p.check)
			if e := p.check.wait(t); e.TerminationReason != agent.ReasonFinalAnswer || len(e.Checks) != 1 || e.Checks[0].Status != agent.CallOK {
				t.Errorf("%s ended with %s and checks %v", p.check.goal, e.TerminationReason, e.Checks)
			}
			for _, k := range p.all() {
				if diff := cmp.Diff(want, outcomeOf(k.wait(t))); diff != "" {
					t.Errorf("%s ended in another way than the undisturbed task (-want +got):\n%s", k.goal, diff)
				}
			}
			p.model.boughtOnce(t, 1)
			if n := p.model.requests(t, p.model.goal)[0].Requests; c.again && n != 2 {
				t.Errorf("the killed model call was asked for %d times, want twice: it was not under way", n)
			}
			p.command.boughtOnce(t)
			p.approval.boughtOnce(t)
		})
	}
	t.Run("terminated", func(t *testing.T) { terminated(t, w) })
}

// letGo lets the waiting command end, of which there must be one.
func letGo(t *testing.T, k task) {
	t.Helper()
	path := k.file(t, "build")
	if err := os.WriteFile(filepath.Join(path, "go"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
}

// finishAlone lets the waiting command end, and waits until it has: nobody but its supervisor is there to see it.
func finishAlone(t *testing.T, p points) {
	t.Helper()
	let := filepath.Join(p.commandDir, "go")
	if err := os.WriteFile(let, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the command without a worker", func() error { return absent(let) })
}

func restart(t *testing.T, w *world) {
	t.Helper()
	if err := w.worker.Restart(); err != nil {
		t.Fatal(err)
	}
}

func restartServer(t *testing.T, w *world) {
	t.Helper()
	if err := w.server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// handedBack holds a task to having no activity that anybody works at, and one that waits for the next worker, though no
// heartbeat has run out.
func handedBack(t *testing.T, k task) {
	t.Helper()
	doing := k.doing(t)
	if len(doing) != 1 {
		t.Fatalf("%s: %d activities, want 1", k.goal, len(doing))
	}
	a := doing[0]
	if a.GetState() != enums.PENDING_ACTIVITY_STATE_SCHEDULED || a.GetAttempt() != 2 {
		t.Errorf("%s: %s is %s at attempt %d, want it handed back", k.goal, a.GetActivityType().GetName(), a.GetState(), a.GetAttempt())
	}
	if wait := time.Until(a.GetScheduledTime().AsTime()); wait > time.Second {
		t.Errorf("%s: the next attempt waits for another %s, want it at once", k.goal, wait)
	}
	if f := a.GetLastFailure(); f.GetMessage() != "the worker is stopping" {
		t.Errorf("%s: the attempt before ended with %q", k.goal, f.GetMessage())
	}
}

// terminated shows that a task that nobody could end properly gets its ledger, and its sandbox is removed.
func terminated(t *testing.T, w *world) {
	k := w.start(t, "kill with terminate", `"acceptance":{"reviewers":["demo"]}`)
	k.pending(t, 1)
	box := k.state(t).Sandbox
	w.temporal(t, "workflow", "terminate", "--workflow-id", k.id, "--reason", "a test").must(t)
	eventually(t, "the terminated task in the list", func() error {
		out := w.temporal(t, "workflow", "list", "--query", `WorkflowType="AgentTask" AND ExecutionStatus="Terminated"`).must(t)
		if !strings.Contains(out, k.id) {
			return errors.New("not listed")
		}
		return nil
	})
	w.temporal(t, "schedule", "trigger", "--schedule-id", workflows.ReconcileSchedule).must(t)
	l := k.stored(t, agent.RunID(k.run))
	if l.Usage.Steps == 0 || l.Usage.CostUSD == 0 || l.WorkspaceRef.Base == "" || l.Versions.Policy == "" || !strings.HasSuffix(l.Error, ": a test") {
		t.Errorf("the ledger does not tell what was done until then, and why it ended: %+v", l)
	}
	if l.TerminationReason != agent.ReasonTerminated || l.Decision != agent.Pending || l.Goal != k.goal {
		t.Errorf("ledger = %+v", l)
	}
	ledger := task{world: w, id: agent.LedgerWorkflowID(k.id, agent.RunID(k.run))}
	if got := ledger.described(t, "").GetStatus(); got != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		t.Errorf("the ledger's workflow is %s, want it to wait for the decision", got)
	}
	if err := exists(w.workspace(box, "")); err != nil {
		t.Errorf("the sandbox went before the reaper came: %v", err)
	}
	w.worker.Kill()
	restart(t, w)
	eventually(t, "the end of the sandbox of a terminated task", func() error { return absent(w.workspace(box, "")) })
}

// testLostSandbox kills the supervisor of a running command: the sandbox is lost, and its work is done again from the last
// checkpoint.
func testLostSandbox(t *testing.T, w *world) {
	k := w.start(t, "lose the sandbox")
	loseSandbox(t, k, "build")
	letGo(t, k)
	e := k.wait(t)
	if e.TerminationReason != agent.ReasonFinalAnswer || !strings.HasSuffix(e.WorkspaceRef.Sandbox, "-g2") {
		t.Errorf("ended with %s in sandbox %s, want a final answer in generation 2", e.TerminationReason, e.WorkspaceRef.Sandbox)
	}
	if p := w.patch(t, e.Ledger); !strings.Contains(p, "@@ -0,0 +1,2 @@\n+one\n+two\n") {
		t.Errorf("each command shall have run once in effect:\n%s", p)
	}
	if !strings.Contains(e.ProposedOutcome, "The sandbox was lost") {
		t.Errorf("the model was told %q", e.ProposedOutcome)
	}
	if e.Usage.ToolCalls != 2 {
		t.Errorf("%d tool calls, want the void one not to count", e.Usage.ToolCalls)
	}
	if n := len(ofType(k.events(t, ""), agent.EventSandboxLost)); n != 1 {
		t.Errorf("%d events SANDBOX_LOST, want 1", n)
	}
	k.boughtOnce(t)
}

// testLostInACheck loses the sandbox while an acceptance check runs: it runs again on what the agent left.
func testLostInACheck(t *testing.T, w *world) {
	k := w.start(t, "kill the sandbox of a check", fmt.Sprintf(`"acceptance":{"checks":[%q]}`, once))
	k.approve(t)
	loseSandbox(t, k, "build/checks.txt")
	k.file(t, "build/checks.txt")
	letGo(t, k)
	e := k.wait(t)
	if e.TerminationReason != agent.ReasonFinalAnswer || len(e.Checks) != 1 || e.Checks[0].Status != agent.CallOK {
		t.Errorf("ended with %s and checks %v: %s", e.TerminationReason, e.Checks, e.Error)
	}
	if !strings.Contains(w.patch(t, e.Ledger), "b/runs.txt") {
		t.Error("the agent's work is lost")
	}
}

// loseSandbox kills the supervisor of a task's sandbox once a file is there, and waits until the task has another sandbox.
func loseSandbox(t *testing.T, k task, file string) {
	t.Helper()
	k.file(t, file)
	box := k.state(t).Sandbox
	var supervisor wire.Process
	if err := wire.ReadFile(filepath.Join(k.sandboxes(), "sandboxes", box, wire.SupervisorFile), &supervisor); err != nil {
		t.Fatal(err)
	}
	if err := supervisor.Kill(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another sandbox", func() error {
		if k.state(t).Sandbox == box {
			return errors.New("it still has the lost one")
		}
		return nil
	})
}

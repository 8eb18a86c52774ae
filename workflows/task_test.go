package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"belay/agent"
)

// writes makes two files in the workspace and says that it is done.
const writes = `
rules:
  - when: {turn: 1}
    reply:
      text: I write it.
      calls: [{tool: write_file, arguments: {path: a.txt, content: "hello\n"}}]
  - when: {turn: 2}
    reply: {calls: [{tool: read_file, arguments: {path: a.txt}}]}
  - reply: {text: The file says hello.}
`

const asksAPerson = `
rules:
  - when: {turn: 1}
    reply: {calls: [{tool: ask_human, arguments: {question: "Which branch?"}}]}
  - reply: {text: "You said: {{.LastTool}}"}
`

const summarizes = `
rules:
  - when: {with_tools: false}
    reply: {text: I got this far.}
  - reply: {calls: [{tool: write_file, arguments: {path: "f{{.Turn}}.txt", content: "{{.Turn}}"}}]}
`

// deniedModel wants to do what the shipped policy forbids, each time in another way.
const deniedModel = `
rules:
  - reply: {calls: [{tool: shell, arguments: {command: "echo {{.Turn}} > /etc/motd"}}]}
`

// parallelReads asks for several calls at once, of which some conflict.
const parallelReads = `
rules:
  - when: {turn: 1}
    reply:
      calls:
        - {tool: shell, arguments: {command: echo 1, reads_only: true}}
        - {tool: shell, arguments: {command: echo 2, reads_only: true}}
        - {tool: write_file, arguments: {path: a.txt, content: a}}
        - {tool: read_file, arguments: {path: a.txt}}
  - reply: {text: "{{.LastTool}}"}
`

func TestAFinalAnswerEndsTheTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, writes)
	l := w.run(`{"goal":"write a file","labels":{"team":"a"}}`)
	if l.TerminationReason != agent.ReasonFinalAnswer || l.ExecutionState != agent.StateFinished {
		t.Fatalf("ended with %s (%s), want final_answer: %s", l.TerminationReason, l.ExecutionState, l.Error)
	}
	if l.ProposedOutcome != "The file says hello." || l.Labels["team"] != "a" || l.Decision != agent.DecisionNone {
		t.Errorf("ledger = %+v", l)
	}
	if l.Usage.Steps != 3 || l.Usage.ToolCalls != 2 || l.Usage.CostUSD <= 0 || l.Usage.InputTokens <= 0 {
		t.Errorf("usage = %+v, want 3 steps, 2 tool calls and what they cost", l.Usage)
	}
	if got, err := w.store.Tenant("default").ReadTreeFile(t.Context(), l.WorkspaceRef.Tree, "a.txt"); err != nil || string(got) != "hello\n" {
		t.Errorf("a.txt in the last checkpoint = %q, %v", got, err)
	}
	if len(w.ledgers) != 1 {
		t.Errorf("%d ledgers started, want 1", len(w.ledgers))
	}
	if left, _ := w.boxes.List(t.Context()); len(left) != 0 {
		t.Errorf("sandboxes left: %v", left)
	}
}

// Every end has its own reason. What the model does is in the scenario, what bounds it in the task.
func TestEndings(t *testing.T) {
	t.Parallel()
	const same = `
rules:
  - reply: {calls: [{tool: list_files, arguments: {path: .}}]}
`
	const busy = `
rules:
  - reply: {calls: [{tool: write_file, arguments: {path: "f{{.Turn}}.txt", content: "{{.Turn}}"}}]}
`
	cases := []struct {
		name, scenario, task string
		reason               agent.TerminationReason
		limit                agent.LimitName
		steps, calls         int
	}{
		{"max_steps", busy, `{"goal":"g","limits":{"max_steps":3}}`, agent.ReasonMaxSteps, agent.LimitSteps, 3, 3},
		{"max_tool_calls", busy, `{"goal":"g","limits":{"max_tool_calls":2}}`, agent.ReasonBudgetExhausted, agent.LimitToolCalls, 3, 2},
		{"max_tokens", busy, `{"goal":"g","limits":{"max_tokens":50}}`, agent.ReasonBudgetExhausted, agent.LimitTokens, 0, 0},
		{"max_cost_usd", busy, `{"goal":"g","limits":{"max_cost_usd":0.000001}}`, agent.ReasonBudgetExhausted, agent.LimitCost, 0, 0},
		{"same call and result", same, `{"goal":"g"}`, agent.ReasonStuck, "", 4, 4},
		{"empty replies", `rules: [{reply: {}}]`, `{"goal":"g"}`, agent.ReasonStuck, "", 3, 0},
		{"truncated replies", `rules: [{reply: {text: "cut off", finish: length}}]`, `{"goal":"g"}`, agent.ReasonStuck, "", 3, 0},
		{"filtered replies", `rules: [{reply: {text: "…", finish: content_filter}}]`, `{"goal":"g"}`, agent.ReasonStuck, "", 3, 0},
		{"bad arguments", `rules: [{reply: {calls: [{tool: shell, raw_arguments: "{not json"}]}}]`, `{"goal":"g"}`, agent.ReasonStuck, "", 3, 0},
		{"unknown tool", `rules: [{reply: {calls: [{tool: telport, arguments: {}}]}}]`, `{"goal":"g"}`, agent.ReasonStuck, "", 3, 0},
		{"denied calls", `rules: [{reply: {calls: [{tool: write_file, arguments: {path: /etc/passwd, content: x}}]}}]`, `{"goal":"g"}`, agent.ReasonStuck, "", 3, 0},
		{"forbidden calls", deniedModel, `{"goal":"g"}`, agent.ReasonPolicyDenied, "", 3, 0},
		{"refusal", `rules: [{reply: {refusal: I will not.}}]`, `{"goal":"g"}`, agent.ReasonFatalError, "", 1, 0},
		{"endpoint fails", `rules: [{fault: {status: 500}}]`, `{"goal":"g"}`, agent.ReasonFatalError, "", 0, 0},
		{"key refused", `rules: [{fault: {status: 401}}]`, `{"goal":"g"}`, agent.ReasonPolicyDenied, "", 0, 0},
		{"max_retries", `rules: [{fault: {status: 500}}]`, `{"goal":"g","limits":{"max_retries":1}}`, agent.ReasonFatalError, agent.LimitRetries, 0, 0},
		{"model_timeout", `rules: [{reply: {text: x}, fault: {stall_after: 0}}]`, `{"goal":"g","limits":{"model_timeout":"50ms"}}`, agent.ReasonTimeout, agent.LimitModelTimeout, 0, 0},
		{"checks", `rules: [{reply: {text: done}}]`, `{"goal":"g","acceptance":{"checks":["test -e missing"]}}`, agent.ReasonChecksFailed, "", 3, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.scenario)
			l := w.run(c.task)
			if l.TerminationReason != c.reason || l.Limit != c.limit {
				t.Fatalf("ended with %s at limit %q, want %s at %q: %s", l.TerminationReason, l.Limit, c.reason, c.limit, l.Error)
			}
			if l.Usage.Steps != c.steps || l.Usage.ToolCalls != c.calls {
				t.Errorf("%d steps and %d calls, want %d and %d", l.Usage.Steps, l.Usage.ToolCalls, c.steps, c.calls)
			}
		})
	}
}

// asks wants to delete a folder, which the shipped policy puts before a person, and then finishes.
const asks = `
rules:
  - when: {turn: 1}
    reply: {calls: [{tool: write_file, arguments: {path: legacy/old.txt, content: old}}]}
  - when: {turn: 2}
    reply: {calls: [{tool: shell, arguments: {command: rm -rf legacy}}]}
  - reply: {text: "Done: {{.LastTool}} / {{.LastUser}}"}
`

func TestAnApprovalIsForExactlyOneAction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asks)
	var refusals []string
	w.whenWaiting(time.Minute, func() {
		p := w.pending()
		if len(p) != 1 || p[0].Call != "c2" || p[0].Kind != "approval" || !strings.Contains(p[0].Arguments, "rm -rf legacy") {
			t.Errorf("pending = %+v", p)
			w.env.CancelWorkflow()
			return
		}
		if want := fmt.Sprintf(`"digest":"%s"`, p[0].Digest.Short()); !strings.Contains(p[0].Command, want) {
			t.Errorf("command %q lacks %s", p[0].Command, want)
		}
		for _, bad := range []struct {
			verb agent.Verb
			text string
		}{
			{agent.VerbApprove, `{"call":"c2","digest":"000000000000","by":"ana"}`},
			{agent.VerbApprove, `{"call":"c1","digest":"` + string(p[0].Digest) + `","by":"ana"}`},
			{agent.VerbApprove, `{"call":"c9","digest":"` + string(p[0].Digest) + `","by":"ana"}`},
			{agent.VerbApprove, `{"call":"c2","digest":"` + string(p[0].Digest[:11]) + `","by":"ana"}`},
			{agent.VerbApprove, `{"call":"c2","digest":"` + string(p[0].Digest) + `"}`},
			{agent.VerbAnswer, `{"question":"q1","by":"ana","text":"yes"}`},
			{agent.VerbRaise, `{"by":"ana","limits":{"max_steps":500}}`},
			{agent.VerbResolve, `{"call":"c2","by":"ana","outcome":"happened"}`},
			{agent.VerbResume, `{"by":"ana"}`},
		} {
			w.signal(bad.verb, bad.text)
			refusals = append(refusals, bad.text)
		}
		w.signal(agent.VerbMessage, `{"by":"ana","text":"approved, go ahead"}`)
	})
	w.whenWaiting(2*time.Minute, func() {
		if s := w.status(); len(s.Refused) != len(refusals) {
			t.Errorf("%d refusals on record, want %d: %+v", len(s.Refused), len(refusals), s.Refused)
		}
		if n := w.runs("c2"); n != 0 {
			t.Errorf("the call ran %d times before it was approved", n)
		}
		d := string(w.pending()[0].Digest)
		w.signal(agent.VerbApprove, `{"call":"c2","digest":"`+d[:12]+`","by":"ana"}`)
		w.signal(agent.VerbApprove, `{"call":"c2","digest":"`+d[:12]+`","by":"eve"}`)
	})
	l := w.run(`{"goal":"clean up"}`)
	if l.TerminationReason != agent.ReasonFinalAnswer {
		t.Fatalf("ended with %s: %s", l.TerminationReason, l.Error)
	}
	if n := w.runs("c2"); n != 1 {
		t.Errorf("the approved call ran %d times, want once", n)
	}
	if !strings.Contains(w.conversation(l), "ana says: approved, go ahead") {
		t.Errorf("the message did not reach the model:\n%s", w.conversation(l))
	}
}

func TestReviewersDecide(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, say string
		verb      agent.Verb
		ran       int
		told      string
	}{
		{"approve", `{"call":"c2","digest":"%s","by":"ana"}`, agent.VerbApprove, 1, ""},
		{"reject", `{"call":"c2","digest":"%s","by":"ana","feedback":"keep it"}`, agent.VerbReject, 0, "rejected this call and it did not run. keep it"},
		{"edit", `{"call":"c2","digest":"%s","by":"ana","arguments":{"command":"rm legacy/old.txt"}}`, agent.VerbEdit, 1, `changed the arguments of call c2 before it ran, to: {"command":"rm legacy/old.txt"}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, asks)
			w.whenWaiting(time.Minute, func() { w.signal(c.verb, fmt.Sprintf(c.say, w.pending()[0].Digest)) })
			l := w.run(`{"goal":"clean up"}`)
			if l.TerminationReason != agent.ReasonFinalAnswer {
				t.Fatalf("ended with %s: %s", l.TerminationReason, l.Error)
			}
			if n := w.runs("c2"); n != c.ran {
				t.Errorf("ran %d times, want %d", n, c.ran)
			}
			if got := w.conversation(l); !strings.Contains(got, c.told) {
				t.Errorf("the model was not told %q:\n%s", c.told, got)
			}
		})
	}
}

func TestAnEditIsJudgedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asks)
	w.whenWaiting(time.Minute, func() {
		w.signal(agent.VerbEdit, fmt.Sprintf(`{"call":"c2","digest":"%s","by":"ana","arguments":{"command":"echo x > /etc/passwd"}}`, w.pending()[0].Digest))
		w.signal(agent.VerbEdit, fmt.Sprintf(`{"call":"c2","digest":"%s","by":"ana","arguments":{"comand":"ls"}}`, w.pending()[0].Digest))
	})
	w.whenWaiting(2*time.Minute, func() {
		if p := w.pending(); len(p) != 1 {
			t.Errorf("pending = %+v, want the model's own call to wait on", p)
		}
		w.signal(agent.VerbReject, fmt.Sprintf(`{"call":"c2","digest":"%s","by":"ana"}`, w.pending()[0].Digest))
	})
	l := w.run(`{"goal":"clean up"}`)
	if n := w.runs("c2"); n != 0 || l.TerminationReason != agent.ReasonFinalAnswer {
		t.Errorf("ran %d times, ended with %s", n, l.TerminationReason)
	}
}

func TestAnApprovalThatNobodyGivesEscalates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asks)
	l := w.run(`{"goal":"clean up","limits":{"approval_timeout":"1h"}}`)
	if l.TerminationReason != agent.ReasonEscalated || l.Limit != agent.LimitApproval {
		t.Errorf("ended with %s at %s, want escalated at approval_timeout", l.TerminationReason, l.Limit)
	}
	if n := w.runs("c2"); n != 0 {
		t.Errorf("the call ran %d times", n)
	}
}

func TestAQuestionIsAnsweredByAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksAPerson)
	w.whenWaiting(time.Minute, func() {
		if p := w.pending(); len(p) != 1 || p[0].Question != "q1" || p[0].Text != "Which branch?" {
			t.Errorf("pending = %+v", p)
		}
		w.signal(agent.VerbAnswer, `{"question":"q1","by":"ana","text":"main"}`)
	})
	if l := w.run(`{"goal":"ask"}`); l.ProposedOutcome != "You said: main" {
		t.Errorf("outcome = %q, want the answer", l.ProposedOutcome)
	}
}

func TestOnLimitAskParksUntilRaised(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
rules:
  - when: {turn: 4}
    reply: {text: done}
  - reply: {calls: [{tool: write_file, arguments: {path: "f{{.Turn}}.txt", content: "{{.Turn}}"}}]}
`)
	w.whenWaiting(time.Minute, func() {
		if p := w.pending(); len(p) != 1 || p[0].Limit != agent.LimitSteps {
			t.Errorf("pending = %+v", p)
		}
		w.signal(agent.VerbRaise, `{"by":"ana","limits":{"max_steps":100000}}`) // above the ceiling
		w.signal(agent.VerbRaise, `{"by":"ana","limits":{"max_steps":10}}`)
	})
	l := w.run(`{"goal":"g","limits":{"max_steps":2,"on_limit":"ask"}}`)
	if l.TerminationReason != agent.ReasonFinalAnswer || l.Usage.Steps != 4 {
		t.Errorf("ended with %s after %d steps: %s", l.TerminationReason, l.Usage.Steps, l.Error)
	}
}

func TestOnLimitSummarizeAsksOnceMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, summarizes)
	l := w.run(`{"goal":"g","limits":{"max_steps":2,"on_limit":"summarize"}}`)
	if l.TerminationReason != agent.ReasonMaxSteps || l.ProposedOutcome != "I got this far." {
		t.Errorf("ended with %s and %q", l.TerminationReason, l.ProposedOutcome)
	}
}

func TestPauseHoldsActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asks)
	w.whenWaiting(time.Minute, func() {
		w.signal(agent.VerbPause, `{"by":"ana","reason":"lunch"}`)
		w.signal(agent.VerbApprove, fmt.Sprintf(`{"call":"c2","digest":"%s","by":"ana"}`, w.pending()[0].Digest))
	})
	w.whenWaiting(time.Hour, func() {
		if n := w.runs("c2"); n != 0 {
			t.Errorf("the call ran while the task was paused")
		}
		if s := w.status(); s.State != agent.StatePaused || s.Paused.By != "ana" {
			t.Errorf("status = %+v", s)
		}
		w.signal(agent.VerbResume, `{"by":"ana"}`)
	})
	if l := w.run(`{"goal":"clean up"}`); l.TerminationReason != agent.ReasonFinalAnswer || w.runs("c2") != 1 {
		t.Errorf("ended with %s, ran %d times", l.TerminationReason, w.runs("c2"))
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asks)
	w.whenWaiting(time.Minute, w.env.CancelWorkflow)
	l := w.run(`{"goal":"clean up"}`)
	if l.TerminationReason != agent.ReasonCancelled || l.ExecutionState != agent.StateCancelled {
		t.Errorf("ended with %s (%s)", l.TerminationReason, l.ExecutionState)
	}
	if len(w.ledgers) != 1 {
		t.Errorf("%d ledgers started, want 1", len(w.ledgers))
	}
}

func TestTheTaskTimeoutCountsWorkOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asks)
	w.whenWaiting(5*time.Hour, func() {
		w.signal(agent.VerbApprove, fmt.Sprintf(`{"call":"c2","digest":"%s","by":"ana"}`, w.pending()[0].Digest))
	})
	if l := w.run(`{"goal":"clean up","limits":{"task_timeout":"30m"}}`); l.TerminationReason != agent.ReasonFinalAnswer {
		t.Errorf("ended with %s, want the wait for a person not to count: %s", l.TerminationReason, l.Error)
	}
}

func TestBadInputFailsBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ task, want string }{
		{`{"gaol":"x"}`, `gaol: unknown field; did you mean "goal"?`},
		{`{"goal":"x","agent":"nobody"}`, `agent: "nobody"`},
		{`{"goal":"x","workspace":{"source":"../deploy"}}`, `workspace.source`},
		{`{"goal":"x","limits":{"max_steps":1000000}}`, `limits.max_steps`},
		{`{"goal":"x","acceptance":{"checks":["rm -rf /"]}}`, `acceptance.checks[0]`},
	} {
		w := newWorld(t, `rules: [{reply: {text: done}}]`)
		w.env.ExecuteWorkflow("AgentTask", raw(t, c.task))
		err := w.env.GetWorkflowError()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %s", c.task, err, c.want)
		}
		if n := len(w.model.Requests()); n != 0 {
			t.Errorf("%s: the model was asked %d times", c.task, n)
		}
	}
}

func TestAnUpdateTellsItsSenderWhyItIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asks)
	w.whenWaiting(time.Minute, func() {
		d := w.pending()[0].Digest
		refused := []struct {
			*answer
			want string
		}{
			{w.update(agent.VerbApprove, `{"call":"c2","digest":"ab","by":"ana"}`), "digest"},
			{w.update(agent.VerbApprove, `{"call":"c2","digest":"000000000000","by":"ana"}`), "is not that of the pending action"},
			{w.update(agent.VerbResume, `{"by":"ana"}`), "the task is not paused"},
			{w.update(agent.VerbEdit, fmt.Sprintf(`{"call":"c2","digest":"%s","by":"ana","arguments":{"command":"echo x > /etc/motd"}}`, d)), "Only the workspace and /tmp may be written"},
		}
		w.whenWaiting(time.Minute, func() {
			for n, a := range refused {
				if got := a.refused(); !strings.Contains(got, a.want) {
					t.Errorf("update %d was answered with %q, want %q", n, got, a.want)
				}
			}
			ok := w.update(agent.VerbApprove, fmt.Sprintf(`{"call":"c2","digest":"%s","by":"ana"}`, d))
			w.whenWaiting(0, func() {
				if got := ok.refused(); got != "" || !ok.done {
					t.Errorf("the approval was answered with %q", got)
				}
			})
		})
	})
	if l := w.run(`{"goal":"clean up"}`); l.TerminationReason != agent.ReasonFinalAnswer || w.runs("c2") != 1 {
		t.Errorf("ended with %s, ran %d times", l.TerminationReason, w.runs("c2"))
	}
}

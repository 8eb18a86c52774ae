package events

import (
	"cmp"
	"slices"
	"strings"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/history/v1"

	"belay/activities"
	"belay/agent"
)

// The activities that tell something beside their notes, by the names of their methods.
const (
	callModel      = "CallModel"
	gate           = "Gate"
	execute        = "Execute"
	checkpoint     = "Checkpoint"
	acquireSandbox = "AcquireSandbox"
	runChecks      = "RunChecks"
)

// notes tells the facts that an input carries.
func (p *projector) notes(input *common.Payloads) {
	var in struct {
		Notes []agent.Note `json:"notes"`
	}
	if !decode(input, &in) {
		return
	}
	for _, n := range in.Notes {
		p.step = max(p.step, n.Step)
		p.add(agent.Event{Time: n.Time.UTC(), Step: n.Step, Type: n.Type, Fields: plain(n.Fields)})
	}
}

func (p *projector) scheduled(e *history.HistoryEvent) {
	s := e.GetActivityTaskScheduledEventAttributes()
	p.notes(s.GetInput())
	var in struct {
		Step  int          `json:"step"`
		Call  agent.CallID `json:"call"`
		Round int          `json:"round"`
	}
	decode(s.GetInput(), &in)
	p.step = max(p.step, in.Step)
	a := activity{kind: s.GetActivityType().GetName(), step: p.step, call: in.Call, round: in.Round}
	p.open[e.GetEventId()] = a
	switch a.kind {
	case callModel:
		clear(p.calls)
		p.invoked(e, s.GetInput())
	case execute:
		p.starting(e, a, s.GetInput())
	case runChecks:
		p.tell(e, agent.EventToolStarted, map[string]any{"tool": "checks", "round": in.Round})
	}
}

func (p *projector) invoked(e *history.HistoryEvent, input *common.Payloads) {
	var in activities.ModelInput
	decode(input, &in)
	p.tell(e, agent.EventModelInvoked, map[string]any{
		"head": cmp.Or(in.Head, p.head), "results": len(in.Results), "said": len(in.Said), "said_by": speakers(in.Said), "no_tools": in.NoTools,
	})
}

// speakers are the people among those who speak to the model, each once: a person's message begins with the name. What the
// runtime says has no name.
func speakers(said []string) (by []string) {
	for _, s := range said {
		name, _, ok := strings.Cut(s, " says: ")
		if ok && agent.ValidName(name) && !slices.Contains(by, name) {
			by = append(by, name)
		}
	}
	return by
}

func (p *projector) starting(e *history.HistoryEvent, a activity, input *common.Payloads) {
	var in activities.ExecuteInput
	decode(input, &in)
	c := p.calls[a.call]
	p.tell(e, agent.EventToolStarted, map[string]any{
		"call": a.call, "tool": c.Tool, "summary": c.Summary, "digest": in.Allow, "approved_by": in.Approved, "sandbox": in.Box(),
	})
}

// started tells of the attempts before the one that came to an end: Temporal writes a start only then.
func (p *projector) started(e *history.HistoryEvent) {
	s := e.GetActivityTaskStartedEventAttributes()
	a, ok := p.open[s.GetScheduledEventId()]
	if !ok || s.GetAttempt() <= 1 && s.GetLastFailure() == nil {
		return
	}
	kind, text, _ := failureOf(s.GetLastFailure())
	p.tell(e, agent.EventTaskRetried, map[string]any{
		"activity": a.kind, "call": a.call, "attempt": s.GetAttempt(), "error": text, "error_type": kind,
	})
}

func (p *projector) completed(e *history.HistoryEvent) {
	c := e.GetActivityTaskCompletedEventAttributes()
	a, ok := p.close(c.GetScheduledEventId())
	if !ok {
		return
	}
	switch a.kind {
	case callModel:
		p.replied(e, c.GetResult())
	case execute:
		p.ran(e, a, c.GetResult())
	case checkpoint:
		var out activities.CheckpointOutput
		if decode(c.GetResult(), &out) {
			p.tell(e, agent.EventCheckpointCreated, map[string]any{"tree": out.Tree, "skipped": out.Skipped})
		}
	case acquireSandbox:
		var out activities.Acquired
		if decode(c.GetResult(), &out) {
			p.tell(e, agent.EventCheckpointCreated, map[string]any{
				"tree": out.Tree, "sandbox": out.Sandbox.ID, "generation": out.Sandbox.Generation, "level": out.Level, "warnings": out.Warnings,
			})
		}
	case runChecks:
		p.checked(e, a, c.GetResult())
	}
}

// close forgets an activity that has ended.
func (p *projector) close(scheduled int64) (activity, bool) {
	a, ok := p.open[scheduled]
	delete(p.open, scheduled)
	return a, ok
}

func (p *projector) replied(e *history.HistoryEvent, result *common.Payloads) {
	var out activities.ModelOutput
	if !decode(result, &out) {
		return
	}
	p.head = cmp.Or(out.Head, p.head)
	p.tell(e, agent.EventModelCompleted, map[string]any{
		"kind": out.Kind, "calls": callsOf(out), "text": out.Text, "limit": out.Limit, "model": out.Model, "usage": out.Usage, "head": out.Head,
	})
	if out.Condensed > 0 {
		p.tell(e, agent.EventContextCondensed, map[string]any{"results": out.Condensed})
	}
}

// callsOf is how many calls a reply asks for.
func callsOf(m activities.ModelOutput) int {
	if m.Kind == activities.ReplyCalls {
		return max(1, m.Calls)
	}
	return m.Calls
}

func (p *projector) ran(e *history.HistoryEvent, a activity, result *common.Payloads) {
	var out activities.ExecuteOutput
	if !decode(result, &out) {
		return
	}
	var exit *int
	if out.Exit != 0 || p.calls[a.call].Tool == "shell" && out.Status == agent.CallOK {
		exit = &out.Exit
	}
	p.tell(e, agent.EventToolCompleted, map[string]any{
		"call": a.call, "tool": p.calls[a.call].Tool, "status": out.Status, "exit": exit, "duration": out.Duration, "observation": out.Observation,
	})
	if out.Tree != "" {
		p.tell(e, agent.EventCheckpointCreated, map[string]any{"tree": out.Tree, "call": a.call, "skipped": out.Skipped})
	}
}

func (p *projector) checked(e *history.HistoryEvent, a activity, result *common.Payloads) {
	var out activities.ChecksOutput
	if !decode(result, &out) {
		return
	}
	status := agent.CallOK
	for _, c := range out.Checks {
		if c.Status != agent.CallOK {
			status = agent.CallFailed
		}
	}
	p.tell(e, agent.EventToolCompleted, map[string]any{"tool": "checks", "round": a.round, "status": status, "checks": out.Checks})
}

// failed tells that a model call or a tool call came to nothing. What else fails ends the task, which tells it.
func (p *projector) failed(e *history.HistoryEvent, scheduled int64, f *failure.Failure) {
	a, ok := p.close(scheduled)
	if !ok {
		return
	}
	kind, text, spent := failureOf(f)
	switch {
	case a.kind == callModel:
		p.tell(e, agent.EventModelCompleted, map[string]any{"error": text, "error_type": kind, "usage": spent})
	case a.kind == execute && kind == agent.PolicyDenied:
		p.tell(e, agent.EventPolicyDenied, map[string]any{"call": a.call, "tool": p.calls[a.call].Tool, "why": text})
	case a.kind == execute || a.kind == runChecks:
		fields := map[string]any{"call": a.call, "tool": p.calls[a.call].Tool, "error": text, "error_type": kind}
		if a.kind == runChecks {
			fields["tool"], fields["round"] = "checks", a.round
		}
		if kind == agent.Cancelled {
			fields["status"] = agent.CallCancelled
		}
		p.tell(e, agent.EventToolCompleted, fields)
	}
}

func (p *projector) cancelled(e *history.HistoryEvent, scheduled int64, details *common.Payloads) {
	p.failed(e, scheduled, &failure.Failure{
		Message:     "cancelled",
		FailureInfo: &failure.Failure_CanceledFailureInfo{CanceledFailureInfo: &failure.CanceledFailureInfo{Details: details}},
	})
}

// The names in a local activity's marker, as the SDK writes them.
const (
	localActivityMarker = "LocalActivity"
	markerData          = "data"
	markerResult        = "result"
)

// marker tells the verdicts of the gate, which is a local activity.
func (p *projector) marker(e *history.HistoryEvent) {
	m := e.GetMarkerRecordedEventAttributes()
	if m.GetMarkerName() != localActivityMarker {
		return
	}
	var data struct{ ActivityType string }
	var out activities.GateOutput
	if !decode(m.GetDetails()[markerData], &data) || data.ActivityType != gate || !decode(m.GetDetails()[markerResult], &out) {
		return
	}
	for _, v := range out.Verdicts {
		p.calls[v.Call] = called{v.Call, v.Tool, v.Summary}
		p.judged(e, v, out.Policy)
	}
}

func (p *projector) judged(e *history.HistoryEvent, v activities.Verdict, policy agent.Digest) {
	touches := v.Touches()
	p.tell(e, agent.EventToolRequested, map[string]any{
		"call": v.Call, "tool": v.Tool, "summary": v.Summary, "arguments": v.Arguments, "edited": v.Edited,
		"reads": touches.Reads, "writes": touches.Writes, "timeout": v.Timeout,
	})
	if v.Gate == activities.GateInvalid {
		p.tell(e, agent.EventToolCompleted, map[string]any{"call": v.Call, "tool": v.Tool, "status": agent.CallInvalid, "why": v.Why})
		return
	}
	t, decision := agent.EventPolicyDecided, string(v.Gate)
	switch v.Gate {
	case activities.GateDeny:
		t, decision = agent.EventPolicyDenied, agent.Deny.String()
	case activities.GateApproval:
		decision = agent.RequireApproval.String()
	}
	p.tell(e, t, map[string]any{
		"call": v.Call, "tool": v.Tool, "digest": v.Digest, "decision": decision, "effect": v.Effect, "risk": cmp.Or(v.Risk, agent.RiskHigh),
		"rules": v.Rules, "why": v.Why, "reviewers": v.Reviewers, "policy": policy,
	})
}

package activities

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"belay/agent"
)

// life is what a closed run's history tells of it. It begins with what the run before handed on.
type life struct {
	carried
	run   string           // the run whose history is read
	names map[int64]string // of activities, by the event that scheduled them
	why   string           // it ended
}

// carried is the part of a workflow's state that the ledger of a terminated run is made from.
type carried struct {
	Schema   string       `json:"schema"`
	Task     agent.Task   `json:"task"`
	Run      agent.RunID  `json:"run"`
	Prepared Prepared     `json:"prepared"`
	Sandbox  SandboxRef   `json:"sandbox"`
	Base     agent.Digest `json:"base"`
	Tree     agent.Digest `json:"tree"`
	Head     agent.Digest `json:"head"`
	Usage    agent.Usage  `json:"usage"`
	Sealed   Sealed       `json:"sealed"`
}

// read goes through a history.
func (l *life) read(events client.HistoryEventIterator) error {
	l.names = map[int64]string{}
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return err
		}
		l.event(e)
	}
	return nil
}

func (l *life) event(e *history.HistoryEvent) {
	switch {
	case e.GetWorkflowExecutionStartedEventAttributes() != nil:
		l.started(e.GetWorkflowExecutionStartedEventAttributes())
	case e.GetActivityTaskScheduledEventAttributes() != nil:
		l.names[e.GetEventId()] = e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case e.GetActivityTaskCompletedEventAttributes() != nil:
		done := e.GetActivityTaskCompletedEventAttributes()
		l.completed(l.names[done.GetScheduledEventId()], dataOf(done.GetResult()))
	case e.GetWorkflowExecutionTerminatedEventAttributes() != nil:
		t := e.GetWorkflowExecutionTerminatedEventAttributes()
		l.why = fmt.Sprintf("terminated by %s: %s", t.GetIdentity(), t.GetReason())
	case e.GetWorkflowExecutionTimedOutEventAttributes() != nil:
		l.why = "the server ended the run at its execution timeout"
	}
}

// started reads the run's input: the task itself, or the state of the run before.
func (l *life) started(s *history.WorkflowExecutionStartedEventAttributes) {
	raw := dataOf(s.GetInput())
	if err := json.Unmarshal(raw, &l.carried); err != nil || l.Schema == "" {
		l.carried = carried{Run: agent.RunID(s.GetFirstExecutionRunId())}
		if task, err := agent.DecodeTask(raw); err == nil {
			l.Task = task
		}
	}
	if s.GetOriginalExecutionRunId() != l.run {
		l.Run = agent.RunID(l.run) // after a reset
	}
}

// completed takes in what an activity gave. What can't be read is left out: the ledger then knows less.
func (l *life) completed(name string, result []byte) {
	switch name {
	case "Prepare":
		_ = json.Unmarshal(result, &l.Prepared)
		l.Head = l.Prepared.Head
	case "AcquireSandbox":
		var a Acquired
		_ = json.Unmarshal(result, &a)
		l.Sandbox, l.Tree = a.Sandbox, a.Tree
		if l.Base == "" {
			l.Base = a.Tree
		}
	case "CallModel":
		var m ModelOutput
		_ = json.Unmarshal(result, &m)
		l.Usage = l.Usage.Add(m.Spent())
		l.Head = m.Head
	case "Execute":
		var x ExecuteOutput
		_ = json.Unmarshal(result, &x)
		l.Usage.ToolCalls++
		l.keepTree(x.Tree)
	case "Checkpoint":
		var c CheckpointOutput
		_ = json.Unmarshal(result, &c)
		l.keepTree(c.Tree)
	}
}

func (l *life) keepTree(tree agent.Digest) {
	if tree != "" {
		l.Tree = tree
	}
}

func dataOf(p *common.Payloads) []byte {
	if len(p.GetPayloads()) == 0 {
		return nil
	}
	return p.GetPayloads()[0].GetData()
}

package agent

import (
	"encoding/json"
	"maps"
	"time"
)

// EventType names one kind of thing that happened in a run.
type EventType string

// The event types.
const (
	EventTaskCreated       EventType = "TASK_CREATED"
	EventTaskStarted       EventType = "TASK_STARTED"
	EventTaskQueued        EventType = "TASK_QUEUED"
	EventModelInvoked      EventType = "MODEL_INVOKED"
	EventModelCompleted    EventType = "MODEL_COMPLETED"
	EventToolRequested     EventType = "TOOL_REQUESTED"
	EventPolicyDecided     EventType = "POLICY_DECIDED"
	EventPolicyDenied      EventType = "POLICY_DENIED"
	EventApprovalRequested EventType = "APPROVAL_REQUESTED"
	EventApprovalRecorded  EventType = "APPROVAL_RECORDED"
	EventToolStarted       EventType = "TOOL_STARTED"
	EventToolCompleted     EventType = "TOOL_COMPLETED"
	EventCheckpointCreated EventType = "CHECKPOINT_CREATED"
	EventTaskRetried       EventType = "TASK_RETRIED"
	EventTaskPaused        EventType = "TASK_PAUSED"
	EventTaskResumed       EventType = "TASK_RESUMED"
	EventTaskCancelled     EventType = "TASK_CANCELLED"
	EventTaskCompleted     EventType = "TASK_COMPLETED"
	EventTaskFailed        EventType = "TASK_FAILED"
	EventContextCondensed  EventType = "CONTEXT_CONDENSED"
	EventLimitReached      EventType = "LIMIT_REACHED"
	EventSandboxLost       EventType = "SANDBOX_LOST"
	EventControlRefused    EventType = "CONTROL_REFUSED"
	EventEffectUnknown     EventType = "EFFECT_UNKNOWN"
	EventEffectResolved    EventType = "EFFECT_RESOLVED"
	EventDecisionRecorded  EventType = "DECISION_RECORDED"
)

// Event is one thing that happened in a run, as read back from its history.
type Event struct {
	Time  time.Time
	RunID string // of the continue-as-new run whose history tells it
	Seq   int    // counts from 1 over the whole life of the task
	Step  int
	Type  EventType
	// Fields are the event's own, by their JSON names.
	Fields map[string]any
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) {
	flat := map[string]any{}
	maps.Copy(flat, e.Fields)
	flat["time"], flat["run_id"], flat["seq"], flat["step"], flat["type"] = e.Time, e.RunID, e.Seq, e.Step, e.Type
	return json.Marshal(flat)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Event) UnmarshalJSON(b []byte) error {
	var head struct {
		Time  time.Time `json:"time"`
		RunID string    `json:"run_id"`
		Seq   int       `json:"seq"`
		Step  int       `json:"step"`
		Type  EventType `json:"type"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	for _, k := range []string{"time", "run_id", "seq", "step", "type"} {
		delete(fields, k)
	}
	*e = Event{Time: head.Time, RunID: head.RunID, Seq: head.Seq, Step: head.Step, Type: head.Type, Fields: fields}
	return nil
}

// Note is a fact that only the workflow knows. Notes travel in the next activity's input, so that the history tells them.
type Note struct {
	Type   EventType      `json:"type"`
	Time   time.Time      `json:"time"`
	Step   int            `json:"step,omitempty"`
	Fields map[string]any `json:"fields,omitempty"`
}

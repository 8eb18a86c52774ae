package events

import (
	"context"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"belay/agent"
)

// Project gives the events that the history of one run tells. The first one gets the number seq. The run may still go on.
func Project(ctx context.Context, c client.Client, workflowID, runID string, seq int) ([]agent.Event, error) {
	var all []agent.Event
	p := newProjector(runID, seq)
	iter := c.GetWorkflowHistory(ctx, workflowID, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return nil, fmt.Errorf("history of run %s of %s: %w", runID, workflowID, err)
		}
		all = append(all, p.take(e)...)
	}
	return all, nil
}

// projector turns the history of one run into events, one history event after the other. It remembers what is open: the
// activities that have not ended, and the calls of the last reply.
type projector struct {
	runID string
	seq   int          // of the next event
	step  int          // the last one heard of
	head  agent.Digest // the conversation that the last reply led to

	open  map[int64]activity // by the id of the event that scheduled it
	calls map[agent.CallID]called
	next  string // the run that continues this one
	// cancel is what the end of the task tells of the request to cancel it; nil: there was none.
	cancel map[string]any
	out    []agent.Event
}

// activity is what has to be known of an activity when it ends.
type activity struct {
	kind  string
	step  int
	call  agent.CallID
	round int // of checks
}

// called is what has to be known of a call when it runs.
type called struct {
	Call    agent.CallID `json:"call"`
	Tool    string       `json:"tool"`
	Summary string       `json:"summary"`
}

func newProjector(runID string, seq int) *projector {
	return &projector{runID: runID, seq: seq, open: map[int64]activity{}, calls: map[agent.CallID]called{}}
}

// take gives the events that one history event tells. What it does not know, or can't decode, tells nothing.
func (p *projector) take(e *history.HistoryEvent) []agent.Event {
	p.out = nil
	switch e.GetEventType() {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		p.created(e)
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		p.scheduled(e)
	case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		p.started(e)
	case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		p.completed(e)
	case enums.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		p.failed(e, a.GetScheduledEventId(), a.GetFailure())
	case enums.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		p.failed(e, a.GetScheduledEventId(), a.GetFailure())
	case enums.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		a := e.GetActivityTaskCanceledEventAttributes()
		p.cancelled(e, a.GetScheduledEventId(), a.GetDetails())
	case enums.EVENT_TYPE_MARKER_RECORDED:
		p.marker(e)
	case enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		p.notes(e.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetInput())
	default:
		p.end(e)
	}
	return p.out
}

// tell adds an event of the history's own time.
func (p *projector) tell(e *history.HistoryEvent, t agent.EventType, fields map[string]any) {
	p.add(agent.Event{Time: e.GetEventTime().AsTime(), Step: p.step, Type: t, Fields: plain(fields)})
}

func (p *projector) add(e agent.Event) {
	e.RunID, e.Seq = p.runID, p.seq
	p.seq++
	p.out = append(p.out, e)
}

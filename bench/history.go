package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
)

// size is what the server counts of a workflow's history, over all its continue-as-new runs.
type size struct{ runs, events, bytes int64 }

// historySize counts a workflow that has ended, from its first run on.
func (r *rig) historySize(ctx context.Context, id, runID string) (s size, err error) {
	for runID != "" {
		d, err := r.client.DescribeWorkflow(ctx, id, runID)
		if err != nil {
			return s, err
		}
		info := d.RawResponse.GetWorkflowExecutionInfo()
		s.runs++
		s.events += info.GetHistoryLength()
		s.bytes += info.GetHistorySizeBytes()
		if runID, err = r.nextRun(ctx, id, runID); err != nil {
			return s, err
		}
	}
	return s, nil
}

// nextRun is the run that continues a closed one; empty when none does.
func (r *rig) nextRun(ctx context.Context, id, runID string) (string, error) {
	iter := r.client.GetWorkflowHistory(ctx, id, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	next := ""
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return "", err
		}
		next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return next, nil
}

// breakdown counts the bytes of one run's history by the types of its events, and of the payloads in them by what they
// are, so that one sees what to make smaller.
type breakdown struct {
	steps    int
	events   map[string]int // how many
	bytes    map[string]int
	payloads map[string]int
	kinds    map[int64]string // of activities, by the id of the event that scheduled them
}

func (r *rig) breakdown(ctx context.Context, id, runID string) (*breakdown, error) {
	b := &breakdown{events: map[string]int{}, bytes: map[string]int{}, payloads: map[string]int{}, kinds: map[int64]string{}}
	iter := r.client.GetWorkflowHistory(ctx, id, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(e.GetEventType().String(), "EVENT_TYPE_")
		b.events[name]++
		b.bytes[name] += proto.Size(e)
		b.take(e)
	}
	return b, nil
}

// take counts the payloads of one event.
func (b *breakdown) take(e *history.HistoryEvent) {
	b.add("summaries", e.GetUserMetadata().GetSummary())
	if s := e.GetActivityTaskScheduledEventAttributes(); s != nil {
		b.kinds[e.GetEventId()] = s.GetActivityType().GetName()
		if s.GetActivityType().GetName() == "CallModel" {
			b.steps++
		}
		b.add("input of "+s.GetActivityType().GetName(), s.GetInput().GetPayloads()...)
	}
	if c := e.GetActivityTaskCompletedEventAttributes(); c != nil {
		b.add("result of "+b.kinds[c.GetScheduledEventId()], c.GetResult().GetPayloads()...)
	}
	if m := e.GetMarkerRecordedEventAttributes(); m != nil {
		for k, v := range m.GetDetails() {
			b.add(k+" of marker "+m.GetMarkerName(), v.GetPayloads()...)
		}
	}
}

func (b *breakdown) add(what string, payloads ...*common.Payload) {
	for _, p := range payloads {
		b.payloads[what] += proto.Size(p)
	}
}

// table gives the bytes a step of what is above a byte.
func (b *breakdown) table() string {
	var t strings.Builder
	fmt.Fprintf(&t, "| a step, of %d in one run | bytes | events |\n|---|---|---|\n", b.steps)
	rows := func(prefix string, m map[string]int) {
		for _, k := range slices.SortedFunc(maps.Keys(m), func(x, y string) int { return cmp.Or(cmp.Compare(m[y], m[x]), cmp.Compare(x, y)) }) {
			if m[k] >= b.steps {
				fmt.Fprintf(&t, "| %s%s | %.0f | %.2f |\n", prefix, k, float64(m[k])/float64(b.steps), float64(b.events[k])/float64(b.steps))
			}
		}
	}
	rows("", b.bytes)
	rows("of it, payloads: ", b.payloads)
	return t.String()
}

// folderBytes is how much the files below a folder hold.
func folderBytes(folder string) (total int64, err error) {
	err = fs.WalkDir(os.DirFS(folder), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

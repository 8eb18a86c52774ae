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
	"google.golang.org/protobuf/reflect/protoreflect"
)

// size is what the server counts of a workflow's history, over all its continue-as-new runs.
type size struct{ runs, events, bytes int64 }

// historySize counts a workflow that has ended, from its first run on.
func (r *rig) historySize(ctx context.Context, id, runID string) (s size, err error) {
	for runID != "" {
		d, err := r.client.DescribeWorkflowExecution(ctx, id, runID)
		if err != nil {
			return s, err
		}
		info := d.GetWorkflowExecutionInfo()
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

// parts are the bytes of a history by what they are.
type parts map[string]int

// breakdown says of what a history consists, so that one sees what to make smaller.
func (r *rig) breakdown(ctx context.Context, id string, steps int) (string, error) {
	byType, byPart, count := parts{}, parts{}, parts{}
	iter := r.client.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return "", err
		}
		name := strings.TrimPrefix(e.GetEventType().String(), "EVENT_TYPE_")
		n := proto.Size(e)
		byType[name] += n
		count[name]++
		byPart.take(e, n)
	}
	var b strings.Builder
	b.WriteString("| history bytes a step | bytes | events |\n|---|---|---|\n")
	for _, m := range []parts{byType, byPart} {
		for _, k := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Compare(m[b], m[a]) }) {
			fmt.Fprintf(&b, "| %s | %.0f | %.2f |\n", k, float64(m[k])/float64(steps), float64(count[k])/float64(steps))
		}
	}
	return b.String(), nil
}

// take counts one event's parts: the data of payloads, what stands around them, summaries, event groups, and the rest.
func (p parts) take(e *history.HistoryEvent, n int) {
	meta := proto.Size(e.GetUserMetadata())
	groups := 0
	for _, g := range e.GetEventGroupMarkers() {
		groups += proto.Size(g)
	}
	data, around := payloads(e.ProtoReflect())
	data -= len(e.GetUserMetadata().GetSummary().GetData())
	p["(of it) payload data"] += data
	p["(of it) encodings beside payloads"] += around
	p["(of it) summaries"] += meta
	p["(of it) event groups"] += groups
	p["(of it) everything else"] += n - data - around - meta - groups
}

// payloads gives the bytes of data, and of encoding names, of all payloads in a message but for its summary.
func payloads(m protoreflect.Message) (data, around int) {
	if x, ok := m.Interface().(*common.Payload); ok {
		for k, v := range x.GetMetadata() {
			around += len(k) + len(v)
		}
		return len(x.GetData()), around
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		add := func(v protoreflect.Message) {
			d, a := payloads(v)
			data, around = data+d, around+a
		}
		switch {
		case f.IsMap() && f.MapValue().Kind() == protoreflect.MessageKind:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { add(v.Message()); return true })
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				add(v.List().Get(i).Message())
			}
		case !f.IsMap() && !f.IsList() && f.Kind() == protoreflect.MessageKind:
			add(v.Message())
		}
		return true
	})
	return data, around
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

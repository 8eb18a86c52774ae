package workflows_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"belay/workflows"
)

// histories is where recorded histories are. They are added to, and never rewritten: a running task of an older version
// has such a history, and today's code must go on with it.
const histories = "testdata/histories"

// TestReplay replays every recorded history against today's workflows.
func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(histories, "*.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz"), func(t *testing.T) {
			t.Parallel()
			replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			replayer.RegisterWorkflowWithOptions(workflows.AgentTask, workflow.RegisterOptions{Name: workflows.TypeAgentTask})
			replayer.RegisterWorkflowWithOptions(workflows.RunLedger, workflow.RegisterOptions{Name: workflows.TypeRunLedger})
			replayer.RegisterWorkflowWithOptions(workflows.ReconcileLedgers, workflow.RegisterOptions{Name: workflows.TypeReconcile})
			h := readHistory(t, file)
			started := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
			err = replayer.ReplayWorkflowHistoryWithOptions(nil, h, worker.ReplayWorkflowHistoryOptions{
				OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEveryScenarioIsRecorded fails for a scenario without a history, and for a history that nobody remembers.
func TestEveryScenarioIsRecorded(t *testing.T) {
	t.Parallel()
	want := retired
	for _, s := range recordings {
		want = append(want, s.name)
	}
	var have []string
	files, err := os.ReadDir(histories)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		have = append(have, strings.TrimSuffix(f.Name(), ".json.gz"))
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("recorded: %v\nexpected: %v\nmake record adds what is missing", have, want)
	}
}

func readHistory(t *testing.T, file string) *history.History {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var h history.History
	if err := protojson.Unmarshal(b, &h); err != nil {
		t.Fatal(err)
	}
	return &h
}

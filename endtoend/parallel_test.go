package endtoend_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"belay/agent"
)

// testReadsRunAtOnce shows that four commands of a second, which only read, take less than two, and that the model gets
// their results in the order in which it asked.
func testReadsRunAtOnce(t *testing.T, w *world) {
	k := w.start(t, "read four things")
	e := k.wait(t)
	all := k.events(t, "")
	began, ended := times(ofType(all, agent.EventToolStarted)), times(ofType(all, agent.EventToolCompleted))
	if len(began) != 4 || len(ended) != 4 {
		t.Fatalf("%d calls began and %d ended, want 4", len(began), len(ended))
	}
	if took := slices.MaxFunc(ended, time.Time.Compare).Sub(slices.MinFunc(began, time.Time.Compare)); took >= 2*time.Second {
		t.Errorf("four commands of one second took %s", took)
	}
	at := 0
	for _, word := range []string{"one", "two", "three", "four"} {
		next := strings.Index(e.ProposedOutcome, word)
		if next < at {
			t.Errorf("the results came as %q, want them in order", e.ProposedOutcome)
		}
		at = next
	}
}

func times(all []agent.Event) (ts []time.Time) {
	for _, e := range all {
		ts = append(ts, e.Time)
	}
	return ts
}

// testWritesTakeTurns shows that two plain commands, and edits of one file, never run at once.
func testWritesTakeTurns(t *testing.T, w *world) {
	p := w.patch(t, w.start(t, "write twice").wait(t).Ledger)
	for _, want := range []string{"+begin\n+end\n+begin\n+end\n", "b/sum.txt\n@@ -0,0 +1,1 @@\n+3\n"} {
		if !strings.Contains(p, want) {
			t.Errorf("%q is missing in\n%s", want, p)
		}
	}
}

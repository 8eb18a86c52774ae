package activities

import (
	"strings"
	"testing"
)

func TestLedgerRecordsNeverMeet(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 900)
	ids := []string{"fix-calc", "fix calc", "fix=20calc", "fix/calc", "..", "a/../b", "ümlaut", long, long + "y", "=sha256=" + long}
	seen := map[string]string{}
	for _, id := range ids {
		name := LedgerRecord(id, "0123")
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q have the same record %s", id, other, name)
		}
		seen[name] = id
		if len(name) > 300 || strings.Contains(name, "..") || strings.Count(name, "/") != 2 {
			t.Errorf("%q: record %q is not a name of three parts", id, name)
		}
	}
}

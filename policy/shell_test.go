package policy

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"belay/agent"
)

type labelled struct {
	risk        agent.Risk
	script, why string
}

// corpus reads a table of scripts with the risk that a careful engineer gives each.
func corpus(t testing.TB, name string) []labelled {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []labelled
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") || lines.Text() == "" {
			continue
		}
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 3 {
			t.Fatalf("%s: %q: expected three fields", name, lines.Text())
		}
		script := strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(fields[1])
		all = append(all, labelled{agent.Risk(fields[0]), script, fields[2]})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCorpusIsNeverUnderClassified(t *testing.T) {
	t.Parallel()
	over := 0
	rows := corpus(t, "testdata/shell-risk.tsv")
	for _, row := range rows {
		got := Analyze(row.script)
		switch {
		case got.Risk.Level() < row.risk.Level():
			t.Errorf("too low: %s, want %s: %q (%s) %v", got.Risk, row.risk, row.script, row.why, got.Findings)
		case got.Risk.Level() > row.risk.Level():
			over++
			t.Logf("too high: %s, want %s: %q (%s) %v", got.Risk, row.risk, row.script, row.why, got.Findings)
		}
	}
	t.Logf("%d of %d as labelled, %d too high", len(rows)-over, len(rows), over)
	if len(rows) != 113 || over > 3 {
		t.Errorf("%d rows, %d too high; want 113 rows and at most 3 too high", len(rows), over)
	}
}

func TestKnownBypassesStayHigh(t *testing.T) {
	t.Parallel()
	for _, row := range corpus(t, "testdata/shell-bypass.tsv") {
		if got := Analyze(row.script); got.Risk.Level() < row.risk.Level() {
			t.Errorf("%s, want at least %s: %q (%s) %v", got.Risk, row.risk, row.script, row.why, got.Findings)
		}
	}
}

func TestOrdinaryWorkIsNotOverClassified(t *testing.T) {
	t.Parallel()
	for _, row := range corpus(t, "testdata/shell-ordinary.tsv") {
		if got := Analyze(row.script); got.Risk.Level() > row.risk.Level() {
			t.Errorf("%s, want at most %s: %q (%s) %v", got.Risk, row.risk, row.script, row.why, got.Findings)
		}
	}
}

package policy

import (
	"bufio"
	"os"
	"slices"
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

func TestTheTableOfProgramsIsWellFormed(t *testing.T) {
	t.Parallel()
	known := []kind{
		kindText, kindPrint, kindTest, kindRead, kindPattern, kindFilter, kindWrite, kindDelete, kindCopy, kindMove, kindLink, kindInOut, kindMode,
		kindRev, kindRun, kindLaunch, kindMake, kindSQL, kindURL, kindKube, kindNames, kindVars, kindCd, kindSed, kindAwk, kindDD, kindTar,
		kindShell, kindInline, kindEval, kindSource, kindTrap, kindAlias, kindVerbs, kindWrap, kindWrapOne, kindEnv, kindXargs, kindFind,
	}
	seen := map[string]int{}
	for i, line := range strings.Split(strings.TrimRight(programsTSV, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) < 4 || len(fields) > 5 {
			t.Errorf("line %d: %d fields; expected names, kind, risk, effects and options", i+1, len(fields))
			continue
		}
		if !slices.Contains(known, kind(fields[1])) {
			t.Errorf("line %d: kind %q is not known", i+1, fields[1])
		}
		if !slices.Contains([]string{"low", "medium", "high"}, fields[2]) {
			t.Errorf("line %d: risk %q; expected low, medium or high", i+1, fields[2])
		}
		for _, effect := range strings.Split(fields[3], ",") {
			if effect != "-" && effectWords[effect] == "" {
				t.Errorf("line %d: effect %q is not known", i+1, effect)
			}
		}
		for _, name := range strings.Split(fields[0], ",") {
			if before, twice := seen[name]; twice {
				t.Errorf("line %d: %q stands at line %d already", i+1, name, before)
			}
			seen[name] = i + 1
		}
	}
	if len(programs()) != len(seen) {
		t.Errorf("%d programs read of %d", len(programs()), len(seen))
	}
}

//go:build linux

package process_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"belay/sandbox"
	"belay/sandbox/process/wire"
	"belay/sandbox/sandboxtest"
)

// alive checks that the sandbox has survived: with the same first process, and a command that works.
func alive(t *testing.T, dir string, s sandbox.Sandbox, first wire.Process) {
	t.Helper()
	if got := run(t, s, "alive", sandboxtest.Command("echo alive")); string(got.Output) != "alive\n" {
		t.Errorf("the next command: %+v", got)
	}
	if now := processIn(t, dir, "boxes/main.json"); now != first {
		t.Errorf("first process %+v, was %+v", now, first)
	}
}

func TestMemoryBomb(t *testing.T) {
	t.Parallel()
	limited(t)
	dir := t.TempDir()
	s := create(t, runtimeIn(t, dir), sandbox.Profile{MemoryMiB: 64})
	first := processIn(t, dir, "boxes/main.json")
	got := run(t, s, "x", sandbox.Command{Argv: []string{"tail", "/dev/zero"}, Timeout: time.Minute})
	if !got.OOM || got.Exit != 137 || got.TimedOut {
		t.Errorf("%+v; want it killed for want of memory", got)
	}
	alive(t, dir, s, first)
}

func TestForkBomb(t *testing.T) {
	t.Parallel()
	limited(t)
	dir := t.TempDir()
	s := create(t, runtimeIn(t, dir), sandbox.Profile{PIDs: 24})
	first := processIn(t, dir, "boxes/main.json")
	// The first fork that is refused ends the loop of a shell that does not try again.
	got := run(t, s, "x", sandbox.Command{Script: `dash -c 'for i in $(seq 100); do sleep 600 & done'`, Timeout: time.Minute})
	if got.Exit == 0 || got.Left == 0 || got.Left > 24 {
		t.Errorf("%+v; want a failure and at most 24 processes left", got)
	}
	got = run(t, s, "y", sandbox.Command{Script: `bomb() { bomb | bomb & }; bomb; sleep 600`, Timeout: time.Second, Grace: 100 * time.Millisecond})
	if !got.TimedOut {
		t.Errorf("%+v; want it timed out", got)
	}
	alive(t, dir, s, first)
}

func TestCPU(t *testing.T) {
	t.Parallel()
	limited(t)
	s := create(t, newRuntime(t), sandbox.Profile{CPUPercent: 20})
	got := run(t, s, "x", sandboxtest.Command(`end=$((SECONDS+3)); while [ $SECONDS -lt $end ]; do :; done; read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user system _ < /proc/self/stat; echo $((user+system))`))
	ticks, err := strconv.Atoi(strings.TrimSpace(string(got.Output)))
	if err != nil || ticks > 120 { // hundredths of a second, in three seconds and a bit
		t.Errorf("%+v: used %d ticks, %v; want at most a fifth of a core", got, ticks, err)
	}
}

func TestTmp(t *testing.T) {
	t.Parallel()
	s := create(t, newRuntime(t), sandbox.Profile{TmpMiB: 1})
	for _, dir := range []string{"/tmp", "/home/agent", "/dev/shm"} {
		got := run(t, s, sandbox.ExecID(strings.ReplaceAll(dir[1:], "/", ".")), sandboxtest.Command("head -c 2000000 /dev/zero > "+dir+"/x"))
		if got.Exit == 0 || !strings.Contains(string(got.Output), "No space") {
			t.Errorf("%s: %+v; want it full", dir, got)
		}
	}
}

func TestOutputInBoundedMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := create(t, runtimeIn(t, dir), sandbox.Profile{})
	const size, most = 300 << 20, 8 << 20
	got := run(t, s, "x", sandbox.Command{Script: fmt.Sprintf("head -c %d /dev/zero", size), Timeout: time.Minute, MaxOutput: most})
	if got.Total != size || len(got.Output) != sandbox.DefaultKeepOutput || got.Omitted != size-sandbox.DefaultKeepOutput {
		t.Errorf("total %d, kept %d, omitted %d", got.Total, len(got.Output), got.Omitted)
	}
	if st, err := os.Stat(got.Spool); err != nil || st.Size() != most {
		t.Errorf("spool: %v, %v; want %d bytes", st, err, most)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", processIn(t, dir, wire.SupervisorFile).PID))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if s, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if kib, err := strconv.Atoi(strings.Fields(s)[0]); err != nil || kib > 64<<10 {
				t.Errorf("the supervisor took %d KiB at most, %v", kib, err)
			}
			return
		}
	}
	t.Errorf("no VmHWM in %s", status)
}

// Four commands of a second each, in under two seconds.
func TestReadersRunAtOnce(t *testing.T) {
	t.Parallel()
	s := create(t, newRuntime(t), sandbox.Profile{})
	begin := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first, last time.Time
	for i := range 4 {
		wg.Go(func() {
			got := run(t, s, sandbox.ExecID(fmt.Sprint(i)), sandbox.Command{Script: "date +%s%N; sleep 1; date +%s%N", ReadOnly: true, Timeout: time.Minute})
			var from, to int64
			if _, err := fmt.Sscan(string(got.Output), &from, &to); err != nil {
				t.Errorf("%+v: %v", got, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if f := time.Unix(0, from); first.IsZero() || f.Before(first) {
				first = f
			}
			if l := time.Unix(0, to); l.After(last) {
				last = l
			}
		})
	}
	wg.Wait()
	t.Logf("%v in all", time.Since(begin))
	if took := last.Sub(first); took > 2*time.Second {
		t.Errorf("%v from the first start to the last end; want under 2s", took)
	}
}

func TestTreeEnds(t *testing.T) {
	t.Parallel()
	s := create(t, newRuntime(t), sandbox.Profile{})
	for id, test := range map[sandbox.ExecID]struct {
		script string
		check  func(sandbox.Result) bool
	}{
		"ignores-term":  {"trap '' TERM; setsid bash -c 'trap \"\" TERM; sleep 600' & sleep 600; sleep 600", func(r sandbox.Result) bool { return r.TimedOut && r.Exit != 0 }},
		"setsid":        {"setsid sleep 600 < /dev/null > /dev/null 2>&1 & sleep 600", func(r sandbox.Result) bool { return r.TimedOut && r.Signal == 15 }},
		"leaves-behind": {"sleep 600 & setsid sleep 600 > /dev/null 2>&1 & echo", func(r sandbox.Result) bool { return !r.TimedOut && r.Exit == 0 && r.Left == 2 }},
		// The shell is gone at once, but what it started has its grace.
		"grace": {"bash -c 'trap \"sleep 0.1; echo cleaned > cleaned; exit\" TERM; echo > ready; while :; do sleep 0.05; done' & wait", func(r sandbox.Result) bool { return r.TimedOut && read(t, s, "cleaned") != "" }},
	} {
		got := run(t, s, id, sandbox.Command{Script: test.script, Timeout: 500 * time.Millisecond, Grace: time.Second})
		if !test.check(got) {
			t.Errorf("%s: %+v", id, got)
		}
		now := run(t, s, id+"-after", sandboxtest.Command("ls -d /proc/[0-9]*"))
		if n := strings.Count(string(now.Output), "\n"); n > 3 { // process 1, bash, ls
			t.Errorf("%s: %d processes are left:\n%s", id, n, now.Output)
		}
	}
}

package tool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"belay/agent"
	"belay/sandbox"
	"belay/sandbox/sandboxtest"
	"belay/tool"
)

func TestShell(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		args   args
		status agent.CallStatus
		text   string
	}{
		{"success", args{"command": "echo hello; echo there >&2"}, agent.CallOK, "hello\nthere\n[exit 0]"},
		{"no output", args{"command": "true"}, agent.CallOK, "(no output)\n[exit 0]"},
		{"failure", args{"command": "echo no; exit 3"}, agent.CallFailed, "no\n[exit 3]"},
		{"a killed child", args{"command": "exit 137"}, agent.CallFailed, "(no output)\n[exit 137, as of a command killed by signal 9 (killed)]"},
		{"killed itself", args{"command": "kill -9 $$"}, agent.CallFailed, "(no output)\n[killed by signal 9 (killed)]"},
		{"reads only and fails", args{"command": "false", "reads_only": true}, agent.CallFailed, "(no output)\n[exit 1; the workspace was read-only, as reads_only asked]"},
		{"timeout", args{"command": "echo begun; sleep 60", "timeout": 1}, agent.CallTimeout, "begun\n[timeout: killed after 1s with everything it started; the timeout may be raised to 1h0m0s where the task allows it]"},
		{"a working folder", args{"command": "mkdir -p a/b && cd a/b"}, agent.CallOK, "(no output)\n[exit 0; in /workspace/a/b]"},
		{"colours and a title", args{"command": `printf '\033[1;31mred\033[0m \033]0;title\007plain\033[2K\r\n\033(Bx\b\a'`}, agent.CallOK, "red plain\nx\n[exit 0]"},
		{"progress", args{"command": `printf '10%%\r20%%\rdone\n'`}, agent.CallOK, "10%\n20%\ndone\n[exit 0]"},
		{"not UTF-8", args{"command": `printf 'a\xff\xfeb\x00c'`}, agent.CallOK, "a\uFFFDbc\n[exit 0]"},
		{"two lines and a quote", args{"command": "x='it'\"'\"'s'\necho \"$x\""}, agent.CallOK, "it's\n[exit 0]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			o := b.do("shell", row.args)
			if o.Status != row.status || o.Text != row.text {
				t.Errorf("%s:\n got %q\nwant %s:\n     %q", o.Status, o.Text, row.status, row.text)
			}
			if byItself := row.status != agent.CallTimeout && !strings.Contains(row.name, "itself"); (o.Exit != nil) != byItself {
				t.Errorf("exit %v", o.Exit)
			}
			if o.Call != "c1" || o.Duration <= 0 {
				t.Errorf("call %q, duration %s", o.Call, o.Duration)
			}
		})
	}
}

func TestShellKeepsItsState(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.do("shell", args{"command": "mkdir sub; cd sub; export WHO=ana; other=1"})
	b.expect(b.do("shell", args{"command": `echo "$WHO ${other-gone} ${PWD##*/}"`}), agent.CallOK, "ana gone sub\n")
	b.expect(b.do("shell", args{"command": `cd ..; export WHO=bob; echo "$WHO"`, "reads_only": true}), agent.CallOK, "bob\n")
	b.expect(b.do("shell", args{"command": `echo "$WHO ${PWD##*/}"`}), agent.CallOK, "ana sub\n")
}

// A session starts in the folder of the task, once: later calls stay where the shell went.
func TestShellStartsInTheFolderOfTheTask(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"it's/here.txt": "", "elsewhere/x": ""})
	b.env.Dir = "/workspace/it's"
	b.expect(b.do("shell", args{"command": "ls", "reads_only": true}), agent.CallOK, "here.txt")
	b.expect(b.do("shell", args{"command": "ls"}), agent.CallOK, "here.txt", "in /workspace/it's]")
	b.do("shell", args{"command": "cd ../elsewhere"})
	b.expect(b.do("shell", args{"command": "ls"}), agent.CallOK, "x\n")
}

func TestShellCutsItsOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	o := b.do("shell", args{"command": `echo first; yes abcdefg | head -c 1000000; echo last`})
	b.expect(o, agent.CallOK, "first\nabcdefg\n", "abcdefg\nlast\n[exit 0]",
		"bytes left out; full output kept as sha256:"+strings.Repeat("ab", 32)+"\n")
	if !o.Full.Valid() || o.FullSize != 1000011 {
		t.Errorf("full %s, size %d", o.Full, o.FullSize)
	}
	if len(o.Text) > tool.MaxText || len(o.Text) < tool.MaxText-1000 {
		t.Errorf("text of %d bytes", len(o.Text))
	}
	// Output that grows when it is made into text is cut too, between characters.
	o = b.do("shell", args{"command": `for i in $(seq 10000); do printf 'é\xff'; done`})
	b.expect(o, agent.CallOK, "é\uFFFD", "bytes left out\n")
	if len(o.Text) > tool.MaxText || strings.Contains(o.Text, "\uFFFD\uFFFD") {
		t.Errorf("text of %d bytes", len(o.Text))
	}
}

// A repeated call finds the command that ran, whatever the shell did since; another command under its id is refused.
func TestShellRunsOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	once := args{"command": "echo ran >> log; cd /; wc -l < /workspace/log"}
	first, err := b.call("c0", "shell", once)
	b.must(err)
	b.do("shell", args{"command": "export X=1"})
	again, err := b.call("c0", "shell", once)
	b.must(err)
	if first.Text != again.Text || b.get("log") != "ran\n" {
		t.Errorf("first %q, again %q, log %q", first.Text, again.Text, b.get("log"))
	}
	if _, err := b.call("c0", "shell", args{"command": "true"}); agent.TypeOf(err) != agent.StateError || !errors.Is(err, sandbox.ErrConflict) {
		t.Errorf("another command under the same id: %v", err)
	}
}

func TestShellKnowsTheTimeoutOfTheTask(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.env.Timeout = time.Second
	o := b.do("shell", args{"command": "sleep 60", "timeout": 300})
	b.expect(o, agent.CallTimeout, "[timeout: killed after 1s with everything it started; it asked for 5m0s, and this task allows no more than 1s]")
}

func TestShellIsStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	sh, _ := tool.Default().Lookup("shell")
	b.env.Call, b.env.Exec = "c1", "c1"
	b.must(syscall.Mkfifo(b.at("running"), 0o600))
	go func() { // stops it as soon as it shows that it runs
		if f, err := os.Open(b.at("running")); err == nil {
			f.Close()
		}
		cancel()
	}()
	o, err := sh.Run(ctx, b.env, []byte(`{"command":"echo up > running; sleep 60"}`))
	b.must(err)
	b.expect(o, agent.CallCancelled, "[stopped from outside; the command and everything it started was killed]")
	if o.Exit != nil {
		t.Errorf("exit %d of a command that did not end by itself", *o.Exit)
	}
}

func TestShellConcludes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		result sandbox.Result
		text   string
	}{
		{"out of memory", sandbox.Result{Exit: 137, Signal: 9, OOM: true}, "[killed by signal 9 (killed); the sandbox ran out of memory and the kernel killed what took it: use less, or do it in parts]"},
		{"one left behind", sandbox.Result{Left: 1}, "[exit 0; 1 process that it left behind was killed: nothing outlives a call]"},
		{"three left behind", sandbox.Result{Left: 3}, "[exit 0; 3 processes that it left behind were killed: nothing outlives a call]"},
		{"a folder with a line end", sandbox.Result{Dir: "/workspace/a\nb"}, "[exit 0; in /workspace/a␊b]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.box.done["c1"] = row.result
			b.box.ran["c1"] = sandbox.Command{Script: "x", Session: "main", Timeout: 2 * time.Minute, Grace: 2 * time.Second, KeepOutput: tool.MaxText}
			b.expect(b.do("shell", args{"command": "x"}), map[bool]agent.CallStatus{true: agent.CallFailed, false: agent.CallOK}[row.result.Signal != 0], row.text)
		})
	}
}

// What the sandbox can't do is the runtime's concern, in the category that decides whether it is tried again.
func TestShellErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err  error
		want agent.ErrorType
	}{
		{sandbox.ErrLost, agent.SandboxLost},
		{sandbox.ErrNotFound, agent.SandboxLost},
		{sandbox.ErrBusy, agent.ResourceExhausted},
		{sandbox.ErrUnsupported, agent.InvalidInput},
		{sandbox.ErrDetached, agent.Cancelled},
		{context.Canceled, agent.Cancelled},
		{context.DeadlineExceeded, agent.Timeout},
		{errors.New("no route"), agent.ToolError},
		{agent.Errorf(agent.NetworkError, "socket"), agent.NetworkError},
	} {
		t.Run(fmt.Sprint(row.err), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.box.lose = row.err
			_, err := b.call("c7", "shell", args{"command": "true"})
			if agent.TypeOf(err) != row.want || !errors.Is(err, row.err) || !strings.HasPrefix(err.Error(), "call c7: run a command: ") {
				t.Errorf("%s: %v", agent.TypeOf(err), err)
			}
		})
	}
}

func TestShellWaitsForTheOutputToBeKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	keep := b.env.Keep
	b.env.Keep = func(context.Context, string) (agent.Digest, int64, error) {
		return "", 0, agent.Errorf(agent.NetworkError, "store: away")
	}
	long := args{"command": "echo x >> log; yes | head -c 100000"}
	if _, err := b.call("c1", "shell", long); agent.TypeOf(err) != agent.NetworkError {
		t.Fatalf("error %v", err)
	}
	b.env.Keep = keep
	o, err := b.call("c1", "shell", long)
	b.must(err)
	if b.get("log") != "x\n" || o.FullSize != 100000 {
		t.Errorf("log %q, size %d", b.get("log"), o.FullSize)
	}
}

func TestAskHumanIsNeverRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	o, err := b.call("c1", "ask_human", args{"question": "may I?"})
	if agent.TypeOf(err) != agent.StateError || o != (agent.Observation{}) {
		t.Errorf("%+v, error %v", o, err)
	}
}

// The same over the sandbox that other packages are tested with.
func TestShellOverTheFake(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	box, err := sandboxtest.NewFake(t.TempDir()).Create(t.Context(), "box", sandbox.Profile{})
	b.must(err)
	b.env.Sandbox, b.env.Dir = box, "/workspace/app"
	b.expect(b.do("write_file", args{"path": "f", "content": "text\n"}), agent.CallOK)
	b.expect(b.do("shell", args{"command": "cat f; mkdir d; cd d; export X=1"}), agent.CallOK, "text\n[exit 0; in /workspace/app/d]")
	b.expect(b.do("shell", args{"command": `echo "$PWD $X" > g`, "reads_only": true}), agent.CallFailed, "read-only")
	b.expect(b.do("shell", args{"command": `echo "$PWD $X" > g`}), agent.CallOK)
	b.expect(b.do("read_file", args{"path": "d/g"}), agent.CallOK, "     1\t/workspace/app/d 1\n")
	b.expect(b.do("search_files", args{"pattern": "app/d"}), agent.CallOK, "d/g:1: /workspace/app/d 1\n")
}

package endtoend_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"belay/testserver"
)

// testScripts runs the scripts of a folder: what a person types, with the real commands. Besides testscript's own commands
// they know:
//
//	eventually REGEXP PROGRAM [ARG...]   repeats a program until it succeeds and writes what matches
//	exits CODE PROGRAM [ARG...]          runs a program that shall exit with that code
//	let NAME REGEXP                      sets a variable to what the group in REGEXP matches of the last output
//
// and the variable EXAMPLES, the folder of the workspaces.
func testScripts(dir string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		temporal, err := testserver.CLI()
		if err != nil {
			t.Fatal(err)
		}
		belay, err := testserver.Program("belay")
		if err != nil {
			t.Fatal(err)
		}
		testscript.Run(t, testscript.Params{
			Dir:                 dir,
			RequireExplicitExec: true,
			Setup: func(e *testscript.Env) error {
				for _, v := range w.environment() {
					if name, value, ok := strings.Cut(v, "="); ok && name != "HOME" && name != "PATH" {
						e.Setenv(name, value)
					}
				}
				path := []string{filepath.Dir(temporal), filepath.Dir(belay), os.Getenv("PATH")}
				e.Setenv("PATH", strings.Join(path, string(os.PathListSeparator)))
				examples, err := filepath.Abs("../examples")
				e.Setenv("EXAMPLES", examples)
				return err
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"eventually": repeat, "exits": exits, "let": let},
		})
	}
}

func repeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually REGEXP PROGRAM [ARG...]")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	deadline := time.After(patience)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("no match within %s: %v\n%s%s", patience, err, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
		}
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func let(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: let NAME REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	found := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("%q matches nothing in\n%s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], found[1])
}

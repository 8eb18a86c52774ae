package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run the command as "belay", in a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"belay": main})
}

// The scripts of testdata/script show what a user sees.
func TestScripts(t *testing.T) {
	t.Parallel()
	config, err := filepath.Abs("../deploy/config")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("BELAY_CONFIG", config)
			env.Setenv("TEMPORAL_CONFIG_FILE", os.DevNull)
			env.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1") // nobody listens there
			env.Setenv("USER", "ana")
			return nil
		},
	})
}

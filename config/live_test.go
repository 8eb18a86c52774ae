package config_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"belay/agent"
	"belay/config"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// follow follows a folder that the test may change by writeFiles.
func follow(t *testing.T) (dir string, live *config.Live) {
	t.Helper()
	dir = t.TempDir()
	writeFiles(t, dir, good(t))
	live, err := config.Follow(os.DirFS(dir), config.Place{Namespace: "prod", TaskQueue: "belay"})
	if err != nil {
		t.Fatal(err)
	}
	return dir, live
}

func prompt(text string) fstest.MapFS { return fstest.MapFS{"agents/coder.md": file(text)} }

func TestFollowRefusesABadFolder(t *testing.T) {
	t.Parallel()
	files := good(t)
	files["sandbox.yaml"] = file("tight: 7\n")
	if _, err := config.Follow(files, config.Place{}); err == nil || !strings.HasPrefix(err.Error(), "sandbox.yaml:1: ") {
		t.Errorf("error %v", err)
	}
	if _, err := config.Follow(good(t), config.Place{Model: "none"}); err == nil {
		t.Error("a place without a model was taken")
	}
}

func TestReloadKeepsTheLastGoodBundle(t *testing.T) {
	t.Parallel()
	dir, live := follow(t)
	first := live.Current()

	writeFiles(t, dir, prompt("You mend code."))
	if err := live.Reload(); err != nil {
		t.Fatal(err)
	}
	second := live.Current()
	if second.Agents["coder"].Prompt != "You mend code." {
		t.Errorf("prompt %q", second.Agents["coder"].Prompt)
	}

	writeFiles(t, dir, prompt(""))
	const want = "agents/coder.yaml:5: prompt_file: 0 bytes; expected 1 to 65536 bytes of UTF-8"
	for range 2 {
		if err := live.Reload(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if live.Current() != second {
		t.Error("a bad folder replaced the bundle")
	}

	// What was current stays to be had, for runs that began under it.
	for _, b := range []*config.Bundle{first, second} {
		if got, ok := live.At(b.Digest()); !ok || got != b {
			t.Errorf("bundle %s is gone", b.Digest().Short())
		}
	}
	if _, ok := live.At(agent.Digest(strings.Repeat("0", 64))); ok {
		t.Error("found a bundle that never was")
	}
}

func TestReloadTwiceKeepsOne(t *testing.T) {
	t.Parallel()
	_, live := follow(t)
	d := live.Current().Digest()
	if err := live.Reload(); err != nil {
		t.Fatal(err)
	}
	if b, ok := live.At(d); !ok || b != live.Current() {
		t.Error("the same folder is kept twice")
	}
}

func TestOldBundlesAreForgotten(t *testing.T) {
	t.Parallel()
	dir, live := follow(t)
	first := live.Current().Digest()
	for i := range 20 {
		writeFiles(t, dir, prompt(fmt.Sprint("Prompt ", i)))
		if err := live.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := live.At(first); ok {
		t.Error("the first of 21 bundles is kept")
	}
}

func TestRunReportsEachChangeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, live := follow(t)
		ctx, stop := context.WithCancel(t.Context())
		var reports []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			live.Run(ctx, time.Second, func(b *config.Bundle, err error) {
				reports = append(reports, fmt.Sprintf("%s %v", b.Agents["coder"].Prompt, err != nil))
			})
		}()
		pass := func() { // several intervals
			<-time.After(3500 * time.Millisecond)
			synctest.Wait()
		}
		pass() // nothing changed
		writeFiles(t, dir, prompt("two"))
		pass()
		writeFiles(t, dir, prompt("")) // bad
		pass()
		writeFiles(t, dir, prompt("three"))
		pass()
		stop()
		<-done
		if got, want := strings.Join(reports, "; "), "two false; two true; three false"; got != want {
			t.Errorf("reports %q, want %q", got, want)
		}
	})
}

// Readers never see half a reload; run with -race.
func TestLiveIsSafeForManyGoroutines(t *testing.T) {
	t.Parallel()
	dir, live := follow(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				b := live.Current()
				if _, err := b.Resolve(agent.Task{Agent: "coder", Tenant: "acme"}); err != nil {
					t.Error(err)
				}
				live.At(b.Digest())
			}
		})
	}
	wg.Go(func() {
		for i := range 10 {
			writeFiles(t, dir, prompt(fmt.Sprint("Prompt ", i)))
			if err := live.Reload(); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
}

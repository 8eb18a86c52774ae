//go:build linux

package process_test

import (
	"testing"
	"time"
	"fmt"
	"sync"

	"belay/sandbox"
	"belay/sandbox/process"
)

func TestScratch(t *testing.T) {
	dir := t.TempDir()
	r, err := process.New(process.Config{StateDir: dir})
	if err != nil { t.Fatal(err) }
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { if _, err := r.Create(t.Context(), "a", sandbox.Profile{}); err != nil { t.Error(err) } })
	}
	wg.Wait()
	s := create(t, r, sandbox.Profile{Env: map[string]string{"PATH": "/usr/local/go/bin:/usr/bin:/bin"}})
	root, _ := s.Workspace()
	root.WriteFile("go.mod", []byte("module x\n\ngo 1.26\n"), 0o644)
	root.WriteFile("x_test.go", []byte("package x\nimport \"testing\"\nfunc TestX(t *testing.T) { t.Log(1) }\n"), 0o644)
	for i, c := range []string{"/usr/local/go/bin/go test -v ./...", "git init -q . && git add . && git -c user.name=a -c user.email=b commit -qm x && git log --oneline", "python3 -c 'import subprocess,threading; print(subprocess.run([\"echo\",\"hi\"],capture_output=True)); t=threading.Thread(target=print,args=(1,)); t.start(); t.join()'", "gcc --version | head -1; echo 'int main(){return 0;}' > /tmp/a.c && gcc /tmp/a.c -o /tmp/a && /tmp/a && echo compiled; bash -c 'ulimit -a'; ls -la / /etc; df -h", "perl -e 'print 1'; node --version; cat <(echo sub); echo x | tee >(cat); date; mktemp; nproc; free -m; ps aux"} {
		st := time.Now()
		res, err := s.Exec(t.Context(), sandbox.ExecID(fmt.Sprint("s", i)), sandbox.Command{Script: c, Timeout: 2*time.Minute, Session: "m"})
		t.Logf("%v exit %d oom %v left %d err %v\n%s", time.Since(st), res.Exit, res.OOM, res.Left, err, res.Output)
	}
	// cost of adopting 20k files
	run(t, s, "mk", sandbox.Command{Script: "mkdir many; cd many; for i in $(seq 200); do mkdir $i; (cd $i; touch $(seq 100)); done", Timeout: time.Minute})
	for i := range 20 {
		st := time.Now()
		res := run(t, s, sandbox.ExecID(fmt.Sprint("w", i)), sandbox.Command{Argv: []string{"true"}, Timeout: time.Minute})
		if i > 15 { t.Log(time.Since(st), res.Duration) }
	}
	root.RemoveAll("many")
	for i := range 20 {
		st := time.Now()
		res := run(t, s, sandbox.ExecID(fmt.Sprint("v", i)), sandbox.Command{Argv: []string{"true"}, Timeout: time.Minute})
		if i > 15 { t.Log(time.Since(st), res.Duration) }
	}
}

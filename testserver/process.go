package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is one program that was started for a test. It ends with the test program.
type Process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}

	mu  sync.Mutex
	err error
}

func startProcess(path string, args, env []string, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &Process{cmd: exec.Command(path, args...), log: log, done: make(chan struct{})}
	p.cmd.Env = append(clean(os.Environ()), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = endsWithUs()
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

// run starts the process and waits for it on one thread, since the kernel ends it with the thread that started it.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = p.cmd.Wait()
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	close(p.done)
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() { p.end(syscall.SIGKILL) }

// Stop asks the process to end, and kills it when it does not within 20 seconds, which is an error.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTime):
		p.Kill()
		return fmt.Errorf("%s did not end within %s of a SIGTERM", p.cmd.Path, stopTime)
	}
}

const stopTime = 20 * time.Second

func (p *Process) end(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return
	}
	<-p.done
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the process ended.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is everything that the process wrote.
func (p *Process) Log() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

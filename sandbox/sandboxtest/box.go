package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"belay/sandbox"
)

// fakeBox is one sandbox of a Fake.
type fakeBox struct {
	fake    *Fake
	id      sandbox.ID
	dir     string
	profile sandbox.Profile
	writer  chan struct{} // taken by the one command that may write
	still   sync.RWMutex  // read: a file is being touched; write: nothing runs
	running sync.WaitGroup

	mu         sync.Mutex
	why        error         // set when it is lost or destroyed
	lost       chan struct{} // closed then
	executions map[sandbox.ExecID]*execution
	sessions   map[string]session
}

// execution is one command and, once done is closed, how it ended.
type execution struct {
	digest string
	done   chan struct{}
	cancel context.CancelCauseFunc
	result sandbox.Result
	err    error
}

// Causes for which a command is ended.
var (
	errStopped = errors.New("stopped")
	errTimeout = errors.New("timed out")
)

func (b *fakeBox) found(id sandbox.ID) (sandbox.Sandbox, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", id, b.why)
	}
	return b, nil
}

func (b *fakeBox) lose(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == nil {
		close(b.lost)
	}
	b.why = why
	for _, e := range b.executions {
		if e.cancel != nil {
			e.cancel(why)
		}
	}
}

// Exec implements sandbox.Sandbox.
func (b *fakeBox) Exec(ctx context.Context, id sandbox.ExecID, c sandbox.Command) (sandbox.Result, error) {
	if err := errors.Join(id.Check(), c.Check()); err != nil {
		return sandbox.Result{}, fmt.Errorf("sandbox %s: %w", b.id, err)
	}
	if errors.Is(context.Cause(ctx), sandbox.ErrDetached) {
		return sandbox.Result{}, fmt.Errorf("sandbox %s: execution %s: %w", b.id, id, sandbox.ErrDetached)
	}
	e, how, err := b.take(ctx, id, c)
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("sandbox %s: execution %s: %w", b.id, id, err)
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), sandbox.ErrDetached) {
			return sandbox.Result{}, fmt.Errorf("sandbox %s: execution %s: %w", b.id, id, sandbox.ErrDetached)
		}
		if e.cancel != nil {
			e.cancel(errStopped)
		}
		<-e.done
	}
	if e.err != nil {
		return sandbox.Result{}, fmt.Errorf("sandbox %s: execution %s: %w", b.id, id, e.err)
	}
	r := e.result
	r.Attached, r.Replayed = how.Attached, how.Replayed
	return r, nil
}

// take finds the execution of an id or starts it; of the result only Attached and Replayed are set.
func (b *fakeBox) take(ctx context.Context, id sandbox.ExecID, c sandbox.Command) (*execution, sandbox.Result, error) {
	var how sandbox.Result
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why != nil {
		return nil, how, b.why
	}
	if e, ok := b.executions[id]; ok {
		if e.digest != c.Digest() {
			return nil, how, sandbox.ErrConflict
		}
		select {
		case <-e.done:
			how.Replayed = true
		default:
			how.Attached = true
		}
		return e, how, nil
	}
	e := &execution{digest: c.Digest(), done: make(chan struct{})}
	b.executions[id] = e
	if ctx.Err() != nil { // stopped before it started: it never does
		e.result = neverStarted()
		close(e.done)
		return e, how, nil
	}
	running, cancel := context.WithCancelCause(context.Background())
	e.cancel = cancel
	b.running.Go(func() {
		defer close(e.done)
		defer cancel(nil)
		e.result, e.err = b.perform(running, id, c.WithDefaults())
	})
	return e, how, nil
}

func neverStarted() sandbox.Result {
	return sandbox.Result{Exit: 143, Signal: 15, Stopped: true}
}

// perform waits for the command's turn and runs it.
func (b *fakeBox) perform(ctx context.Context, id sandbox.ExecID, c sandbox.Command) (sandbox.Result, error) {
	if !c.ReadOnly {
		select {
		case b.writer <- struct{}{}:
			defer func() { <-b.writer }()
		case <-ctx.Done():
		}
	}
	if err := ended(ctx, &sandbox.Result{}); err != nil {
		return sandbox.Result{}, err
	}
	if ctx.Err() != nil {
		return neverStarted(), nil
	}
	b.fake.count(b.id, id)
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
	defer cancel()
	start := time.Now()
	r, err := b.handle(ctx, c)
	if errors.Is(err, ErrPass) {
		r, err = b.interpret(ctx, c)
	}
	if err == nil {
		err = ended(ctx, &r)
	}
	r.Duration = time.Since(start)
	return r, errors.Join(err, b.cut(&r, id, c))
}

// ended fills in why a command did not end by itself; an error means that its end is unknown.
func ended(ctx context.Context, r *sandbox.Result) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return nil
	case errors.Is(cause, errTimeout):
		r.TimedOut = true
	case errors.Is(cause, errStopped):
		r.Stopped = true
	default:
		return cause
	}
	r.Exit, r.Signal = 143, 15
	return nil
}

// handle asks the test's own function.
func (b *fakeBox) handle(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	if b.fake.Handle == nil {
		return sandbox.Result{}, ErrPass
	}
	type answer struct {
		result sandbox.Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		r, err := b.fake.Handle(c)
		answers <- answer{r, err}
	}()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
		return sandbox.Result{}, nil
	}
}

// cut keeps of the output what the command says.
func (b *fakeBox) cut(r *sandbox.Result, id sandbox.ExecID, c sandbox.Command) error {
	all := r.Output
	r.Total = int64(len(all))
	if len(all) <= c.KeepOutput {
		return nil
	}
	half := c.KeepOutput / 2
	r.Output = append(bytes.Clone(all[:half]), all[len(all)-(c.KeepOutput-half):]...)
	r.Head, r.Omitted = half, r.Total-int64(c.KeepOutput)
	r.Spool = filepath.Join(b.dir, "output-"+string(id))
	return os.WriteFile(r.Spool, all[:min(r.Total, c.MaxOutput)], 0o600)
}

// Workspace implements sandbox.Sandbox.
func (b *fakeBox) Workspace() (*os.Root, error) {
	return os.OpenRoot(filepath.Join(b.dir, "workspace"))
}

// Frozen implements sandbox.Sandbox.
func (b *fakeBox) Frozen(ctx context.Context, f func() error) error {
	if _, err := b.found(b.id); err != nil {
		return err
	}
	b.still.Lock()
	defer b.still.Unlock()
	return errors.Join(ctx.Err(), f())
}

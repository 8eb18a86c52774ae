package openai

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// maxEvent is how much of an answer may come without a piece of the reply.
const maxEvent = 2 * MaxReply

var (
	errSilent  = errors.New("nothing of the reply came")
	errStalled = errors.New("the reply stalled")
	errCut     = errors.New("the connection was closed before the end of the reply")
	errFlood   = errors.New("the answer is not a stream of short events")
)

// watch ends a request whose endpoint is silent for too long, bounds what is read, and knows how far the request came.
type watch struct {
	timer   *time.Timer
	idle    time.Duration
	cancel  context.CancelCauseFunc
	began   atomic.Bool  // a piece of the reply has come
	sent    atomic.Bool  // the request has left whole
	refused atomic.Bool  // the endpoint answered with an error status
	unread  int          // bytes that may be read before the next piece of the reply; only used by the reader
	ended   func() error // why the request was ended, if it was
	refusal func(*http.Response) *refusedError
}

// watch gives the context of one request. It is stopped when the request has ended.
func (m *Model) watch(ctx context.Context) (context.Context, *watch) {
	w := &watch{idle: m.cfg.Timeouts.Between(), unread: maxEvent, refusal: m.refusal}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.ended = func() error { return context.Cause(ctx) }
	w.timer = time.AfterFunc(m.cfg.Timeouts.First(), func() {
		if w.began.Load() {
			w.cancel(errStalled)
		} else {
			w.cancel(errSilent)
		}
	})
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The request's end is told too late: the endpoint may have answered by then.
		WroteHeaders: func() { w.sent.Store(true) },
	}), w
}

// alive notes that a piece of the reply has come.
func (w *watch) alive() {
	w.began.Store(true)
	w.timer.Reset(w.idle)
	w.unread = maxEvent
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// bought tells whether the endpoint may charge for the request.
func (w *watch) bought() bool { return w.sent.Load() && !w.refused.Load() }

// middleware turns what is no reply into an error before the library reads it, since it drops the status of
// refusals that are not worded as OpenAI words them, and reads without a bound.
func (w *watch) middleware(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(r)
	if err != nil {
		return res, err
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode >= 300 || media == "application/json" || media == "text/html" {
		w.refused.Store(res.StatusCode >= 300)
		defer func() { _ = res.Body.Close() }() // nothing more is wanted of it
		return nil, w.refusal(res)
	}
	res.Body = &watchedBody{ReadCloser: res.Body, watch: w}
	return res, nil
}

// watchedBody reads an answer within the bounds of its watch, and marks errors of the connection as such.
type watchedBody struct {
	io.ReadCloser
	watch *watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	if b.watch.unread <= 0 {
		return 0, errFlood
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.watch.unread)])
	b.watch.unread -= n
	if err != nil && err != io.EOF {
		err = &brokenError{err}
	}
	return n, err
}

// brokenError is an answer that broke off.
type brokenError struct{ cause error }

func (e *brokenError) Error() string {
	return "the connection broke during the reply: " + e.cause.Error()
}
func (e *brokenError) Unwrap() error { return e.cause }

package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
	"belay/model"
	"belay/model/openai"
)

// spentAfter is what an attempt costs that broke off after so many bytes of the reply.
func spentAfter(bytes int) agent.Usage {
	u := agent.Usage{InputTokens: model.EstimateTokens(request()), OutputTokens: (bytes + 3) / 4}
	u.CostUSD = float64(u.InputTokens*2+u.OutputTokens*10) / 1e6
	return u
}

func TestFaults(t *testing.T) {
	t.Parallel()
	none := agent.Usage{}
	for _, c := range []struct {
		fault string
		want  agent.ErrorType
		final bool
		wait  time.Duration // RetryAfter
		says  string
		usage agent.Usage
		took  time.Duration
	}{
		{"status: 429", agent.ResourceExhausted, false, 0, "model m: 429 rate_limit_error: scripted fault", none, 0},
		{`status: 429, headers: {Retry-After: "7"}`, agent.ResourceExhausted, false, 7 * time.Second, "429", none, 0},
		{`status: 429, headers: {Retry-After: "1.5"}`, agent.ResourceExhausted, false, 1500 * time.Millisecond, "429", none, 0},
		{`status: 429, headers: {Retry-After: "Sat, 01 Jan 2000 00:01:30 GMT"}`, agent.ResourceExhausted, false, 90 * time.Second, "429", none, 0},
		{`status: 429, headers: {Retry-After: "Fri, 31 Dec 1999 00:00:00 GMT"}`, agent.ResourceExhausted, false, 0, "429", none, 0},
		{`status: 429, headers: {Retry-After: "9", Retry-After-Ms: "250"}`, agent.ResourceExhausted, false, 250 * time.Millisecond, "429", none, 0},
		{`status: 429, headers: {Retry-After: "1e300"}`, agent.ResourceExhausted, false, 24 * time.Hour, "429", none, 0},
		{`status: 429, headers: {Retry-After: soon}`, agent.ResourceExhausted, false, 0, "429", none, 0},
		{"status: 429, code: insufficient_quota, message: No credit.", agent.ResourceExhausted, true, 0, "429 insufficient_quota: No credit.", none, 0},
		{`status: 429, headers: {X-Should-Retry: "false"}`, agent.ResourceExhausted, true, 0, "429", none, 0},
		{"status: 402", agent.ResourceExhausted, true, 0, "402", none, 0},
		{"status: 400, message: Bad temperature.", agent.InvalidInput, true, 0, "Bad temperature.", none, 0},
		{`status: 400, headers: {X-Should-Retry: "true"}`, agent.InvalidInput, false, 0, "400", none, 0},
		{"status: 401", agent.Unauthorized, true, 0, "401", none, 0},
		{"status: 403", agent.Unauthorized, true, 0, "403", none, 0},
		{"status: 404", agent.InvalidInput, true, 0, "404", none, 0},
		{"status: 422", agent.InvalidInput, true, 0, "422", none, 0},
		{"status: 400, code: context_length_exceeded", agent.ModelError, true, 0, "too long for the model's context window (8000 tokens", none, 0},
		{"status: 400, message: This model's maximum context length is 8192 tokens.", agent.ModelError, true, 0, "too long for the model's context window", none, 0},
		{"status: 413", agent.ModelError, true, 0, "too long for the model's context window", none, 0},
		{"status: 408", agent.Timeout, false, 0, "408", none, 0},
		{"status: 409", agent.ResourceExhausted, false, 0, "409", none, 0},
		{"status: 500", agent.ModelError, false, 0, "500", none, 0},
		{`status: 503, headers: {Retry-After: "3"}`, agent.ModelError, false, 3 * time.Second, "503", none, 0},
		{"cut_after: 0", agent.NetworkError, false, 0, "EOF", spentAfter(0), 0},
		{"cut_after: 2, chunk_bytes: 8", agent.NetworkError, false, 0, "the connection broke during the reply", spentAfter(8), 0},
		{"stall_after: 0", agent.Timeout, false, 0, "nothing of the reply came within 1m0s", spentAfter(0), time.Minute},
		{"stall_after: 3, chunk_bytes: 8", agent.Timeout, false, 0, "the reply stalled: nothing came for 10s", spentAfter(16), 10 * time.Second},
		{"first_delay: 2m", agent.Timeout, false, 0, "nothing of the reply came within 1m0s", spentAfter(0), time.Minute},
		{"chunk_delay: 11s", agent.Timeout, false, 0, "the reply stalled", spentAfter(0), 21 * time.Second},
		{"error_after: 2, chunk_bytes: 8, message: Overloaded.", agent.ModelError, false, 0, "Overloaded.", spentAfter(8), 0},
		{`error_after: 2, chunk_bytes: 8, code: rate_limit_exceeded`, agent.ResourceExhausted, false, 0, "rate_limit_exceeded", spentAfter(8), 0},
		{`error_after: 2, chunk_bytes: 8, code: "502"`, agent.ModelError, false, 0, "502", spentAfter(8), 0},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := scenario(t, `rules: [{reply: {text: a text of some thirty-two bytes}, fault: {`+c.fault+`}}]`)
				r := connect(t, config(), s)
				start := time.Now()
				reply, err := r.model.Reply(t.Context(), request(), nil)
				got := failure(t, err)
				if got.Type != c.want || got.Final != c.final || got.RetryAfter != c.wait {
					t.Errorf("got %s, final %v, retry after %s; want %s, %v, %s (%v)", got.Type, got.Final, got.RetryAfter, c.want, c.final, c.wait, err)
				}
				if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
					t.Errorf("the error is %q; want one line with %q", err, c.says)
				}
				if diff := cmp.Diff(c.usage, got.Usage); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				if diff := cmp.Diff(model.Reply{}, reply); diff != "" {
					t.Errorf("a reply came with the error: %s", diff)
				}
				if n := s.Requests()[0].Requests; n != 1 {
					t.Errorf("the endpoint was asked %d times, want once", n)
				}
			})
		})
	}
}

// A cancelled request is closed: the endpoint sees its client leave while it waits for the next token.
func TestCancelClosesTheRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cause func(context.Context) (context.Context, context.CancelFunc)
		want  agent.ErrorType
		is    error
	}{
		{"cancelled", context.WithCancel, agent.Cancelled, context.Canceled},
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 5*time.Second)
		}, agent.Timeout, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := scenario(t, `rules: [{reply: {text: a text of some thirty-two bytes}, fault: {stall_after: 2, chunk_bytes: 8}}]`)
				r := connect(t, config(), s)
				ctx, cancel := c.cause(t.Context())
				defer cancel()
				_, err := r.model.Reply(ctx, request(), func(p model.Progress) {
					if p.Bytes > 0 && c.want == agent.Cancelled {
						cancel()
					}
				})
				got := failure(t, err)
				if got.Type != c.want || !errors.Is(err, c.is) {
					t.Errorf("got %s, %v; want %s, %v", got.Type, err, c.want, c.is)
				}
				if diff := cmp.Diff(spentAfter(8), got.Usage); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
				<-r.left // would hang, and fail the test, if the endpoint never saw it
				if n := s.Requests()[0]; n.Gone != 1 || n.Answered != 0 {
					t.Errorf("the endpoint counts %+v, want one client that left", n)
				}
			})
		})
	}
}

func TestCancelledBeforeItIsSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scenario(t, `rules: [{reply: {text: ok}}]`)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := connect(t, config(), s).model.Reply(ctx, request(), nil)
		if got := failure(t, err); got.Type != agent.Cancelled || got.Usage != (agent.Usage{}) {
			t.Errorf("got %s with usage %+v, want Cancelled and none", got.Type, got.Usage)
		}
		if n := len(s.Requests()); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

// Answers that are no reply, and replies that are too much.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	answer := func(status int, media, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text) // the client may have read enough
		}
	}
	endless := func(piece string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
			}
		}
	}
	const stream = "text/event-stream"
	chunk := `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 1<<16) + `"}}]}` + "\n\n"
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    agent.ErrorType
		says    string
	}{
		{"proxy's page", answer(502, "text/html", "<html>\n<b>Bad gateway</b></html>"), agent.ModelError, "502 <html> <b>Bad gateway</b></html>"},
		{"nothing", answer(500, "text/plain", ""), agent.ModelError, "500 Internal Server Error"},
		{"error as text", answer(400, "application/json", `{"error":"no such thing"}`), agent.InvalidInput, "400 no such thing"},
		{"error as detail", answer(422, "application/json", `{"detail":[{"loc":["body","seed"],"msg":"wrong"}]}`), agent.InvalidInput, `"msg":"wrong"`},
		{"error with a number", answer(429, "application/json", `{"error":{"code":429,"message":"Slow down."}}`), agent.ResourceExhausted, "429 Slow down."},
		{"error with status 200", answer(200, "application/json", `{"error":{"message":"Overloaded."}}`), agent.ModelError, "Overloaded."},
		{"not streamed", answer(200, "application/json", `{"choices":[]}`), agent.ModelError, "answered with application/json; expected a stream of events"},
		{"redirect", answer(302, "text/plain", ""), agent.InvalidInput, "302 Found"},
		{"long words", answer(400, "text/plain", strings.Repeat("ab ", 10_000)), agent.InvalidInput, "…"},
		{"no events", answer(200, stream, ""), agent.NetworkError, "closed before the end of the reply"},
		{"closed in the middle", answer(200, stream, chunk), agent.NetworkError, "closed before the end of the reply"},
		{"no JSON", answer(200, stream, "data: {nonsense\n\n"), agent.ModelError, "invalid"},
		{"endless reply", endless(chunk), agent.ModelError, "larger than 8388608 bytes"},
		{"endless line", endless(strings.Repeat("x", 1<<16)), agent.ModelError, "not a stream of short events"},
		{"endless event", endless("data: " + strings.Repeat("x", 1<<12) + "\n"), agent.ModelError, "not a stream of short events"},
		{"endless comments", endless(strings.Repeat(": keep-alive, still thinking\n\n", 1<<11)), agent.ModelError, "not a stream of short events"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, err := connect(t, config(), c.handler).model.Reply(t.Context(), request(), nil)
				got := failure(t, err)
				if got.Type != c.want || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 600 {
					t.Errorf("got %s: %v\nwant %s with %q", got.Type, err, c.want, c.says)
				}
			})
		})
	}
}

// Over TCP, since pipes know no refused connection.
func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	cfg := config()
	cfg.BaseURL = server.URL + "/v1"
	m, err := openai.New(cfg, key, &http.Client{Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Reply(t.Context(), request(), nil)
	if got := failure(t, err); got.Type != agent.NetworkError || got.Final || got.Usage != (agent.Usage{}) {
		t.Errorf("got %s, final %v, usage %+v; want NetworkError, worth another try, and no usage (%v)", got.Type, got.Final, got.Usage, err)
	}
}

// Over TCP, since pipes know no reset.
func TestConnectionReset(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closing sends a reset
		}
		_ = conn.Close()
	}))
	defer server.Close()
	cfg := config()
	cfg.BaseURL = server.URL + "/v1"
	m, err := openai.New(cfg, key, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Reply(t.Context(), request(), nil)
	if got := failure(t, err); got.Type != agent.NetworkError {
		t.Errorf("got %s (%v), want NetworkError", got.Type, err)
	}
}

// The key goes into the request's header and nowhere else, whatever an endpoint does with it.
func TestKeyIsNeverShown(t *testing.T) {
	t.Parallel()
	echo := func(status int, format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if status == http.StatusOK {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, format, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"message":        echo(401, `{"error":{"message":"Incorrect API key provided: %s."}}`),
		"code":           echo(401, `{"error":{"code":"%s"}}`),
		"text":           echo(403, `key %s is not allowed`),
		"detail":         echo(400, `{"detail":{"key":"%s"}}`),
		"at the cut":     echo(500, strings.Repeat("x", 390)+`%s`),
		"stream error":   echo(200, `data: {"error":{"message":"bad key %s"}}`+"\n\n"),
		"stream no JSON": echo(200, `data: %s`+"\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := connect(t, config(), handler)
				_, err := r.model.Reply(t.Context(), request(), nil)
				seen := fmt.Sprintf("%v %+v %#v", err, err, failure(t, err))
				for cause := err; cause != nil; cause = errors.Unwrap(cause) {
					seen += fmt.Sprintf(" %v %+v %#v", cause, cause, cause)
				}
				seen += fmt.Sprintf(" %v %+v %#v", r.model, r.model, r.model)
				for n := len(key); n >= 8; n-- { // nor a part of it
					if strings.Contains(seen, key[:n]) {
						t.Fatalf("shows %q: %s", key[:n], seen)
					}
				}
			})
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	bad := config()
	bad.BaseURL = "nowhere"
	for _, c := range []struct {
		name string
		cfg  model.Config
		key  string
		want string
	}{
		{"a bad config", bad, key, `model "m": base_url: scheme ""`},
		{"a key with a line end", config(), key + "\n", `model "m": the key in MODEL_KEY holds a space, a line end`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := openai.New(c.cfg, c.key, http.DefaultClient)
			if agent.TypeOf(err) != agent.InvalidInput || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), key) {
				t.Errorf("got %v, want InvalidInput: %s", err, c.want)
			}
		})
	}
}

package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"belay/agent"
	"belay/model"
)

// Bounds of what an endpoint says instead of a reply: how long it may ask us to wait, how much of it is read (in bytes), and
// how much is shown.
const (
	maxWait    = 24 * time.Hour
	maxRefusal = 64 << 10
	maxShown   = 400
)

// refusedError is what an endpoint answers instead of a reply, or in the middle of one. The key is not in it.
type refusedError struct {
	status  int    // 0 where none is known
	code    string // the endpoint's own word, if it has one
	param   string // the field that it objects to, if it says so
	message string
	wait    time.Duration // what it asked us to wait
	retry   string        // its x-should-retry
}

func (e *refusedError) Error() string {
	s := cmp.Or(e.message, http.StatusText(e.status), "no reason given")
	if e.code != "" && !strings.Contains(s, e.code) {
		s = e.code + ": " + s
	}
	if e.status != 0 {
		s = strconv.Itoa(e.status) + " " + s
	}
	return s
}

// refusal reads what an endpoint answers instead of a reply.
func (m *Model) refusal(res *http.Response) *refusedError {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // as much as came
	e := m.refusedWords(body)
	e.wait, e.retry = retryAfter(res.Header, time.Now()), res.Header.Get("X-Should-Retry")
	if res.StatusCode >= 300 {
		e.status = res.StatusCode
	} else if e.message == "" {
		e.message = m.shown(fmt.Sprintf("answered with %s; expected a stream of events", res.Header.Get("Content-Type")))
	}
	return e
}

// refusedWords finds what an endpoint says about an error. Every endpoint words it in its own way: the parts may be missing,
// may be numbers or objects, and lie at the top or below "error".
func (m *Model) refusedWords(body []byte) *refusedError {
	type parts struct {
		Message json.RawMessage `json:"message"`
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
		Param   json.RawMessage `json:"param"`
		Detail  json.RawMessage `json:"detail"`
	}
	var outer struct {
		parts
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return &refusedError{message: m.shown(string(body))}
	}
	p := outer.parts
	if len(outer.Error) > 0 && json.Unmarshal(outer.Error, &p) != nil {
		p.Message = outer.Error
	}
	e := &refusedError{
		message: m.shown(cmp.Or(word(p.Message), word(p.Detail))),
		code:    m.shown(cmp.Or(word(p.Code), word(p.Type))),
		param:   m.shown(word(p.Param)),
	}
	if status, err := strconv.Atoi(e.code); err == nil && status >= 300 && status < 600 {
		e.status, e.code = status, ""
	}
	return e
}

// word is a JSON value as text: nothing for null, a string without its quotes.
func word(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// retryAfter is how long the endpoint asks us to wait: in milliseconds, seconds, or until a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		wait = time.Duration(min(max(ms, 0), float64(maxWait.Milliseconds())) * float64(time.Millisecond))
	} else if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		wait = time.Duration(min(max(s, 0), maxWait.Seconds()) * float64(time.Second))
	} else if date, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), maxWait)
}

// without gives the words in which to ask again an endpoint that refused a field of d, if that is what err says.
func (d dialect) without(err error) (dialect, bool) {
	e, ok := errors.AsType[*refusedError](err)
	if !ok || (e.status != http.StatusBadRequest && e.status != http.StatusUnprocessableEntity) {
		return d, false
	}
	names := func(field string) bool {
		return strings.Contains(e.message, field) || (e.param == field && e.code == "unsupported_parameter")
	}
	switch {
	case !d.noOptions && names("stream_options"):
		d.noOptions = true
	case names("max_completion_tokens"): // unknown, or to be used instead
		d.maxTokens = !d.maxTokens
	case d.maxTokens && e.param == "max_tokens" && e.code == "unsupported_parameter":
		d.maxTokens = false
	default:
		return d, false
	}
	return d, true
}

// classify says of which category a failed attempt is.
func (m *Model) classify(ctx context.Context, w *watch, err error) *model.Error {
	switch ended := w.ended(); {
	case errors.Is(ended, errSilent):
		return m.failed(agent.Timeout, fmt.Sprintf("%v within %s", ended, m.cfg.Timeouts.First()), nil)
	case errors.Is(ended, errStalled):
		return m.failed(agent.Timeout, fmt.Sprintf("%v: nothing came for %s", ended, m.cfg.Timeouts.Between()), nil)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return m.failed(agent.Timeout, "no whole reply before the deadline", context.DeadlineExceeded)
	case ctx.Err() != nil:
		failed := m.failed(agent.Cancelled, "the request was cancelled", context.Canceled)
		failed.Final = true
		return failed
	}
	if e, ok := errors.AsType[*refusedError](err); ok {
		return m.refused(e)
	}
	if e, ok := errors.AsType[*ssestream.StreamError](err); ok {
		return m.refused(m.refusedWords(e.Event.Data))
	}
	_, broken := errors.AsType[*brokenError](err)
	_, unreached := errors.AsType[*url.Error](err)
	if broken || unreached || errors.Is(err, errCut) {
		return m.failed(agent.NetworkError, err.Error(), nil)
	}
	return m.failed(agent.ModelError, err.Error(), nil)
}

// refused sorts what an endpoint said, by its words where they are known, else by its status.
func (m *Model) refused(e *refusedError) *model.Error {
	t, final := byStatus(e.status)
	switch {
	case e.tooLong():
		failed := m.failed(agent.ModelError, fmt.Sprintf(
			"the conversation is too long for the model's context window (%d tokens by its config): %v", m.cfg.ContextWindow, e), e)
		failed.Final = true
		return failed
	case e.code == "insufficient_quota" || e.status == http.StatusPaymentRequired:
		t, final = agent.ResourceExhausted, true
	case e.code == "rate_limit_exceeded":
		t, final = agent.ResourceExhausted, false
	}
	switch e.retry {
	case "true":
		final = false
	case "false":
		final = true
	}
	failed := m.failed(t, e.Error(), e)
	failed.Final, failed.RetryAfter = final, e.wait
	return failed
}

func byStatus(status int) (t agent.ErrorType, final bool) {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return agent.Unauthorized, true
	case status == http.StatusRequestTimeout:
		return agent.Timeout, false
	case status == http.StatusConflict, status == http.StatusTooManyRequests:
		return agent.ResourceExhausted, false
	case status >= 300 && status < 500:
		return agent.InvalidInput, true
	}
	return agent.ModelError, false
}

// tooLong recognises, in the words of the known endpoints, that a conversation exceeds the context window.
func (e *refusedError) tooLong() bool {
	if e.code == "context_length_exceeded" || e.code == "exceed_context_size_error" || e.status == http.StatusRequestEntityTooLarge {
		return true
	}
	message := strings.ToLower(e.message)
	for _, words := range []string{"maximum context length", "context length exceeded", "context window", "context size", "prompt is too long", "input is too long"} {
		if e.status < 500 && strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// failed makes the error that leaves this package: it names the model, and the key is struck out of it.
func (m *Model) failed(t agent.ErrorType, message string, cause error) *model.Error {
	message = m.strike(fmt.Sprintf("model %s: %s", m.cfg.Name, message))
	return &model.Error{Failure: model.Failure{Type: t, Message: message, Cause: cause}, Final: t == agent.InvalidInput}
}

// shown is what is shown of an endpoint's words: one line, not too long, without the key.
func (m *Model) shown(s string) string {
	s = strings.ToValidUTF8(strings.Join(strings.Fields(m.strike(s)), " "), "?")
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

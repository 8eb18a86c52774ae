// Package openai is the model port over the Chat Completions API, which OpenAI and every compatible endpoint speak (Ollama,
// vLLM, llama.cpp, LiteLLM and others). It streams, so that silence can be told from work, and never retries. The one thing
// that it sends again is a request that the endpoint refused for a field that it does not know, in words that it knows:
// nothing was bought by the first.
package openai

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"belay/agent"
	"belay/model"
)

// MaxReply is how large a reply may be, in bytes of text and arguments. A larger one is a ModelError.
const MaxReply = 8 << 20

// Model asks one model of one endpoint. It is safe for concurrent use.
type Model struct {
	cfg     model.Config
	chat    openai.ChatCompletionService
	dialect atomic.Pointer[dialect]   // what the endpoint is known to understand
	strike  func(words string) string // takes the key out
}

var _ model.Model = (*Model)(nil)

// New makes the model that cfg describes. key is sent to the endpoint and appears nowhere else; empty, none is sent.
// client carries the requests; its Timeout should be zero, since the timeouts of cfg and of the context hold. The error is
// of type InvalidInput.
func New(cfg model.Config, key string, client *http.Client) (*Model, error) {
	if errs := cfg.Validate(); len(errs) > 0 {
		return nil, agent.Errorf(agent.InvalidInput, "model %.40q: %w", cfg.Name, errs[0])
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, agent.Errorf(agent.InvalidInput,
			"model %q: the key in %s holds a space, a line end or a character beyond ASCII; expected none of them", cfg.Name, cfg.APIKeyEnv)
	}
	if client == nil {
		return nil, agent.Errorf(agent.InvalidInput, "model %q: no HTTP client", cfg.Name)
	}
	m := &Model{cfg: cfg, strike: func(s string) string { return s }}
	m.dialect.Store(new(firstDialect(cfg.BaseURL)))
	options := []option.RequestOption{
		option.WithBaseURL(cfg.BaseURL),
		option.WithHTTPClient(client),
		option.WithMaxRetries(0),
	}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
		m.strike = func(s string) string { return strings.ReplaceAll(s, key, "[key]") }
	}
	m.chat = openai.NewChatCompletionService(options...) // which, unlike the library's client, reads no environment
	return m, nil
}

// Reply implements model.Model.
func (m *Model) Reply(ctx context.Context, r model.Request, progress func(model.Progress)) (model.Reply, error) {
	if r.MaxOutputTokens <= 0 || r.MaxOutputTokens > m.cfg.MaxOutputTokens {
		r.MaxOutputTokens = m.cfg.MaxOutputTokens
	}
	if progress == nil {
		progress = func(model.Progress) {}
	}
	for again := 0; ; again++ {
		d := *m.dialect.Load()
		reply, err := m.attempt(ctx, r, d, progress)
		if err == nil {
			return reply, nil
		}
		next, changed := d.without(err)
		if !changed || again == maxDialects {
			return model.Reply{}, err
		}
		m.dialect.Store(&next)
	}
}

// attempt sends one request and reads its answer to the end. The error is a *model.Error.
func (m *Model) attempt(ctx context.Context, r model.Request, d dialect, progress func(model.Progress)) (model.Reply, error) {
	params, err := m.params(r, d)
	if err != nil {
		return model.Reply{}, m.failed(agent.InvalidInput, err.Error(), nil)
	}
	watched, w := m.watch(ctx)
	defer w.stop()
	stream := m.chat.NewStreaming(watched, params, option.WithMiddleware(w.middleware))
	defer func() { _ = stream.Close() }() // what went wrong is in stream.Err

	var a assembly
	for err == nil && stream.Next() {
		w.alive()
		err = a.add(stream.Current())
		progress(model.Progress{Bytes: a.bytes})
	}
	if err == nil {
		err = stream.Err()
	}
	if err == nil && !a.whole() {
		err = errCut
	}
	// A reply that has its end is whole, whatever became of the request while its usage was awaited.
	if err != nil && (!a.whole() || errors.Is(err, errTooLarge)) {
		failed := m.classify(ctx, w, err)
		failed.Usage = m.spent(w, r, &a)
		return model.Reply{}, failed
	}
	reply := a.reply()
	reply.Usage = m.usage(r, &a)
	reply.Model = cmp.Or(reply.Model, m.cfg.Model)
	return reply, nil
}

// usage is what a whole reply cost: what the endpoint said, else an estimate.
func (m *Model) usage(r model.Request, a *assembly) agent.Usage {
	u, told := a.usage()
	if !told {
		u = estimate(r, a)
	}
	u.CostUSD = model.Cost(m.cfg.Prices, u)
	return u
}

// spent is what a failed attempt cost: nothing when the request never left or was refused, else no less than what went out and
// came in.
func (m *Model) spent(w *watch, r model.Request, a *assembly) agent.Usage {
	if !w.bought() {
		return agent.Usage{}
	}
	counted := estimate(r, a)
	u, told := a.usage()
	if !told {
		u = counted
	}
	u.OutputTokens = max(u.OutputTokens, counted.OutputTokens)
	u.CostUSD = model.Cost(m.cfg.Prices, u)
	return u
}

// estimate takes the input from above and one token for every four bytes that came.
func estimate(r model.Request, a *assembly) agent.Usage {
	return agent.Usage{InputTokens: model.EstimateTokens(r), OutputTokens: (a.bytes + 3) / 4}
}

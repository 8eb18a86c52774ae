package model

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	"belay/agent"
)

// Config describes one named model: where it is, what it costs and how long it may take. It never holds a key, only the
// name of the environment variable that does, so it may be shown, stored and hashed.
type Config struct {
	// Name is what agent definitions and fallbacks call it.
	Name string `json:"name" yaml:"name"`
	// BaseURL is the endpoint up to and including its version: "https://api.openai.com/v1".
	BaseURL string `json:"base_url" yaml:"base_url"`
	// APIKeyEnv names the environment variable that holds the key. Empty: the endpoint wants none.
	APIKeyEnv string `json:"api_key_env,omitempty" yaml:"api_key_env"`
	// Model is the endpoint's own name for the model.
	Model string `json:"model" yaml:"model"`
	// ContextWindow is how many tokens a request and its reply may have together.
	ContextWindow int `json:"context_window" yaml:"context_window"`
	// MaxOutputTokens bounds one reply, whatever a request asks for.
	MaxOutputTokens int      `json:"max_output_tokens" yaml:"max_output_tokens"`
	Prices          Prices   `json:"prices,omitzero" yaml:"prices"`
	Timeouts        Timeouts `json:"timeouts,omitzero" yaml:"timeouts"`
	Temperature     *float64 `json:"temperature,omitempty" yaml:"temperature"` // unset: the endpoint's default
	Seed            *int64   `json:"seed,omitempty" yaml:"seed"`
	// Fallback names the models to ask, in order, when this one keeps failing.
	Fallback []string `json:"fallback,omitempty" yaml:"fallback"`
}

// Prices are in US dollars per million tokens.
type Prices struct {
	Input float64 `json:"input" yaml:"input"`
	// CachedInput is the price of input that the endpoint had cached. Unset: such input costs what other input costs.
	CachedInput *float64 `json:"cached_input,omitempty" yaml:"cached_input"`
	Output      float64  `json:"output" yaml:"output"`
}

// Timeouts bound how long an endpoint may be silent. How long a reply may take as a whole is the caller's context's to say.
type Timeouts struct {
	FirstToken agent.Duration `json:"first_token,omitempty" yaml:"first_token"` // until something of the reply comes; 5m
	Idle       agent.Duration `json:"idle,omitempty" yaml:"idle"`               // between two pieces of it; 2m
}

// The waits that hold where a Config gives none. A model that thinks before it speaks may be silent for minutes.
const (
	DefaultFirstToken = 5 * time.Minute
	DefaultIdle       = 2 * time.Minute
)

// First is how long to wait for the beginning of a reply.
func (t Timeouts) First() time.Duration { return orDefault(t.FirstToken, DefaultFirstToken) }

// Between is how long to wait for the next piece of a reply.
func (t Timeouts) Between() time.Duration { return orDefault(t.Idle, DefaultIdle) }

func orDefault(d agent.Duration, otherwise time.Duration) time.Duration {
	if d > 0 {
		return time.Duration(d)
	}
	return otherwise
}

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]{0,63}$`)
	envForm  = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,127}$`)
)

// Validate reports everything that is wrong, each error with the path of its field. It shows no value that may be a key.
func (c Config) Validate() []error {
	return slices.Concat(c.validateNames(), c.validateURL(), c.validateNumbers(), c.validateFallback())
}

func (c Config) validateNames() (errs []error) {
	if !nameForm.MatchString(c.Name) {
		errs = append(errs, fmt.Errorf("name: %.40q; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit", c.Name))
	}
	if c.APIKeyEnv != "" && !envForm.MatchString(c.APIKeyEnv) {
		errs = append(errs, errors.New("api_key_env: expected the name of an environment variable, such as OPENAI_API_KEY; never the key itself"))
	}
	if c.Model == "" || len(c.Model) > 256 {
		errs = append(errs, fmt.Errorf("model: %d bytes; expected the endpoint's name for the model, 1 to 256 bytes", len(c.Model)))
	}
	return errs
}

func (c Config) validateURL() []error {
	u, err := url.Parse(c.BaseURL)
	switch {
	case c.BaseURL == "":
		return []error{errors.New(`base_url: missing; expected the endpoint, such as "https://api.openai.com/v1"`)}
	case err != nil:
		return []error{errors.New("base_url: not a URL")}
	case u.Scheme != "http" && u.Scheme != "https":
		return []error{fmt.Errorf("base_url: scheme %.40q; expected http or https", u.Scheme)}
	case u.Host == "":
		return []error{errors.New("base_url: has no host")}
	case u.User != nil:
		return []error{errors.New("base_url: holds a user or password; expected none, keys come from api_key_env")}
	case u.RawQuery != "" || u.Fragment != "":
		return []error{errors.New("base_url: holds a query or fragment; expected neither")}
	}
	return nil
}

func (c Config) validateNumbers() (errs []error) {
	switch {
	case c.ContextWindow < 1024:
		errs = append(errs, fmt.Errorf("context_window: %d; expected at least 1024 tokens", c.ContextWindow))
	case c.MaxOutputTokens < 1 || c.MaxOutputTokens >= c.ContextWindow:
		errs = append(errs, fmt.Errorf("max_output_tokens: %d; expected 1 to less than the context window (%d)", c.MaxOutputTokens, c.ContextWindow))
	}
	cached := c.Prices.Input
	if c.Prices.CachedInput != nil {
		cached = *c.Prices.CachedInput
	}
	for _, p := range []struct {
		at    string
		price float64
	}{{"prices.input", c.Prices.Input}, {"prices.cached_input", cached}, {"prices.output", c.Prices.Output}} {
		if !(p.price >= 0 && p.price <= 1e6) { // also refuses what is not a number
			errs = append(errs, fmt.Errorf("%s: %v; expected 0 to 1000000 US dollars per million tokens", p.at, p.price))
		}
	}
	for _, t := range []struct {
		at   string
		wait agent.Duration
	}{{"timeouts.first_token", c.Timeouts.FirstToken}, {"timeouts.idle", c.Timeouts.Idle}} {
		if t.wait < 0 {
			errs = append(errs, fmt.Errorf("%s: %s is negative; expected a positive duration", t.at, t.wait))
		}
	}
	if t := c.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		errs = append(errs, fmt.Errorf("temperature: %v; expected 0 to 2", *t))
	}
	return errs
}

func (c Config) validateFallback() (errs []error) {
	for i, name := range c.Fallback {
		switch {
		case !nameForm.MatchString(name):
			errs = append(errs, fmt.Errorf("fallback[%d]: %.40q; expected the name of a model", i, name))
		case name == c.Name:
			errs = append(errs, fmt.Errorf("fallback[%d]: %q is the model itself", i, name))
		case slices.Contains(c.Fallback[:i], name):
			errs = append(errs, fmt.Errorf("fallback[%d]: %q is listed twice", i, name))
		}
	}
	return errs
}

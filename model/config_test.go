package model_test

import (
	"strings"
	"testing"

	"belay/agent"
	"belay/model"
)

func valid() model.Config {
	return model.Config{
		Name:            "main",
		BaseURL:         "https://api.example.com/v1",
		APIKeyEnv:       "EXAMPLE_API_KEY",
		Model:           "example-1",
		ContextWindow:   128_000,
		MaxOutputTokens: 8_000,
		Prices:          model.Prices{Input: 2, CachedInput: new(0.5), Output: 8},
		Fallback:        []string{"spare"},
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	if errs := valid().Validate(); len(errs) > 0 {
		t.Fatalf("a valid config is refused: %v", errs)
	}
	for _, c := range []struct {
		name  string
		spoil func(*model.Config)
		want  string
	}{
		{"no name", func(c *model.Config) { c.Name = "" }, `name: ""; expected up to 64 of a-z 0-9 . _ @ -`},
		{"name in capitals", func(c *model.Config) { c.Name = "Main" }, `name: "Main"; expected`},
		{"no url", func(c *model.Config) { c.BaseURL = "" }, "base_url: missing; expected the endpoint"},
		{"no scheme", func(c *model.Config) { c.BaseURL = "api.example.com/v1" }, `base_url: scheme ""; expected http or https`},
		{"file url", func(c *model.Config) { c.BaseURL = "file:///v1" }, `base_url: scheme "file"; expected http or https`},
		{"no host", func(c *model.Config) { c.BaseURL = "http:///v1" }, "base_url: has no host"},
		{"password in url", func(c *model.Config) { c.BaseURL = "https://u:hunter2@example.com" }, "base_url: holds a user or password"},
		{"query in url", func(c *model.Config) { c.BaseURL = "https://example.com/v1?key=hunter2" }, "base_url: holds a query"},
		{"bad url", func(c *model.Config) { c.BaseURL = "https://hunter2 x/%zz" }, "base_url: not a URL"},
		{"key instead of name", func(c *model.Config) { c.APIKeyEnv = "sk-hunter2" }, "api_key_env: expected the name of an environment variable"},
		{"no model", func(c *model.Config) { c.Model = "" }, "model: 0 bytes; expected the endpoint's name"},
		{"no window", func(c *model.Config) { c.ContextWindow = 0 }, "context_window: 0; expected at least 1024"},
		{"no output", func(c *model.Config) { c.MaxOutputTokens = 0 }, "max_output_tokens: 0; expected 1 to less than the context window (128000)"},
		{"output fills window", func(c *model.Config) { c.MaxOutputTokens = 128_000 }, "max_output_tokens: 128000; expected"},
		{"negative price", func(c *model.Config) { c.Prices.Output = -1 }, "prices.output: -1; expected 0 to 1000000"},
		{"negative cached price", func(c *model.Config) { c.Prices.CachedInput = new(-1.0) }, "prices.cached_input: -1; expected"},
		{"negative wait", func(c *model.Config) { c.Timeouts.Idle = -1 }, "timeouts.idle: -1ns is negative"},
		{"hot", func(c *model.Config) { c.Temperature = new(2.5) }, "temperature: 2.5; expected 0 to 2"},
		{"falls back to itself", func(c *model.Config) { c.Fallback = []string{"main"} }, `fallback[0]: "main" is the model itself`},
		{"falls back twice", func(c *model.Config) { c.Fallback = []string{"a", "a"} }, `fallback[1]: "a" is listed twice`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := valid()
			c.spoil(&cfg)
			errs := cfg.Validate()
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.want) {
				t.Fatalf("got %q\nwant one error that begins with %q", errs, c.want)
			}
			if strings.Contains(errs[0].Error(), "hunter2") {
				t.Errorf("the error shows a secret: %v", errs[0])
			}
		})
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	prices := model.Prices{Input: 2, CachedInput: new(0.5), Output: 8}
	plain := model.Prices{Input: 2, Output: 8}
	for _, c := range []struct {
		name   string
		prices model.Prices
		usage  agent.Usage
		want   float64
	}{
		{"nothing", prices, agent.Usage{}, 0},
		{"input and output", prices, agent.Usage{InputTokens: 1e6, OutputTokens: 1e6}, 10},
		{"half of the input cached", prices, agent.Usage{InputTokens: 1e6, CachedTokens: 5e5}, 1.25},
		{"no cached price: full price", plain, agent.Usage{InputTokens: 1e6, CachedTokens: 5e5}, 2},
		{"cached for nothing", model.Prices{Input: 2, CachedInput: new(0.0)}, agent.Usage{InputTokens: 1e6, CachedTokens: 1e6}, 0},
		{"more cached than input", prices, agent.Usage{InputTokens: 1e6, CachedTokens: 9e6}, 0.5},
		{"free", model.Prices{}, agent.Usage{InputTokens: 1e6, OutputTokens: 1e6}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := model.Cost(c.prices, c.usage); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEstimateTokens(t *testing.T) {
	t.Parallel()
	// Token counts by the o200k vocabulary, of the words alone.
	for _, c := range []struct {
		name, text string
		tokens     int
	}{
		{"english", "The quick brown fox jumps over the lazy dog.", 10},
		{"code", "func main() {\n\tfmt.Println(\"hello\")\n}\n", 12},
		{"empty", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := model.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: c.text}}}
			got := model.EstimateTokens(r)
			if got < c.tokens || got > c.tokens*2+24 {
				t.Errorf("got %d for text of %d tokens", got, c.tokens)
			}
		})
	}
	with := model.Request{Tools: []agent.ToolSpec{{Name: "shell", Schema: []byte(`{"type":"object"}`)}}}
	if model.EstimateTokens(with) <= model.EstimateTokens(model.Request{}) {
		t.Error("tools count for nothing")
	}
}

package agent

// Usage is what a task, or one part of it, has used. Tokens and money include attempts that failed, as far as the
// endpoint told what they cost.
type Usage struct {
	Steps        int      `json:"steps,omitempty"`
	ModelCalls   int      `json:"model_calls,omitempty"`
	ToolCalls    int      `json:"tool_calls,omitempty"`
	InputTokens  int      `json:"input_tokens,omitempty"` // cached ones included
	OutputTokens int      `json:"output_tokens,omitempty"`
	CachedTokens int      `json:"cached_tokens,omitempty"` // the part of InputTokens that the endpoint had cached
	CostUSD      float64  `json:"cost_usd,omitempty"`
	Wall         Duration `json:"wall,omitempty"`
}

// Add gives the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	u.Steps += v.Steps
	u.ModelCalls += v.ModelCalls
	u.ToolCalls += v.ToolCalls
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CachedTokens += v.CachedTokens
	u.CostUSD += v.CostUSD
	u.Wall += v.Wall
	return u
}

// Tokens is what counts against max_tokens.
func (u Usage) Tokens() int { return u.InputTokens + u.OutputTokens }

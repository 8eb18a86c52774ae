package model

import "belay/agent"

// Cost gives the price of the tokens in u, in US dollars. Cached input is part of the input and is priced apart.
func Cost(p Prices, u agent.Usage) float64 {
	cachedPrice := p.Input
	if p.CachedInput != nil {
		cachedPrice = *p.CachedInput
	}
	cached := min(u.CachedTokens, u.InputTokens)
	return (float64(u.InputTokens-cached)*p.Input + float64(cached)*cachedPrice + float64(u.OutputTokens)*p.Output) / 1e6
}

// What an endpoint's chat template adds around the words, in tokens; each is above what the known templates take.
const (
	perRequest = 16
	perMessage = 8
	perCall    = 16
	perTool    = 32
)

// EstimateTokens says how many tokens of input a request has at most, so that a budget can be reserved before it is spent:
// a third of its bytes, plus a fixed number per message, call and tool. English, code and JSON have 3.3 to 4.5 bytes a
// token, so for them it is some 10 to 40 % too high. It is an estimate: text that is mostly digits, random characters or a
// rare script can have fewer bytes a token, and only the endpoint's own count is exact.
func EstimateTokens(r Request) int {
	n := overhead(r.Tools)
	for _, m := range r.Messages {
		n += messageTokens(m)
	}
	return n
}

// overhead is what a request takes without its messages.
func overhead(tools []agent.ToolSpec) int {
	n := perRequest
	for _, t := range tools {
		n += perTool + tokens(len(t.Name)+len(t.Description)+len(t.Schema))
	}
	return n
}

func messageTokens(m agent.Message) int {
	n := perMessage + tokens(len(m.Text)+len(m.Call))
	for _, c := range m.Calls {
		n += perCall + tokens(len(c.ID)+len(c.Tool)+len(c.Arguments))
	}
	return n
}

func tokens(bytes int) int { return (bytes + 2) / 3 }

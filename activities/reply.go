package activities

import (
	"cmp"
	"strings"

	"belay/agent"
	"belay/model"
)

// reserve bounds the reply by what the task may still spend, before anything is spent, and says what the attempt may cost
// at most. It names the limit that leaves no room for a reply.
func reserve(req *model.Request, in ModelInput, c model.Config, spent agent.Usage) (agent.Usage, agent.LimitName) {
	input := model.EstimateTokens(*req)
	out := in.MaxOutput
	if c.MaxOutputTokens > 0 {
		out = min(out, c.MaxOutputTokens)
	}
	if in.Tokens > 0 {
		if out = min(out, in.Tokens-spent.Tokens()-input); out < 1 {
			return agent.Usage{}, agent.LimitTokens
		}
	}
	if in.USD > 0 {
		left := in.USD - spent.CostUSD - model.Cost(c.Prices, agent.Usage{InputTokens: input})
		if c.Prices.Output > 0 {
			out = min(out, int(left/c.Prices.Output*1e6))
		}
		if left < 0 || out < 1 {
			return agent.Usage{}, agent.LimitCost
		}
	}
	req.MaxOutputTokens = out
	u := agent.Usage{InputTokens: input, OutputTokens: out}
	u.CostUSD = model.Cost(c.Prices, u)
	return u, ""
}

// kindOf sorts a reply. Words beside calls are part of the calls' reply.
func kindOf(r model.Reply) ReplyKind {
	switch {
	case r.Finish == model.FinishContentFilter:
		return ReplyFiltered
	case r.Refusal != "":
		return ReplyRefusal
	case r.Finish == model.FinishLength:
		return ReplyTruncated
	case len(r.Calls) > MaxCalls:
		return ReplyTooMany
	case len(r.Calls) > 0:
		return ReplyCalls
	case strings.TrimSpace(r.Text) == "":
		return ReplyEmpty
	}
	return ReplyFinal
}

// normalize makes the message that is kept of a reply. Calls get the run's own ids, which never repeat; calls of a reply
// that is not acted upon are dropped, since every kept call must be answered.
func normalize(r model.Reply, calls int) agent.Message {
	m := agent.Message{Role: agent.RoleAssistant, Text: cmp.Or(r.Text, r.Refusal)}
	if kindOf(r) == ReplyCalls {
		for i, c := range r.Calls {
			c.ID = agent.NewCallID(calls + i + 1)
			m.Calls = append(m.Calls, c)
		}
	}
	if m.Text == "" && len(m.Calls) == 0 {
		m.Text = "(no answer)" // endpoints refuse an empty message when it is shown to them again
	}
	return m
}

// cut shortens a text to at most n bytes, at a rune's boundary.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}

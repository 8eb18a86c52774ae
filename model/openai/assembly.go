package openai

import (
	"fmt"
	"strings"

	openai "github.com/openai/openai-go/v3"

	"belay/agent"
	"belay/model"
)

var errTooLarge = fmt.Errorf("the reply is larger than %d bytes", MaxReply)

// assembly puts a reply together from its pieces.
type assembly struct {
	bytes   int // of everything that the model wrote, its thoughts included
	text    strings.Builder
	refusal strings.Builder
	calls   []*call
	slots   map[int64]*call // the call that is being written at an index
	finish  string
	model   string
	used    openai.CompletionUsage
	counted bool // used holds what the endpoint said
}

type call struct {
	id, tool  string
	arguments strings.Builder
}

func (a *assembly) add(c openai.ChatCompletionChunk) error {
	if c.Model != "" {
		a.model = c.Model
	}
	if c.JSON.Usage.Valid() && c.Usage.PromptTokens+c.Usage.CompletionTokens > 0 {
		a.used, a.counted = c.Usage, true
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // only one was asked for
		}
		a.addDelta(choice.Delta)
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
	}
	if a.bytes > MaxReply {
		return errTooLarge
	}
	return nil
}

func (a *assembly) addDelta(d openai.ChatCompletionChunkChoiceDelta) {
	a.text.WriteString(d.Content)
	a.refusal.WriteString(d.Refusal)
	a.bytes += len(d.Content) + len(d.Refusal)
	for _, thoughts := range []string{"reasoning_content", "reasoning"} { // paid for, and no part of the answer
		if f, ok := d.JSON.ExtraFields[thoughts]; ok && f.Raw() != "null" {
			a.bytes += len(f.Raw())
			break
		}
	}
	for _, t := range d.ToolCalls {
		c := a.slot(t.Index, t.ID)
		if c.tool == "" { // some endpoints repeat it in every piece
			c.tool = t.Function.Name
			a.bytes += len(c.tool)
		}
		c.arguments.WriteString(t.Function.Arguments)
		a.bytes += len(t.Function.Arguments)
	}
}

// slot finds the call that a piece belongs to. The index tells; but some endpoints give every call the index 0, so another
// id begins another call.
func (a *assembly) slot(index int64, id string) *call {
	c := a.slots[index]
	if c == nil || (id != "" && c.id != "" && id != c.id) {
		c = &call{}
		if a.slots == nil {
			a.slots = map[int64]*call{}
		}
		a.slots[index] = c
		a.calls = append(a.calls, c)
		a.bytes += len(id)
	}
	if c.id == "" {
		c.id = id
	}
	return c
}

// whole tells whether the reply has its end.
func (a *assembly) whole() bool { return a.finish != "" }

func (a *assembly) reply() model.Reply {
	r := model.Reply{Text: a.text.String(), Refusal: a.refusal.String(), Model: a.model}
	for _, c := range a.calls {
		r.Calls = append(r.Calls, agent.ToolCall{ID: agent.CallID(c.id), Tool: c.tool, Arguments: c.arguments.String()})
	}
	switch f := model.Finish(a.finish); f {
	case model.FinishLength, model.FinishContentFilter:
		r.Finish = f
	default: // endpoints disagree about stop and tool_calls, and some have words of their own
		r.Finish = model.FinishStop
		if len(r.Calls) > 0 {
			r.Finish = model.FinishToolCalls
		}
	}
	return r
}

// usage is what the endpoint said that the reply cost, if it said anything.
func (a *assembly) usage() (u agent.Usage, told bool) {
	if !a.counted {
		return u, false
	}
	u.InputTokens = int(max(a.used.PromptTokens, 0))
	u.OutputTokens = int(max(a.used.CompletionTokens, 0))
	u.CachedTokens = min(int(max(a.used.PromptTokensDetails.CachedTokens, 0)), u.InputTokens)
	return u, true
}

package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"belay/agent"
)

// request is the part of a Chat Completions request that is looked at.
type request struct {
	Model         string        `json:"model"`
	Messages      []message     `json:"messages"`
	Tools         []offeredTool `json:"tools"`
	Stream        bool          `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type message struct {
	Role    agent.Role `json:"role"`
	Content content    `json:"content"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
	Call    string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type offeredTool struct {
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// content is text, which may also come as null or as a list of parts.
type content string

func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = content(text)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return errors.New("content: expected text or a list of parts")
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	*c = content(all.String())
	return nil
}

// check refuses what real endpoints refuse: a call without its result, a result without its call, and arguments of a past
// call that are no JSON object.
func (r request) check() error {
	if len(r.Messages) == 0 {
		return errors.New("messages: none; expected at least one")
	}
	var open, known []string // calls of the last reply: without a result yet, and all
	for i, m := range r.Messages {
		if m.Role != agent.RoleTool && len(open) > 0 {
			return fmt.Errorf("messages[%d]: call %q has no result; each call must be followed by its result", i, open[0])
		}
		switch m.Role {
		case agent.RoleSystem, agent.RoleUser, "developer":
			known = nil
		case agent.RoleAssistant:
			known = nil
			for _, c := range m.Calls {
				var object map[string]any
				if json.Unmarshal([]byte(c.Function.Arguments), &object) != nil {
					return fmt.Errorf("messages[%d]: the arguments of call %q are no JSON object", i, c.ID)
				}
				known = append(known, c.ID)
			}
			open = slices.Clone(known)
		case agent.RoleTool:
			if !slices.Contains(known, m.Call) {
				return fmt.Errorf("messages[%d]: result of %q, which is no call of the reply before", i, m.Call)
			}
			open = slices.DeleteFunc(open, func(id string) bool { return id == m.Call })
		default:
			return fmt.Errorf("messages[%d]: role %.40q; expected system, user, assistant or tool", i, m.Role)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("messages: call %q has no result; each call must be followed by its result", open[0])
	}
	return nil
}

// completion is an answer, or one chunk of it.
type completion struct {
	ID      string     `json:"id"`
	Object  string     `json:"object"`
	Created int64      `json:"created"`
	Model   string     `json:"model"`
	Choices []choice   `json:"choices"`
	Usage   *wireUsage `json:"usage,omitempty"`
}

type choice struct {
	Index   int     `json:"index"`
	Delta   *spoken `json:"delta,omitempty"`
	Message *spoken `json:"message,omitempty"`
	Finish  *string `json:"finish_reason"`
}

type spoken struct {
	Role    string     `json:"role,omitempty"`
	Content *string    `json:"content,omitempty"`
	Refusal string     `json:"refusal,omitempty"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

type wireUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u Usage) wire() *wireUsage {
	w := &wireUsage{Prompt: u.Input, Completion: u.Output, Total: u.Input + u.Output}
	w.Details.Cached = u.Cached
	return w
}

// refusal is the body of an answer with an error status, and of an event that ends a stream.
type refusal struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

func newRefusal(message, kind, code, param string) refusal {
	var r refusal
	r.Error.Message, r.Error.Type = message, kind
	if code != "" {
		r.Error.Code = &code
	}
	if param != "" {
		r.Error.Param = &param
	}
	return r
}

// chunks are the events of a streamed answer: one that names the speaker, its words piece by piece, and why it ended.
func (a answer) chunks(of completion, piece int) []completion {
	var all []completion
	add := func(s spoken, finish *string) {
		c := of
		c.Object = "chat.completion.chunk"
		c.Choices = []choice{{Delta: &s, Finish: finish}}
		all = append(all, c)
	}
	empty := ""
	add(spoken{Role: "assistant", Content: &empty}, nil)
	for _, p := range pieces(a.text, piece) {
		add(spoken{Content: &p}, nil)
	}
	for _, p := range pieces(a.refusal, piece) {
		add(spoken{Refusal: p}, nil)
	}
	for _, c := range a.calls {
		arguments := c.Function.Arguments
		c.Function.Arguments = ""
		add(spoken{Calls: []toolCall{c}}, nil)
		for _, p := range pieces(arguments, piece) {
			next := toolCall{Index: c.Index}
			next.Function.Arguments = p
			add(spoken{Calls: []toolCall{next}}, nil)
		}
	}
	add(spoken{}, &a.finish)
	return all
}

// whole is an answer that is not streamed.
func (a answer) whole(of completion) completion {
	of.Object = "chat.completion"
	of.Choices = []choice{{Message: &spoken{Role: "assistant", Content: &a.text, Refusal: a.refusal, Calls: a.calls}, Finish: &a.finish}}
	return of
}

// pieces cuts text after every size bytes, or at the next rune that begins there.
func pieces(text string, size int) (all []string) {
	start := 0
	for i := range text {
		if i-start >= size {
			all = append(all, text[start:i])
			start = i
		}
	}
	if start < len(text) {
		all = append(all, text[start:])
	}
	return all
}

package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"belay/agent"
)

// answer is a rule's reply to one conversation.
type answer struct {
	text, refusal string
	calls         []toolCall
	finish        string
	usage         *Usage
}

// answer fills in a rule's reply.
func (r Rule) answer(c conversation) (a answer, err error) {
	reply := Reply{}
	switch {
	case r.Reply != nil:
		reply = *r.Reply
	case r.Repeat != nil:
		reply = r.Repeat.reply(c)
	}
	if a.text, err = reply.Text.fill(c.View); err != nil {
		return a, err
	}
	if a.refusal, err = reply.Refusal.fill(c.View); err != nil {
		return a, err
	}
	for i, call := range reply.Calls {
		t := toolCall{Index: i, ID: call.ID, Type: "function"}
		if t.ID == "" {
			t.ID = fmt.Sprintf("call_%d_%d", c.Turn, i+1)
		}
		t.Function.Name = call.Tool
		if t.Function.Arguments, err = call.fill(c.View); err != nil {
			return a, err
		}
		a.calls = append(a.calls, t)
	}
	a.finish, a.usage = reply.Finish, reply.Usage
	if a.finish == "" {
		a.finish = "stop"
		if len(a.calls) > 0 {
			a.finish = "tool_calls"
		}
	}
	return a, nil
}

// reply is the next reply of a repetition.
func (r Repeat) reply(c conversation) Reply {
	n := min(max(r.PerReply, 1), r.Calls-c.Calls)
	if n <= 0 {
		if r.Text == "" {
			return Reply{Text: "Done."}
		}
		return Reply{Text: r.Text}
	}
	var reply Reply
	for range n {
		reply.Calls = append(reply.Calls, Call{Tool: r.Tool, Arguments: r.Arguments})
	}
	return reply
}

func (c Call) fill(v View) (string, error) {
	if c.RawArguments != nil {
		return c.RawArguments.fill(v)
	}
	if c.Arguments == nil {
		return "{}", nil
	}
	filled, err := fillAll(c.Arguments, v)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(filled)
	return string(b), err
}

// fillAll fills in every string of a value.
func fillAll(value any, v View) (any, error) {
	switch value := value.(type) {
	case string:
		return Template(value).fill(v)
	case map[string]any:
		filled := make(map[string]any, len(value))
		for k, e := range value {
			f, err := fillAll(e, v)
			if err != nil {
				return nil, err
			}
			filled[k] = f
		}
		return filled, nil
	case []any:
		filled := make([]any, len(value))
		for i, e := range value {
			f, err := fillAll(e, v)
			if err != nil {
				return nil, err
			}
			filled[i] = f
		}
		return filled, nil
	}
	return value, nil
}

// fill executes a template.
func (t Template) fill(v View) (string, error) {
	if !strings.Contains(string(t), "{{") {
		return string(t), nil
	}
	parsed, err := template.New("template").Parse(string(t))
	if err != nil {
		return "", err
	}
	var out bounded
	err = parsed.Execute(&out, v)
	return out.String(), err
}

// UnmarshalText checks a template: that it can be read and knows its fields.
func (t *Template) UnmarshalText(b []byte) error {
	*t = Template(b)
	var broken template.ExecError
	_, err := t.fill(View{Turn: 1, Goal: "goal", LastUser: "goal", LastTool: "result"})
	if errors.As(err, &broken) && !strings.Contains(err.Error(), "can't evaluate field") {
		return nil // it depends on what the conversation shows
	}
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "template: ")
		return fmt.Errorf("%.80q is no template: %s; expected text with fields such as {{.LastTool}}", b, text)
	}
	return nil
}

// maxAnswer bounds what a template writes, in bytes.
const maxAnswer = 64 << 20

type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxAnswer {
		return 0, fmt.Errorf("the template writes more than %d bytes", maxAnswer)
	}
	return b.Buffer.Write(p)
}

// tokens counts one for every four bytes.
func tokens(n int) int { return (n + 3) / 4 }

// cost is what an answer says that it cost.
func (s *Scenario) cost(r request, a answer) Usage {
	if a.usage != nil {
		return *a.usage
	}
	prompt, before, written := 0, 0, len(a.text)+len(a.refusal)
	for _, t := range r.Tools {
		prompt += len(t.Function.Name) + len(t.Function.Description) + len(t.Function.Parameters)
	}
	for _, m := range r.Messages {
		if m.Role == agent.RoleAssistant {
			before = prompt // what the request of the turn before held
		}
		prompt += len(m.Content) + callBytes(m.Calls)
	}
	u := Usage{Input: tokens(prompt), Output: tokens(written + callBytes(a.calls))}
	if s.Cache {
		u.Cached = tokens(before)
	}
	return u
}

func callBytes(calls []toolCall) (n int) {
	for _, c := range calls {
		n += len(c.Function.Name) + len(c.Function.Arguments)
	}
	return n
}

package openai

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"belay/agent"
	"belay/model"
)

// dialect is how an endpoint wants to be asked, where endpoints differ.
type dialect struct {
	maxTokens bool // the output is bounded by max_tokens instead of max_completion_tokens
	noOptions bool // stream_options is unknown, so no usage is told
}

// maxDialects is how often a request is put in other words: once for each field of dialect.
const maxDialects = 2

// firstDialect is how to begin: OpenAI's newer models refuse max_tokens, and most other endpoints know nothing else.
func firstDialect(base string) dialect {
	u, err := url.Parse(base)
	openAI := err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
	return dialect{maxTokens: !openAI}
}

// params writes a request in the words of the Chat Completions API.
func (m *Model) params(r model.Request, d dialect) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{Model: m.cfg.Model}
	for i, message := range r.Messages {
		w, err := messageParam(message)
		if err != nil {
			return p, fmt.Errorf("message %d: %w", i, err)
		}
		p.Messages = append(p.Messages, w)
	}
	for _, t := range r.Tools {
		w, err := toolParam(t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, w)
	}
	if d.maxTokens {
		p.MaxTokens = param.NewOpt(int64(r.MaxOutputTokens))
	} else {
		p.MaxCompletionTokens = param.NewOpt(int64(r.MaxOutputTokens))
	}
	if !d.noOptions {
		p.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	if m.cfg.Temperature != nil {
		p.Temperature = param.NewOpt(*m.cfg.Temperature)
	}
	if m.cfg.Seed != nil {
		p.Seed = param.NewOpt(*m.cfg.Seed)
	}
	return p, nil
}

func messageParam(m agent.Message) (openai.ChatCompletionMessageParamUnion, error) {
	switch m.Role {
	case agent.RoleSystem:
		return openai.SystemMessage(m.Text), nil
	case agent.RoleUser:
		return openai.UserMessage(m.Text), nil
	case agent.RoleTool:
		return openai.ToolMessage(m.Text, string(m.Call)), nil
	case agent.RoleAssistant:
		return assistantParam(m), nil
	}
	return openai.ChatCompletionMessageParamUnion{}, fmt.Errorf("role %q; expected system, user, assistant or tool", m.Role)
}

func assistantParam(m agent.Message) openai.ChatCompletionMessageParamUnion {
	var a openai.ChatCompletionAssistantMessageParam
	if m.Text != "" || len(m.Calls) == 0 {
		a.Content.OfString = param.NewOpt(m.Text)
	}
	for _, c := range m.Calls {
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: string(c.ID),
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name:      repeatableName(c.Tool),
					Arguments: repeatableArguments(c.Arguments),
				},
			},
		})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &a}
}

var notInName = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// repeatableName is a tool's name as endpoints let it stand in a conversation, which is stricter than what models write.
func repeatableName(name string) string {
	name = notInName.ReplaceAllString(name, "_")
	if name == "" {
		return "_"
	}
	return name[:min(len(name), 64)]
}

// repeatableArguments are arguments as they can be shown to a model again: many endpoints parse them and refuse the whole
// conversation when they are not an object. What a model wrote amiss is kept as the one field of an object.
func repeatableArguments(written string) string {
	if strings.HasPrefix(strings.TrimSpace(written), "{") && json.Valid([]byte(written)) {
		return written
	}
	if strings.TrimSpace(written) == "" {
		return "{}"
	}
	b, err := json.Marshal(map[string]string{"not_an_object": written})
	if err != nil {
		return "{}" // a map of strings always has a JSON form
	}
	return string(b)
}

func toolParam(t agent.ToolSpec) (openai.ChatCompletionToolUnionParam, error) {
	f := shared.FunctionDefinitionParam{Name: t.Name, Description: param.NewOpt(t.Description)}
	if len(t.Schema) > 0 {
		if err := json.Unmarshal(t.Schema, &f.Parameters); err != nil {
			return openai.ChatCompletionToolUnionParam{}, fmt.Errorf("tool %q: its schema is not a JSON object: %w", t.Name, err)
		}
	}
	return openai.ChatCompletionFunctionTool(f), nil
}

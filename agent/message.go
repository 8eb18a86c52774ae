package agent

import "encoding/json"

// Role says who speaks in a conversation.
type Role string

// The roles, as in the Chat Completions API.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a conversation with a model.
type Message struct {
	Role  Role       `json:"role"`
	Text  string     `json:"text,omitempty"`
	Calls []ToolCall `json:"calls,omitempty"` // only of an assistant
	Call  CallID     `json:"call,omitempty"`  // the call that a tool message answers
}

// ToolCall is one action that a model asks for. Arguments are kept as the model wrote them, even where they are not JSON.
type ToolCall struct {
	ID        CallID `json:"id"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
}

// Turn is one link of a conversation: what was said since the turn before it, ending with the model's reply (the first
// turn of a conversation has none).
type Turn struct {
	Messages []Message `json:"messages"`
}

// ToolSpec is what a model is told about a tool.
type ToolSpec struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // of the arguments, JSON Schema 2020-12
}

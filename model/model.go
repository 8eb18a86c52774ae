// Package model is the port to a language model: it turns a conversation into the next reply. It says nothing about
// retries, which belong to the engine, nor about budgets, which belong to the workflow.
package model

import (
	"context"

	"belay/agent"
)

// Model gives replies. It never retries by itself.
type Model interface {
	// Reply asks for the next message. progress is called from one goroutine at a time whenever something of the reply has
	// come, and may be nil. A cancelled ctx closes the request. A failure is an *Error.
	Reply(ctx context.Context, r Request, progress func(Progress)) (Reply, error)
}

// Request is what a model is asked.
type Request struct {
	Messages        []agent.Message
	Tools           []agent.ToolSpec // none: the model can only answer in words
	MaxOutputTokens int
}

// Progress tells how far a reply has come.
type Progress struct {
	Bytes int // of text and arguments received so far
}

// Finish says why a reply ended, in the words of the Chat Completions API.
type Finish string

// The finish reasons.
const (
	FinishStop          Finish = "stop"
	FinishToolCalls     Finish = "tool_calls"
	FinishLength        Finish = "length"
	FinishContentFilter Finish = "content_filter"
)

// Reply is what a model said. The calls carry the ids that the endpoint gave them, which may repeat.
type Reply struct {
	Text    string
	Refusal string
	Calls   []agent.ToolCall
	Finish  Finish
	Usage   agent.Usage // tokens and cost of this one attempt
	Model   string      // the model that answered, by the endpoint's own name
}

// Failure is the part of an Error that every package knows. The alias gives the embedded field a name that does not hide
// its method Error.
type Failure = agent.Error

// Error is a failed attempt; errors.AsType finds both it and the *agent.Error inside. Its Type is one of ModelError,
// NetworkError, Timeout, Unauthorized, ResourceExhausted, InvalidInput and Cancelled. It never holds the key.
type Error struct {
	Failure
	// Usage is what the attempt cost, as far as is known; estimated on the high side where a reply broke off.
	Usage agent.Usage
	// Final says that the same request would fail again, whatever the retry rule of its Type: the account has no credit, the
	// conversation is too long, the key is wrong, the endpoint said so.
	Final bool
}

// Unwrap makes the category visible to errors.AsType.
func (e *Error) Unwrap() error { return &e.Failure }

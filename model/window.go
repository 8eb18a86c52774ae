package model

import (
	"fmt"
	"slices"

	"belay/agent"
)

// How Window cuts: when the estimate passes fullAt of the limit, down to cutTo of it, so that many turns follow with an
// unchanged beginning, which the endpoint can serve from its prompt cache.
const (
	fullAt      = 80 // percent
	cutTo       = 50 // percent
	recentTurns = 4  // replies whose results stay, unless the conversation would not fit
)

// Window makes a conversation fit limit tokens of input, as EstimateTokens counts them: it replaces the oldest tool results
// by a line that says what stood there. Every message and call stays, in order; only results of the latest replies are
// spared. It gives the messages to send and how many results are left out.
//
// What is left out depends on nothing but the messages so far, the tools and the limit, and once left out stays left out:
// the view of a longer conversation begins with the view of the shorter one, except where a further cut was due.
//
// The error, where even so it does not fit, is a ModelError that is Final.
func Window(messages []agent.Message, tools []agent.ToolSpec, limit int) (view []agent.Message, leftOut int, err error) {
	w := window{view: slices.Clone(messages), size: overhead(tools)}
	for i, m := range messages {
		w.size += messageTokens(m)
		switch m.Role {
		case agent.RoleAssistant:
			w.replies = append(w.replies, i)
		case agent.RoleTool:
			w.results = append(w.results, i)
		}
		if w.size > limit*fullAt/100 {
			w.cut(w.turn(recentTurns), limit*cutTo/100)
		}
		if w.size > limit {
			w.cut(w.turn(1), limit*fullAt/100)
		}
	}
	if w.size > limit {
		return nil, w.leftOut, &Error{Final: true, Failure: *agent.Errorf(agent.ModelError,
			"the conversation has about %d tokens, with %d old results left out; the context window has room for %d", w.size, w.leftOut, limit)}
	}
	return w.view, w.leftOut, nil
}

// window is the state of one walk through a conversation.
type window struct {
	view    []agent.Message
	size    int   // estimated tokens of what the walk has seen
	replies []int // indexes of the assistant's messages
	results []int // indexes of results still whole, oldest first
	leftOut int
}

// turn gives the index at which the last n replies begin.
func (w *window) turn(n int) int {
	if len(w.replies) < n {
		return 0
	}
	return w.replies[len(w.replies)-n]
}

// cut leaves out results before the index end, oldest first, until the size is down to target.
func (w *window) cut(end, target int) {
	for len(w.results) > 0 && w.results[0] < end && w.size > target {
		m := &w.view[w.results[0]]
		w.results = w.results[1:]
		pointer := fmt.Sprintf("[result of %s left out to fit the context window; %d bytes]", m.Call, len(m.Text))
		if len(pointer) >= len(m.Text) {
			continue
		}
		w.size -= messageTokens(*m)
		m.Text = pointer
		w.size += messageTokens(*m)
		w.leftOut++
	}
}

package scripted

import (
	"strings"
	"sync"
)

// Count is how many requests one turn of one conversation took. A turn that was answered more than once was bought more than
// once.
type Count struct {
	Scenario     string `json:"scenario"`
	Conversation string `json:"conversation"` // names system message and goal
	Goal         string `json:"goal"`         // its first bytes
	Turn         int    `json:"turn"`
	Rule         string `json:"rule"` // that answered last
	Requests     int    `json:"requests"`
	Answered     int    `json:"answered"` // got the whole answer
	Faulted      int    `json:"faulted"`  // met a fault that ended the answer
	Gone         int    `json:"gone"`     // left before the end
}

type turn struct {
	scenario, conversation string
	number                 int
}

// end is how an answer ended.
type end int

const (
	endGone    end = iota // the client left
	endFaulted            // with a fault that the client was told
	endCut                // with a connection that is to be cut
	endAnswered
)

// counter counts requests and faults.
type counter struct {
	mu     sync.Mutex
	counts map[turn]*Count
	order  []turn
	struck map[string]int // faults, by scenario, rule and state
}

// begin counts a request and gives the fault that strikes it.
func (c *counter) begin(t turn, goal string, r Rule, state string) (f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts[t]
	if n == nil {
		n = &Count{Scenario: t.scenario, Conversation: t.conversation, Goal: strings.ToValidUTF8(goal[:min(len(goal), 80)], ""), Turn: t.number}
		if c.counts == nil {
			c.counts, c.struck = map[turn]*Count{}, map[string]int{}
		}
		c.counts[t] = n
		c.order = append(c.order, t)
	}
	n.Rule = r.Name
	n.Requests++
	if r.Fault == nil {
		return f
	}
	if r.Fault.Times > 0 {
		if c.struck[state] == r.Fault.Times {
			return f
		}
		c.struck[state]++
	}
	return *r.Fault
}

func (c *counter) end(t turn, e end) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := c.counts[t]; e {
	case endAnswered:
		n.Answered++
	case endFaulted, endCut:
		n.Faulted++
	case endGone:
		n.Gone++
	}
}

func (c *counter) list() []Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Count, 0, len(c.order))
	for _, t := range c.order {
		all = append(all, *c.counts[t])
	}
	return all
}

package workflows

import (
	"fmt"

	"belay/activities"
	"belay/agent"
)

// How often the same may happen before a task counts as stuck.
const (
	sameCallAndResult = 4
	sameError         = 3
	alternating       = 6
	withoutAction     = 3
	deniedInARow      = 3
)

// trail is what the last calls did and led to, as far as it is needed to see that a task goes in circles.
type trail struct {
	Last   []mark `json:"last,omitempty"`
	Idle   int    `json:"idle,omitempty"`   // replies in a row without an action
	Denied int    `json:"denied,omitempty"` // calls in a row that policy forbade
}

// mark is one call and its result, as short hashes.
type mark struct {
	Call   string `json:"c"`
	Result string `json:"r"`
	Failed bool   `json:"f,omitempty"`
}

func (t *trail) acted() { t.Idle = 0 }

// idle counts a reply without an action and says whether it was one too many.
func (t *trail) idle() bool {
	t.Idle++
	return t.Idle >= withoutAction
}

// add takes a settled call into the trail and says how the task ends if it goes in circles.
func (t *trail) add(i *item) *ending {
	if i.Status == agent.CallDenied {
		t.Denied++
	} else {
		t.Denied = 0
	}
	t.Last = append(t.Last, markOf(i))
	if len(t.Last) > alternating {
		t.Last = t.Last[1:]
	}
	switch {
	case t.Denied >= deniedInARow:
		return &ending{Reason: agent.ReasonPolicyDenied, Type: agent.PolicyDenied,
			Text: fmt.Sprintf("policy forbade %d calls in a row, the last for: %s", t.Denied, i.Why)}
	case t.repeats(sameCallAndResult, func(a, b mark) bool { return a.Call == b.Call && a.Result == b.Result }):
		return stuck("the same call gave the same result %d times: %s", sameCallAndResult, i.Summary)
	case t.repeats(sameError, func(a, b mark) bool { return a.Failed && b.Failed && a.Result == b.Result }):
		return stuck("the same error came %d times in a row: %s", sameError, i.Summary)
	case t.alternates():
		return stuck("two calls took turns %d times with the same results: %s", alternating, i.Summary)
	}
	return nil
}

func markOf(i *item) mark {
	m := mark{Call: i.Tool + i.Verdict.Same, Result: i.Same, Failed: i.Status != agent.CallOK}
	if m.Result == "" { // nothing ran
		m.Result = activities.Likeness(i.Status, i.Result.Text)
	}
	return m
}

// repeats says whether the last n marks are alike.
func (t *trail) repeats(n int, alike func(a, b mark) bool) bool {
	if len(t.Last) < n {
		return false
	}
	last := t.Last[len(t.Last)-n:]
	for _, m := range last[1:] {
		if !alike(last[0], m) {
			return false
		}
	}
	return true
}

// alternates says whether the last calls are A B A B A B.
func (t *trail) alternates() bool {
	if len(t.Last) < alternating {
		return false
	}
	for k := range t.Last[2:] {
		if t.Last[k] != t.Last[k+2] {
			return false
		}
	}
	return t.Last[0] != t.Last[1]
}

func stuck(format string, args ...any) *ending {
	return &ending{Reason: agent.ReasonStuck, Type: agent.ModelError, Text: "stuck: " + fmt.Sprintf(format, args...)}
}

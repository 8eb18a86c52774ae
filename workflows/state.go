package workflows

import (
	"encoding/json"
	"time"

	"belay/activities"
	"belay/agent"
)

// stateSchema marks the input of a run that continues another. It changes when an old state can't be read any more.
const stateSchema = "belay/state/1"

// state is everything that a run knows, and what continue-as-new carries on. It stays small: heads and counters.
type state struct {
	Schema   string              `json:"schema"`
	Task     agent.Task          `json:"task"`
	Run      agent.RunID         `json:"run"`
	Prepared activities.Prepared `json:"prepared"`
	Limits   agent.Limits        `json:"limits"`
	Started  time.Time           `json:"started"`

	Sandbox activities.SandboxRef `json:"sandbox,omitzero"`
	Dir     string                `json:"dir,omitempty"` // where the shell is; empty: where the task starts
	Level   string                `json:"level,omitempty"`
	Base    agent.Digest          `json:"base,omitempty"` // the workspace before the first step
	Tree    agent.Digest          `json:"tree,omitempty"` // the last checkpoint of the workspace
	Head    agent.Digest          `json:"head,omitempty"` // the conversation
	// HeadOf is the run whose last step led to Head, as the store has it. After a reset it is another run.
	HeadOf agent.RunID `json:"head_of,omitempty"`

	Step      int            `json:"step"`
	Questions int            `json:"questions,omitempty"`
	Usage     agent.Usage    `json:"usage"`
	Worked    agent.Duration `json:"worked"`
	Risk      agent.Risk     `json:"risk,omitempty"` // highest so far

	// Answer is the model's final answer, where a pause keeps it from counting yet.
	Answer string `json:"answer,omitempty"`

	// Results and Said wait for the next model call.
	Results []activities.Result `json:"results,omitempty"`
	Said    []string            `json:"said,omitempty"`
	// Batch is the reply that is being decided about or run.
	Batch *batch `json:"batch,omitempty"`

	Shown   agent.ExecutionState `json:"shown,omitempty"` // what people see that the task does
	Paused  *pause               `json:"paused,omitempty"`
	Parked  agent.LimitName      `json:"parked,omitempty"` // the limit that waits for a raise
	ParkEnd time.Time            `json:"park_end,omitzero"`

	Rounds int                 `json:"rounds,omitempty"` // of checks that failed
	Checks []agent.CheckResult `json:"checks,omitempty"`
	Trail  trail               `json:"trail"`
	Losses int                 `json:"losses,omitempty"` // sandboxes lost in a row

	Refused []refusal    `json:"refused,omitempty"`
	Notes   []agent.Note `json:"notes,omitempty"`
	Updates []string     `json:"updates,omitempty"` // ids of updates that were handled before

	Sealed   activities.Sealed `json:"sealed,omitzero"`
	Previous string            `json:"previous,omitempty"` // the run that this one continues and has to seal
}

// pause says who paused the task, and why.
type pause struct {
	By     agent.UserID `json:"by"`
	Reason string       `json:"reason,omitempty"`
	At     time.Time    `json:"at"`
}

// refusal is a control message that was not followed, with the reason.
type refusal struct {
	Verb   agent.Verb   `json:"verb"`
	By     agent.UserID `json:"by,omitempty"`
	Reason string       `json:"reason"`
	At     time.Time    `json:"at"`
}

// Bounds of what a state carries.
const (
	maxRefused = 20
	maxUpdates = 200
	maxSaid    = 256 << 10 // bytes of messages that wait for the model
	maxNotes   = 200       // facts that wait for the next activity
	maxNoted   = 1 << 10   // bytes of one text in a note
	maxTold    = 16 << 10  // bytes of what a person says about one call, as the model is told
)

// batch is one reply's calls, from the gate to their results.
type batch struct {
	Items []*item `json:"items"`
}

// item is one call of a batch.
type item struct {
	activities.Verdict
	Question agent.QuestionID `json:"question,omitempty"`
	// Asked is set when people were told that the call waits for them, and Until is when they must have answered.
	Asked bool      `json:"asked,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// By is who approved.
	By []agent.UserID `json:"by,omitempty"`
	// Edit holds arguments that a reviewer put in place of the model's and that are still to be judged.
	Edit *edit `json:"edit,omitempty"`
	// Result and Status are set when the call is settled; nothing runs it after that.
	Result *activities.Result `json:"result,omitempty"`
	Status agent.CallStatus   `json:"status,omitempty"`
	Same   string             `json:"result_same,omitempty"`
}

// edit is a reviewer's proposal. Refused is set when it was judged and may not run.
type edit struct {
	By        agent.UserID    `json:"by"`
	Arguments json.RawMessage `json:"arguments"`
	Judged    bool            `json:"judged,omitempty"`
	Refused   *agent.Error    `json:"refused,omitempty"`
}

// waits says whether the call waits for a person.
func (i *item) waits() bool {
	return i.Result == nil && (i.Gate == activities.GateApproval || i.Gate == activities.GateQuestion)
}

// settle gives a call that is not run its result.
func (i *item) settle(s agent.CallStatus, text string) {
	i.Result, i.Status = &activities.Result{Call: i.Call, Text: trim(text, maxTold)}, s
}

func (b *batch) find(id agent.CallID) *item {
	for _, i := range b.Items {
		if i.Call == id {
			return i
		}
	}
	return nil
}

func (b *batch) waiting() []*item {
	var w []*item
	for _, i := range b.Items {
		if i.waits() {
			w = append(w, i)
		}
	}
	return w
}

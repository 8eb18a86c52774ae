package agent

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Duration is a time.Duration that is written as a Go duration string ("90s", "2h") in JSON and YAML.
type Duration time.Duration

// MarshalText writes the duration as Go does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a Go duration string.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%s; expected a duration such as \"90s\" or \"2h\"", shown(string(b)))
	}
	*d = Duration(v)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

// OnLimit says what happens when a limit is reached.
type OnLimit string

// The ways to meet a limit.
const (
	OnLimitStop      OnLimit = "stop"      // the task ends
	OnLimitAsk       OnLimit = "ask"       // the task parks until a person raises the limit, or the approval timeout passes
	OnLimitSummarize OnLimit = "summarize" // one last model call without tools, then the task ends
)

// LimitName names a limit where one is reported.
type LimitName string

// The limits by name, as they are written in a task.
const (
	LimitSteps         LimitName = "max_steps"
	LimitTaskTimeout   LimitName = "task_timeout"
	LimitModelTimeout  LimitName = "model_timeout"
	LimitToolTimeout   LimitName = "tool_timeout"
	LimitApproval      LimitName = "approval_timeout"
	LimitTokens        LimitName = "max_tokens"
	LimitOutputTokens  LimitName = "max_output_tokens"
	LimitCost          LimitName = "max_cost_usd"
	LimitToolCalls     LimitName = "max_tool_calls"
	LimitParallelTools LimitName = "max_parallel_tools"
	LimitRetries       LimitName = "max_retries"
	LimitChildren      LimitName = "max_children"
)

// Limits bound what a task may use. In a task and in a raise, zero means "not given"; after Tighten every field is set.
type Limits struct {
	MaxSteps         int      `json:"max_steps,omitempty" yaml:"max_steps"`                   // replies of the model
	TaskTimeout      Duration `json:"task_timeout,omitempty" yaml:"task_timeout"`             // work, without time queued, paused or waiting for people
	ModelTimeout     Duration `json:"model_timeout,omitempty" yaml:"model_timeout"`           // one attempt at a reply
	ToolTimeout      Duration `json:"tool_timeout,omitempty" yaml:"tool_timeout"`             // one call, at most
	ApprovalTimeout  Duration `json:"approval_timeout,omitempty" yaml:"approval_timeout"`     // one wait for a person
	MaxTokens        int      `json:"max_tokens,omitempty" yaml:"max_tokens"`                 // input and output, whole task
	MaxOutputTokens  int      `json:"max_output_tokens,omitempty" yaml:"max_output_tokens"`   // one reply
	MaxCostUSD       float64  `json:"max_cost_usd,omitempty" yaml:"max_cost_usd"`             // whole task
	MaxToolCalls     int      `json:"max_tool_calls,omitempty" yaml:"max_tool_calls"`         // whole task
	MaxParallelTools int      `json:"max_parallel_tools,omitempty" yaml:"max_parallel_tools"` // at one time
	MaxRetries       int      `json:"max_retries,omitempty" yaml:"max_retries"`               // of one activity, whatever its categories allow
	MaxChildren      int      `json:"max_children,omitempty" yaml:"max_children"`             // not supported yet
	OnLimit          OnLimit  `json:"on_limit,omitempty" yaml:"on_limit"`
}

// Tighten gives the limits that hold when want is asked for under l: want's where it is stricter, l's where want is
// silent or looser.
func (l Limits) Tighten(want Limits) Limits {
	mine, theirs := l.bounds(), want.bounds()
	for i, w := range theirs {
		if w.given() && (!mine[i].given() || mine[i].above(w)) {
			mine[i].value.set(w.value)
		}
	}
	l.OnLimit = cmp.Or(want.OnLimit, l.OnLimit)
	return l
}

// Within reports the first limit that l sets looser than bound does, as "max_steps: 500; expected at most 200, <whose>".
// A limit that either side leaves unset is within.
func (l Limits) Within(bound Limits, whose string) error {
	theirs := bound.bounds()
	for i, mine := range l.bounds() {
		if theirs[i].given() && mine.above(theirs[i]) {
			return fmt.Errorf("%s: %s; expected at most %s, %s", mine.name, mine, theirs[i], whose)
		}
	}
	return nil
}

// Raised gives l with the limits that by sets in place of its own. It is an error, which names the limit, to raise
// nothing, to set a limit below what it is, or to set it above the ceiling.
func (l Limits) Raised(by, ceiling Limits) (Limits, error) {
	if by == (Limits{}) {
		return l, fmt.Errorf("limits: missing; expected at least one limit to raise")
	}
	if err := by.Within(ceiling, "the tenant's ceiling"); err != nil {
		return l, fmt.Errorf("limits.%w", err)
	}
	raised := l
	mine := raised.bounds()
	for i, b := range by.bounds() {
		if !b.given() {
			continue
		}
		if mine[i].above(b) {
			return l, fmt.Errorf("limits.%s: %s; expected at least %s, which it is now", b.name, b, mine[i])
		}
		mine[i].value.set(b.value)
	}
	raised.OnLimit = cmp.Or(by.OnLimit, l.OnLimit)
	return raised, nil
}

// Validate reports everything that is wrong with limits that someone wrote, each as "max_steps: -1; expected …".
func (l Limits) Validate() (errs []error) {
	for _, b := range l.bounds() {
		switch sign := b.value.sign(); {
		case b.name == LimitChildren && sign != 0:
			errs = append(errs, fmt.Errorf("%s: not supported yet", b.name))
		case sign < 0:
			errs = append(errs, fmt.Errorf("%s: %s; expected a positive value", b.name, b))
		}
	}
	if math.IsInf(l.MaxCostUSD, 1) {
		errs = append(errs, fmt.Errorf("%s: %v; expected an amount of dollars", LimitCost, l.MaxCostUSD))
	}
	switch l.OnLimit {
	case "", OnLimitStop, OnLimitAsk, OnLimitSummarize:
	default:
		errs = append(errs, fmt.Errorf("on_limit: %s; expected stop, ask or summarize", shown(string(l.OnLimit))))
	}
	return errs
}

// Missing names the numeric limits that l leaves unset and that a running task must have.
func (l Limits) Missing() (names []LimitName) {
	for _, b := range l.bounds() {
		if b.value.sign() == 0 && b.name != LimitChildren {
			names = append(names, b.name)
		}
	}
	return names
}

// zeroIsUnset makes Decode refuse a written zero: it would silently mean "not given".
func (Limits) zeroIsUnset() {}

// bounds lists the numeric limits of l in the order of its fields, so that what holds for one is written once for all.
// Setting one changes l.
func (l *Limits) bounds() []bound {
	return []bound{
		{LimitSteps, field[int]{&l.MaxSteps}},
		{LimitTaskTimeout, field[Duration]{&l.TaskTimeout}},
		{LimitModelTimeout, field[Duration]{&l.ModelTimeout}},
		{LimitToolTimeout, field[Duration]{&l.ToolTimeout}},
		{LimitApproval, field[Duration]{&l.ApprovalTimeout}},
		{LimitTokens, field[int]{&l.MaxTokens}},
		{LimitOutputTokens, field[int]{&l.MaxOutputTokens}},
		{LimitCost, field[float64]{&l.MaxCostUSD}},
		{LimitToolCalls, field[int]{&l.MaxToolCalls}},
		{LimitParallelTools, field[int]{&l.MaxParallelTools}},
		{LimitRetries, field[int]{&l.MaxRetries}},
		{LimitChildren, field[int]{&l.MaxChildren}},
	}
}

// bound is one numeric limit with its name.
type bound struct {
	name  LimitName
	value number
}

func (b bound) given() bool        { return b.value.sign() > 0 }
func (b bound) above(c bound) bool { return b.value.compare(c.value) > 0 }
func (b bound) String() string     { return fmt.Sprint(b.value) }

// number is the value of a limit, whatever its type; the other number is of the same limit.
type number interface {
	sign() int
	compare(number) int
	set(number)
}

type field[T int | float64 | Duration] struct{ at *T }

func (f field[T]) sign() int            { return cmp.Compare(*f.at, 0) }
func (f field[T]) compare(n number) int { return cmp.Compare(*f.at, *n.(field[T]).at) }
func (f field[T]) set(n number)         { *f.at = *n.(field[T]).at }
func (f field[T]) String() string       { return fmt.Sprint(*f.at) }

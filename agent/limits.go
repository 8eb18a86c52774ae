package agent

import (
	"encoding/json"
	"fmt"
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
		return fmt.Errorf("%q is not a duration such as \"90s\" or \"2h\"", b)
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
	l.MaxSteps = tighter(l.MaxSteps, want.MaxSteps)
	l.TaskTimeout = tighter(l.TaskTimeout, want.TaskTimeout)
	l.ModelTimeout = tighter(l.ModelTimeout, want.ModelTimeout)
	l.ToolTimeout = tighter(l.ToolTimeout, want.ToolTimeout)
	l.ApprovalTimeout = tighter(l.ApprovalTimeout, want.ApprovalTimeout)
	l.MaxTokens = tighter(l.MaxTokens, want.MaxTokens)
	l.MaxOutputTokens = tighter(l.MaxOutputTokens, want.MaxOutputTokens)
	l.MaxCostUSD = tighter(l.MaxCostUSD, want.MaxCostUSD)
	l.MaxToolCalls = tighter(l.MaxToolCalls, want.MaxToolCalls)
	l.MaxParallelTools = tighter(l.MaxParallelTools, want.MaxParallelTools)
	l.MaxRetries = tighter(l.MaxRetries, want.MaxRetries)
	l.MaxChildren = tighter(l.MaxChildren, want.MaxChildren)
	if want.OnLimit != "" {
		l.OnLimit = want.OnLimit
	}
	return l
}

// Raised gives l with the fields that by sets put in place of its own, held below ceiling. It is an error to raise a
// field above the ceiling or to set it below what it is.
func (l Limits) Raised(by, ceiling Limits) (Limits, error) {
	if by == (Limits{}) {
		return l, fmt.Errorf("limits: expected at least one limit to raise")
	}
	got := l.override(by)
	if held := ceiling.Tighten(got); held != got {
		return l, fmt.Errorf("limits: above the tenant's ceiling %s", mustJSON(ceiling))
	}
	if back := l.override(got); got.Tighten(l) != l.withOnLimit(got.OnLimit) || back != got {
		return l, fmt.Errorf("limits: a raise can't lower a limit; the limits now are %s", mustJSON(l))
	}
	return got, nil
}

func (l Limits) withOnLimit(o OnLimit) Limits {
	l.OnLimit = o
	return l
}

// override gives l with every field that by sets taken from by.
func (l Limits) override(by Limits) Limits {
	set := mustJSON(by) // unset fields are left out, so decoding over l keeps l's
	if err := json.Unmarshal(set, &l); err != nil {
		panic(err) // both sides are this package's own
	}
	return l
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only called on plain structs of this package
	}
	return b
}

func tighter[T int | float64 | Duration](have, want T) T {
	if want > 0 && (have <= 0 || want < have) {
		return want
	}
	return have
}

// validate reports what is wrong with limits that someone wrote, each with its path below at.
func (l Limits) validate(at string) (errs []error) {
	negative := func(name LimitName, v float64) {
		if v < 0 {
			errs = append(errs, fmt.Errorf("%s.%s: %v is negative; expected a positive value", at, name, v))
		}
	}
	negative(LimitSteps, float64(l.MaxSteps))
	negative(LimitTaskTimeout, float64(l.TaskTimeout))
	negative(LimitModelTimeout, float64(l.ModelTimeout))
	negative(LimitToolTimeout, float64(l.ToolTimeout))
	negative(LimitApproval, float64(l.ApprovalTimeout))
	negative(LimitTokens, float64(l.MaxTokens))
	negative(LimitOutputTokens, float64(l.MaxOutputTokens))
	negative(LimitCost, l.MaxCostUSD)
	negative(LimitToolCalls, float64(l.MaxToolCalls))
	negative(LimitParallelTools, float64(l.MaxParallelTools))
	negative(LimitRetries, float64(l.MaxRetries))
	if l.MaxChildren != 0 {
		errs = append(errs, fmt.Errorf("%s.max_children: not supported yet", at))
	}
	switch l.OnLimit {
	case "", OnLimitStop, OnLimitAsk, OnLimitSummarize:
	default:
		errs = append(errs, fmt.Errorf("%s.on_limit: %q; expected stop, ask or summarize", at, l.OnLimit))
	}
	return errs
}

const (
	minute = time.Minute
	hour   = time.Hour
)

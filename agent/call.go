package agent

import "encoding/json"

// Effect classes what a call may change, which decides whether it may run again.
type Effect string

// The effect classes, mildest first.
const (
	EffectPure      Effect = "pure"      // changes nothing: repeats freely
	EffectSandboxed Effect = "sandboxed" // changes only the workspace: repeats from the checkpoint before it
	EffectExternal  Effect = "external"  // everything else: at most once per idempotency key
)

// Risk says how much harm a call can do. The zero value counts as high.
type Risk string

// The risks, mildest first.
const (
	RiskLow    Risk = "low"
	RiskMedium Risk = "medium"
	RiskHigh   Risk = "high"
)

// Level orders risks: low 0, medium 1, high and everything unknown 2.
func (r Risk) Level() int {
	switch r {
	case RiskLow:
		return 0
	case RiskMedium:
		return 1
	}
	return 2
}

// Worse gives the higher of two risks.
func (r Risk) Worse(s Risk) Risk {
	if s.Level() > r.Level() {
		return s
	}
	return r
}

// Resources are the paths that a call reads and writes, absolute and clean, as the sandbox sees them ("/workspace/a.go");
// a folder stands for everything below it.
type Resources struct {
	Reads  []string `json:"reads,omitempty"`
	Writes []string `json:"writes,omitempty"`
}

// Action is one call as it is judged, approved and executed. Its digest is what an approval is bound to: SHA-256 over its
// canonical JSON (RFC 8785).
type Action struct {
	Tool           string          `json:"tool"`
	ToolVersion    string          `json:"tool_version"`
	Arguments      json.RawMessage `json:"arguments"`
	Tenant         TenantID        `json:"tenant"`
	FirstRunID     RunID           `json:"first_run_id"`
	Step           int             `json:"step"`
	SandboxProfile string          `json:"sandbox_profile"`
}

// CallStatus says how a call ended, as far as the runtime can tell.
type CallStatus string

// The ways in which a call ends.
const (
	CallOK        CallStatus = "ok"        // ran and succeeded
	CallFailed    CallStatus = "failed"    // ran and failed: a non-zero exit, an edit that did not match
	CallTimeout   CallStatus = "timeout"   // ran and was killed at its timeout
	CallInvalid   CallStatus = "invalid"   // not run: the arguments are wrong or the tool is unknown
	CallDenied    CallStatus = "denied"    // not run: policy forbids it
	CallRejected  CallStatus = "rejected"  // not run: a reviewer said no
	CallExpired   CallStatus = "expired"   // not run: nobody answered in time
	CallNotRun    CallStatus = "not_run"   // not run: the task stopped before
	CallUnknown   CallStatus = "unknown"   // whether it ran can't be known
	CallCancelled CallStatus = "cancelled" // was stopped by a cancellation
)

// Observation is what came of a call, in the form in which the model is told.
type Observation struct {
	Call     CallID     `json:"call"`
	Status   CallStatus `json:"status"`
	Text     string     `json:"text"`                // cut to a stated size
	Exit     *int       `json:"exit,omitempty"`      // of a command that ended by itself
	Full     Digest     `json:"full,omitempty"`      // the whole output, where Text was cut
	FullSize int64      `json:"full_size,omitempty"` // bytes of the whole output
	Duration Duration   `json:"duration,omitempty"`
	Dir      string     `json:"dir,omitempty"` // where the shell is afterwards, absolute as the sandbox sees it
}

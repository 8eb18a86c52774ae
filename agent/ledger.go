package agent

import "time"

// ExecutionState says what a task is doing.
type ExecutionState string

// The execution states.
const (
	StateQueued    ExecutionState = "queued"
	StateRunning   ExecutionState = "running"
	StatePaused    ExecutionState = "paused"
	StateWaiting   ExecutionState = "waiting"
	StateFinished  ExecutionState = "finished"
	StateErrored   ExecutionState = "error"
	StateStuck     ExecutionState = "stuck"
	StateCancelled ExecutionState = "cancelled"
)

// TerminationReason says why a task ended.
type TerminationReason string

// The termination reasons.
const (
	ReasonFinalAnswer     TerminationReason = "final_answer"
	ReasonMaxSteps        TerminationReason = "max_steps"
	ReasonTimeout         TerminationReason = "timeout"
	ReasonBudgetExhausted TerminationReason = "budget_exhausted"
	ReasonChecksFailed    TerminationReason = "checks_failed"
	ReasonCancelled       TerminationReason = "cancelled"
	ReasonPolicyDenied    TerminationReason = "policy_denied"
	ReasonFatalError      TerminationReason = "fatal_error"
	ReasonStuck           TerminationReason = "stuck"
	ReasonEscalated       TerminationReason = "escalated"
	ReasonTerminated      TerminationReason = "terminated"
)

// LedgerDecision is what people decided about a task's outcome.
type LedgerDecision string

// The decisions. DecisionNone means that no reviewer was asked for.
const (
	Pending      LedgerDecision = "pending"
	Accepted     LedgerDecision = "accepted"
	Conditional  LedgerDecision = "conditional"
	Rejected     LedgerDecision = "rejected"
	Rerun        LedgerDecision = "rerun"
	Superseded   LedgerDecision = "superseded"
	Expired      LedgerDecision = "expired"
	DecisionNone LedgerDecision = "none"
)

// Final says whether a decision closes the ledger.
func (d LedgerDecision) Final() bool { return d != Pending && d != Conditional && d != "" }

// Ledger is the decision record of one run of a task. It outlives the run.
type Ledger struct {
	WorkflowID        string            `json:"workflow_id"`
	RunID             RunID             `json:"run_id"`
	Tenant            TenantID          `json:"tenant"`
	User              UserID            `json:"user"`
	Goal              string            `json:"goal"`
	WorkspaceRef      WorkspaceRef      `json:"workspace_ref"`
	ExecutionState    ExecutionState    `json:"execution_state"`
	TerminationReason TerminationReason `json:"termination_reason"`
	Limit             LimitName         `json:"limit,omitempty"`
	Error             string            `json:"error,omitempty"`
	EvidenceRefs      []Evidence        `json:"evidence_refs"`
	ProposedOutcome   string            `json:"proposed_outcome"`
	Criteria          []string          `json:"criteria,omitempty"`
	Checks            []CheckResult     `json:"checks"`
	Decision          LedgerDecision    `json:"decision"`
	DecidedBy         []UserID          `json:"decided_by,omitempty"`
	DecidedAt         *time.Time        `json:"decided_at,omitempty"`
	Comment           string            `json:"comment,omitempty"`
	Conditions        []string          `json:"conditions,omitempty"`
	Owner             UserID            `json:"owner"`
	NextAction        string            `json:"next_action,omitempty"`
	Reviewers         []UserID          `json:"reviewers,omitempty"`
	Quorum            int               `json:"quorum,omitempty"`
	ExpiresAfter      Duration          `json:"expires_after,omitempty"`
	Supersedes        string            `json:"supersedes,omitempty"`
	SupersededBy      string            `json:"superseded_by,omitempty"`
	Versions          Versions          `json:"versions"`
	Usage             Usage             `json:"usage"`
	Labels            map[string]string `json:"labels,omitempty"`
	Refused           []string          `json:"refused,omitempty"` // decisions that were not taken, with the reason
	StartedAt         time.Time         `json:"started_at"`
	EndedAt           time.Time         `json:"ended_at"`
}

// WorkspaceRef says which workspace a task worked on and what it left.
type WorkspaceRef struct {
	Source      string `json:"source"`
	Revision    string `json:"revision,omitempty"`
	Base        Digest `json:"base,omitempty"` // tree before the first step
	Tree        Digest `json:"tree,omitempty"` // tree after the last one
	Sandbox     string `json:"sandbox,omitempty"`
	Environment string `json:"environment,omitempty"` // isolation level and profile
}

// Evidence points at one thing in the store that shows what happened.
type Evidence struct {
	Kind   string `json:"kind"` // conversation, workspace, check, events
	Name   string `json:"name,omitempty"`
	Digest Digest `json:"digest"`
}

// CheckResult is how one acceptance check ended.
type CheckResult struct {
	Command string     `json:"command"`
	Status  CallStatus `json:"status"`
	Exit    int        `json:"exit"`
	Output  Digest     `json:"output,omitempty"`
}

// Versions records what a run ran under.
type Versions struct {
	Runtime string `json:"runtime"`
	Agent   Digest `json:"agent"`
	Model   string `json:"model"`
	Prompt  Digest `json:"prompt"`
	Tools   Digest `json:"tools"`
	Policy  Digest `json:"policy"`
}

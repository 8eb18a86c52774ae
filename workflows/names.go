package workflows

import "time"

// The names on the wire. They are a protocol: histories and people's scripts hold them.
const (
	// TaskQueue is where tasks are started, unless the worker is told otherwise.
	TaskQueue = "belay"

	// The workflow types.
	TypeAgentTask = "AgentTask"
	TypeRunLedger = "RunLedger"
	TypeReconcile = "ReconcileLedgers"

	QueryState   = "state"
	QueryPending = "pending"
	QueryLedger  = "ledger"

	// SignalSupersede tells an open ledger that a later task took its place.
	SignalSupersede = "supersede"

	// ReconcileSchedule is the id of the schedule that runs ReconcileLedgers, and ReconcileEvery how often it does.
	ReconcileSchedule = "belay-reconcile-ledgers"
	ReconcileEvery    = time.Minute
)

// Package workflows holds the order in which side effects happen. It is deterministic: no I/O, no clock but the SDK's, no
// globals. Everything outside is done by package activities, whose methods and payloads are named here.
//
// AgentTask is one task: AgentTask makes a run, and run.loop reads as the process. RunLedger keeps the decision about its
// outcome. ReconcileLedgers gives a ledger to tasks that ended without running code.
package workflows

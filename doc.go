// Package belay is a guided tour of Belay's code, bottom-up. It holds no code.
//
// Belay runs AI agents as Temporal workflows: the model decides what it wants to do, Belay decides how, whether and under
// what limits it happens, and can prove afterwards what did.
//
// # The words
//
// Package [belay/agent] is the vocabulary: Task, Limits, ToolCall, Action, Decision, Control, Ledger, Event. It decodes what
// people write strictly and imports nothing but the standard library, so everything else may use it, workflows included.
// Package [belay/strictyaml] reads the YAML files that people write, and tells every mistake in them with its line and with
// what was expected.
//
// # What an agent touches
//
// Package [belay/model] is the port to a language model. [belay/model/openai] speaks the Chat Completions API, and
// [belay/model/scripted] is an endpoint of that kind which plays scenario files and can misbehave on purpose.
//
// Package [belay/sandbox] is the port to isolated execution: commands with ids, which are attached to or replayed instead of
// run twice. [belay/sandbox/process] gives it with bubblewrap and a small guest binary, [belay/sandbox/docker] with containers
// and the same binary; [belay/sandbox/sandboxtest] holds the conformance suite and a fake.
//
// Package [belay/tool] is what a model may call. A tool says what a call would touch before anything happens (Plan), and
// performs it in a sandbox (Run).
//
// # What is decided and what is kept
//
// Package [belay/policy] decides whether a call may run and says why: YAML rules with CEL conditions over what is known of
// the call, a shell analysis among it. It is pure.
//
// Package [belay/store] keeps content by its digest: conversations as chains of turns, workspaces as trees, and a few small
// named records.
//
// Package [belay/config] makes one validated bundle of a folder of files: agents, models, policies, tenants, reviewers.
//
// # What happens, and in which order
//
// Package [belay/activities] is every side effect, one method each, safe to repeat. Package [belay/workflows] is the order
// in which they happen: start at AgentTask in task.go, whose loop reads as the process, and follow step, reply, decide,
// runBatch and finish. RunLedger keeps the decision about the outcome.
//
// Package [belay/events] reads back what happened: the history is the log, and this is its projection.
//
// # The programs
//
// Package [belay/worker] wires the adapters to the ports and serves. Package [belay/starter] is the belay command, for people.
// arch_test.go holds which of these may import which.
package belay

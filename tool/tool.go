// Package tool holds what a model may call: one Go file and one Markdown file each. A tool says what it is (Spec), what a
// call of it would touch (Plan) and how to perform the call in a sandbox (Run). Whether a call may run is not its concern.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"belay/agent"
	"belay/sandbox"
)

// Tool is one thing that a model may call.
type Tool interface {
	// Spec is what the model is told.
	Spec() agent.ToolSpec
	// Plan says what a call with these arguments would do. The arguments already fit the Spec's schema (Set.Check). dir is
	// where the task starts (Env.Dir of the later Run): relative paths start there, so that what is judged and what is
	// touched are the same. An error tells the model how to mend the arguments. Plan looks at nothing but its arguments.
	Plan(dir string, args json.RawMessage) (Plan, error)
	// Run performs a call. What the model can mend is an Observation with another status than ok; an error is the
	// runtime's concern and carries an agent.ErrorType.
	Run(ctx context.Context, env Env, args json.RawMessage) (agent.Observation, error)
}

// Plan is what a call would do.
type Plan struct {
	Effect    agent.Effect
	Risk      agent.Risk // the least that it counts for; policy may find more
	Resources agent.Resources
	// Command is the shell script that the call runs, for policy to analyse. Empty: it runs none.
	Command string
	// Question is what the call asks a person. Empty: it asks none. Such a call is answered, not run.
	Question string
	// Summary is the call in a few words, for people: "go test ./..." or "edit calc.go".
	Summary string
	// Timeout bounds the call; zero leaves it to the limits.
	Timeout time.Duration
}

// Env is where a call runs.
type Env struct {
	Call    agent.CallID
	Sandbox sandbox.Sandbox
	// Exec names the executions of this call; a tool that runs several appends to it.
	Exec sandbox.ExecID
	// Dir is where the task starts, absolute as the sandbox sees it.
	Dir string
	// Timeout is the longest that the call may take.
	Timeout time.Duration
	// Memory is what the calls of this run remember for each other.
	Memory Memory
	// Keep stores a whole output and gives its digest.
	Keep func(ctx context.Context, spool string) (agent.Digest, int64, error)
}

// Memory keeps small values by key for the whole run, surviving any crash: what a file held when the run last saw it, and
// what an edit was about to leave there, so that a repeated call recognises its own work.
type Memory interface {
	Get(ctx context.Context, key string) (value string, found bool, err error)
	Set(ctx context.Context, key, value string) error
}

package wire

import (
	"encoding/json"

	"belay/sandbox"
)

// AgentThreads is how many threads an agent may come to have. Where a launcher limits processes, they count.
const AgentThreads = 16

// Launcher is a program that starts agents. It gets a Launch on its standard input and ends with success when the agent is
// on its way; else it tells why on its standard error. It must see to it that nothing of an agent that has ended is left.
type Launcher struct {
	Program string          `json:"program"` // absolute path
	Spec    json.RawMessage `json:"spec"`    // what only the program understands
}

// Launch asks a launcher for one agent: the program Guest with the arguments "agent" and the path of AgentSocket in the
// folder Control, as process 1 of a PID namespace of this host.
type Launch struct {
	Spec      json.RawMessage `json:"spec"`
	Sandbox   sandbox.ID      `json:"sandbox"`
	Guest     string          `json:"guest"`     // absolute path, as are the next two
	Control   string          `json:"control"`   // folder
	Workspace string          `json:"workspace"` // folder
	ReadOnly  bool            `json:"read_only"` // the workspace is not to be written to
	UID       int             `json:"uid"`       // who the agent is
	GID       int             `json:"gid"`
	Profile   sandbox.Profile `json:"profile"`
}

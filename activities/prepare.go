package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"belay/agent"
	"belay/config"
	"belay/policy"
	"belay/sandbox"
	"belay/store"
	"belay/tool"
)

// PrepareInput asks for what a run needs to know before its first step.
type PrepareInput struct {
	Run  agent.RunRef `json:"run"`
	Task agent.Task   `json:"task"`
	// Head is the conversation to go on with; empty: a new one begins with the goal.
	Head  agent.Digest `json:"head,omitempty"`
	Notes []agent.Note `json:"notes,omitempty"`
}

// Prepared is what a run keeps of its configuration.
type Prepared struct {
	Head             agent.Digest   `json:"head"`
	Limits           agent.Limits   `json:"limits"`
	Ceiling          agent.Limits   `json:"ceiling"`
	Versions         agent.Versions `json:"versions"`
	Profile          string         `json:"profile"`
	SearchAttributes bool           `json:"search_attributes,omitempty"`
}

// Spec is the snapshot of an agent definition that a run keeps to, whatever the configuration becomes. It is a record of
// the run.
type Spec struct {
	Task    agent.Task             `json:"task"`
	Model   string                 `json:"model"`
	Tools   []string               `json:"tools"`
	Mode    agent.ConfirmationMode `json:"mode"`
	Profile string                 `json:"profile"`
	Limits  agent.Limits           `json:"limits"` // that the run began under
}

// dir is where the task starts, as the sandbox sees it.
func (s Spec) dir() string { return path.Join(sandbox.Workspace, s.Task.Workspace.Path) }

// Prepare checks that the task may run, fixes what it runs under and begins its conversation. A task that is wrong or not
// allowed fails here, before anything of it has run.
func (a *Activities) Prepare(ctx context.Context, in PrepareInput) (Prepared, error) {
	out, err := a.prepare(ctx, in)
	return out, a.short(ctx, err)
}

func (a *Activities) prepare(ctx context.Context, in PrepareInput) (Prepared, error) {
	bundle := a.c.Bundle()
	resolved, err := bundle.Resolve(in.Task)
	if err != nil {
		return Prepared{}, err
	}
	if err := a.hasSource(in.Task.Workspace); err != nil {
		return Prepared{}, err
	}
	spec := Spec{
		Task:    in.Task,
		Model:   resolved.Model.Name,
		Tools:   resolved.Agent.Tools,
		Mode:    resolved.Agent.Confirmation,
		Profile: resolved.Profile.Name,
		Limits:  resolved.Limits,
	}
	if err := a.allowChecks(bundle.Policy, spec, in.Task.Acceptance.Checks); err != nil {
		return Prepared{}, err
	}
	t := a.tenant(in.Run)
	if err := saveSpec(ctx, t, in.Run, spec); err != nil {
		return Prepared{}, err
	}
	head := in.Head
	if head == "" {
		if head, err = t.Append(ctx, "", opening(resolved, in.Task)); err != nil {
			return Prepared{}, fmt.Errorf("begin the conversation of run %s: %w", in.Run.Run, err)
		}
	}
	versions := resolved.Versions
	versions.Runtime = a.c.Version
	return Prepared{
		Head:             head,
		Limits:           resolved.Limits,
		Ceiling:          resolved.Ceiling,
		Versions:         versions,
		Profile:          spec.Profile,
		SearchAttributes: a.c.SearchAttributes,
	}, nil
}

func (a *Activities) hasSource(w agent.Workspace) error {
	root, _, err := a.source(w)
	if err != nil || root == nil {
		return err
	}
	return root.Close()
}

// allowChecks refuses a task whose acceptance checks policy would not let run unasked: nobody is asked for a check.
func (a *Activities) allowChecks(rules *policy.Set, spec Spec, checks []string) error {
	for i, command := range checks {
		d := rules.Decide(checkRequest(spec, command))
		if d.Verdict != agent.Allow {
			return agent.Errorf(agent.PolicyDenied, "acceptance.checks[%d]: %q: policy says %s: %s; expected a command that needs no approval",
				i, command, d.Verdict, because(d))
		}
	}
	return nil
}

// opening is the first turn of a conversation: who the agent is and what is asked of it.
func opening(r config.Resolved, t agent.Task) agent.Turn {
	var goal strings.Builder
	goal.WriteString(t.Goal)
	if len(t.Context) > 0 {
		goal.WriteString("\n\nWhat you should know:\n")
		for _, c := range t.Context {
			fmt.Fprintf(&goal, "- %s\n", c)
		}
	}
	if len(t.Acceptance.Criteria) > 0 {
		goal.WriteString("\n\nA reviewer will judge the outcome by:\n")
		for _, c := range t.Acceptance.Criteria {
			fmt.Fprintf(&goal, "- %s\n", c)
		}
	}
	if len(t.Acceptance.Checks) > 0 {
		goal.WriteString("\n\nWhen you say that you are done, these commands must exit 0:\n")
		for _, c := range t.Acceptance.Checks {
			fmt.Fprintf(&goal, "- %s\n", c)
		}
	}
	return agent.Turn{Messages: []agent.Message{
		{Role: agent.RoleSystem, Text: r.Agent.Prompt},
		{Role: agent.RoleUser, Text: goal.String()},
	}}
}

func saveSpec(ctx context.Context, t *store.Tenant, run agent.RunRef, s Spec) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("spec of run %s: %w", run.Run, err)
	}
	if err := t.PutRecord(ctx, record(run, "spec"), b); err != nil {
		return fmt.Errorf("spec of run %s: %w", run.Run, err)
	}
	return nil
}

// loaded is a run's spec with the tools that it names.
type loaded struct {
	Spec
	tools *tool.Set
}

// spec reads the snapshot that Prepare took. It never changes, so it is read once.
func (a *Activities) spec(ctx context.Context, run agent.RunRef) (loaded, error) {
	if l, ok := a.specs.Get(run); ok {
		return l, nil
	}
	b, err := a.tenant(run).Record(ctx, record(run, "spec"))
	if err != nil {
		return loaded{}, fmt.Errorf("spec of run %s: %w", run.Run, err)
	}
	var l loaded
	if err := json.Unmarshal(b, &l.Spec); err != nil {
		return loaded{}, agent.Errorf(agent.StateError, "spec of run %s: %w", run.Run, err)
	}
	if l.tools, err = tool.Default().Subset(l.Tools); err != nil {
		return loaded{}, agent.Errorf(agent.StateError, "tools of agent %s: %w", l.Task.Agent, err)
	}
	a.specs.Add(run, l)
	return l, nil
}

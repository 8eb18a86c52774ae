package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.temporal.io/sdk/activity"

	"belay/agent"
	"belay/sandbox"
	"belay/store"
)

// SandboxRef says where a run's sandbox is.
type SandboxRef struct {
	ID sandbox.ID `json:"id"`
	// Queue is served by the one host that has the sandbox.
	Queue      string `json:"queue"`
	Generation int    `json:"generation,omitempty"`
}

// SandboxID names the n-th sandbox of a run, counted from 1.
func SandboxID(run agent.RunRef, n int) sandbox.ID {
	return sandbox.ID(fmt.Sprintf("%s-g%d", strings.ReplaceAll(string(run.Run), "-", ""), n))
}

// AcquireInput asks for a sandbox with a workspace in it.
type AcquireInput struct {
	Run        agent.RunRef    `json:"run"`
	Generation int             `json:"generation"`
	Source     agent.Workspace `json:"source,omitzero"`
	// Tree is the checkpoint to restore; empty: the source is brought in.
	Tree    agent.Digest `json:"tree,omitempty"`
	Profile string       `json:"profile"`
	Notes   []agent.Note `json:"notes,omitempty"`
}

// Acquired is the sandbox and what is in it.
type Acquired struct {
	Sandbox  SandboxRef   `json:"sandbox"`
	Tree     agent.Digest `json:"tree"`
	Level    string       `json:"level"`
	Warnings []string     `json:"warnings,omitempty"`
}

// AcquireSandbox makes a sandbox on this host and fills its workspace. The sandbox's id carries the run and the
// generation, so an attempt that comes again finds its own, which nobody has used yet, and begins it anew.
func (a *Activities) AcquireSandbox(ctx context.Context, in AcquireInput) (Acquired, error) {
	t := a.startAttempt(ctx)
	var out Acquired
	err := t.run(ctx, func(ctx context.Context) (err error) {
		out, err = a.acquire(ctx, in)
		return err
	})
	return out, err
}

func (a *Activities) acquire(ctx context.Context, in AcquireInput) (Acquired, error) {
	profile, err := a.c.Bundle().Profile(in.Profile)
	if err != nil {
		return Acquired{}, err
	}
	id := SandboxID(in.Run, in.Generation)
	if err := a.own(ctx, id); err != nil {
		return Acquired{}, err
	}
	report, err := a.probed(ctx, profile)
	if err != nil {
		return Acquired{}, sandboxError(id, err)
	}
	if activity.GetInfo(ctx).Attempt > 1 { // an attempt before may have left it half filled
		if err := a.c.Sandbox.Destroy(ctx, id); err != nil {
			return Acquired{}, sandboxError(id, err)
		}
	}
	box, err := a.c.Sandbox.Create(ctx, id, profile)
	if err != nil {
		return Acquired{}, sandboxError(id, err)
	}
	skipped, err := a.fill(ctx, in, box)
	if err != nil {
		return Acquired{}, fmt.Errorf("fill the workspace of sandbox %s: %w", id, err)
	}
	saved, err := a.save(ctx, in.Run, box, id)
	if err != nil {
		return Acquired{}, err
	}
	warnings := slices.Clone(report.Warnings)
	for _, s := range append(skipped, saved.Skipped...) {
		warnings = append(warnings, "left out of the workspace: "+s)
	}
	return Acquired{
		Sandbox:  SandboxRef{ID: id, Queue: a.c.HostQueue, Generation: in.Generation},
		Tree:     saved.Tree,
		Level:    a.c.Level,
		Warnings: cutList(warnings, 20),
	}, nil
}

// probed tries what the host gives, once for each profile: it takes a sandbox to find out.
func (a *Activities) probed(ctx context.Context, p sandbox.Profile) (sandbox.Report, error) {
	a.probing.Lock()
	defer a.probing.Unlock()
	if report, ok := a.reports[p.Name]; ok && reflect.DeepEqual(report.profile, p) {
		return report.Report, nil
	}
	report, err := a.c.Sandbox.Probe(ctx, p)
	if err == nil {
		a.reports[p.Name] = probe{Report: report, profile: p}
	}
	return report, err
}

// probe is what was found out about the host for a profile.
type probe struct {
	sandbox.Report
	profile sandbox.Profile
}

// fill brings the workspace in, and says what of a source was left out.
func (a *Activities) fill(ctx context.Context, in AcquireInput, box sandbox.Sandbox) (skipped []string, err error) {
	root, err := box.Workspace()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if in.Tree != "" {
		return nil, a.tenant(in.Run).RestoreTree(ctx, in.Tree, root)
	}
	from, name, err := a.source(in.Source)
	if err != nil || from == nil {
		return nil, err
	}
	defer from.Close()
	return store.Import(ctx, from, name, root)
}

// source finds a workspace source below one of the roots, which it opens: nothing outside of it can be reached through
// it, by no link. There is none for the empty source.
func (a *Activities) source(w agent.Workspace) (root *os.Root, name string, err error) {
	if w.Source == "" {
		return nil, "", nil
	}
	for _, dir := range a.c.WorkspaceRoots {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, "", agent.Errorf(agent.StateError, "workspace root: %w", err)
		}
		for _, name := range candidates(dir, w.Source) {
			if _, err := root.Stat(name); err == nil {
				return root, name, nil
			}
		}
		root.Close()
	}
	return nil, "", agent.Errorf(agent.InvalidInput, "workspace.source: %q: no such folder or tar below the workspace roots (BELAY_WORKSPACE_ROOTS)", w.Source)
}

// candidates are what a source may mean in one root: a path in it, or one that begins with the root's own name, so that
// "examples/calc" is calc in the root examples.
func candidates(dir, source string) []string {
	names := []string{filepath.Clean(source)}
	if rest, ok := strings.CutPrefix(filepath.Clean(source), filepath.Base(dir)+string(filepath.Separator)); ok {
		names = append(names, rest)
	}
	return names
}

// save takes a checkpoint of a workspace while nothing in it runs.
func (a *Activities) save(ctx context.Context, run agent.RunRef, box sandbox.Sandbox, id sandbox.ID) (saved store.Saved, err error) {
	root, err := box.Workspace()
	if err != nil {
		return saved, sandboxError(id, err)
	}
	defer root.Close()
	err = box.Frozen(ctx, func() error {
		saved, err = a.tenant(run).SaveTree(ctx, root, filepath.Join(a.c.IndexDir, string(id)))
		return err
	})
	if err != nil {
		return saved, fmt.Errorf("checkpoint of sandbox %s: %w", id, err)
	}
	return saved, nil
}

// CheckpointInput asks for a checkpoint after a batch of calls.
type CheckpointInput struct {
	Run     agent.RunRef `json:"run"`
	Step    int          `json:"step"`
	Sandbox sandbox.ID   `json:"sandbox"`
	Notes   []agent.Note `json:"notes,omitempty"`
}

// CheckpointOutput names the workspace as it was.
type CheckpointOutput struct {
	Tree    agent.Digest `json:"tree"`
	Skipped []string     `json:"skipped,omitempty"`
}

// Checkpoint stores the workspace.
func (a *Activities) Checkpoint(ctx context.Context, in CheckpointInput) (CheckpointOutput, error) {
	t := a.startAttempt(ctx)
	var out CheckpointOutput
	err := t.run(ctx, func(ctx context.Context) error {
		box, err := a.c.Sandbox.Open(ctx, in.Sandbox)
		if err != nil {
			return sandboxError(in.Sandbox, err)
		}
		saved, err := a.save(ctx, in.Run, box, in.Sandbox)
		out = CheckpointOutput{Tree: saved.Tree, Skipped: cutList(saved.Skipped, 20)}
		return err
	})
	return out, err
}

// ReleaseInput gives a sandbox back.
type ReleaseInput struct {
	Sandbox sandbox.ID `json:"sandbox"`
}

// ReleaseSandbox destroys a sandbox and what this host kept for it.
func (a *Activities) ReleaseSandbox(ctx context.Context, in ReleaseInput) error {
	if err := a.c.Sandbox.Destroy(ctx, in.Sandbox); err != nil {
		return a.short(ctx, sandboxError(in.Sandbox, err))
	}
	return a.short(ctx, Forget(a.c.IndexDir, in.Sandbox))
}

// OwnerFile names the host file that says which workflow a sandbox belongs to.
func OwnerFile(indexDir string, id sandbox.ID) string {
	return filepath.Join(indexDir, string(id)+".owner")
}

// own notes whose a sandbox will be before it is made, so that none is ever without an owner.
func (a *Activities) own(ctx context.Context, id sandbox.ID) error {
	if err := os.MkdirAll(a.c.IndexDir, 0o755); err != nil {
		return agent.Errorf(agent.StateError, "index folder: %w", err)
	}
	owner := activity.GetInfo(ctx).WorkflowExecution.ID
	if err := os.WriteFile(OwnerFile(a.c.IndexDir, id), []byte(owner), 0o600); err != nil {
		return agent.Errorf(agent.StateError, "owner of sandbox %s: %w", id, err)
	}
	return nil
}

// Forget removes what a host keeps for a sandbox beside the sandbox itself.
func Forget(indexDir string, id sandbox.ID) error {
	for _, path := range []string{filepath.Join(indexDir, string(id)), OwnerFile(indexDir, id)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return agent.Errorf(agent.StateError, "forget sandbox %s: %w", id, err)
		}
	}
	return nil
}

// sandboxError gives a sandbox's failure its category.
func sandboxError(id sandbox.ID, err error) error {
	kind := agent.ToolError
	switch {
	case agent.TypeOf(err) != "":
		return err
	case errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrNotFound):
		kind = agent.SandboxLost
	case errors.Is(err, sandbox.ErrConflict):
		kind = agent.StateError
	case errors.Is(err, sandbox.ErrUnsupported), errors.Is(err, sandbox.ErrBusy):
		kind = agent.ResourceExhausted
	case errors.Is(err, sandbox.ErrDetached):
		return err
	}
	return agent.Errorf(kind, "sandbox %s: %w", id, err)
}

func cutList(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(list[:n:n], fmt.Sprintf("and %d more", len(list)-n))
}

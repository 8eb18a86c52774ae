package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"belay/agent"
	"belay/store"
)

func replyRecord(run agent.RunRef, step int) string {
	return record(run, "model", fmt.Sprintf("m%d", step))
}

func (a *Activities) storedReply(ctx context.Context, run agent.RunRef, step int) (out ModelOutput, found bool, err error) {
	name := replyRecord(run, step)
	b, err := a.tenant(run).Record(ctx, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return out, false, nil
	case err != nil:
		return out, false, fmt.Errorf("look for %s: %w", name, err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, false, agent.Errorf(agent.StateError, "%s: %w", name, err)
	}
	a.heads.Add(stepRef{run, step}, out.Head)
	return out, true, nil
}

// saveReply stores a reply under its step and gives what the step led to. Of two attempts that both have a reply the first
// to store it wins, so a step has one head for ever; the other's cost counts all the same.
func (a *Activities) saveReply(ctx context.Context, in ModelInput, out ModelOutput) (ModelOutput, error) {
	name := replyRecord(in.Run, in.Step)
	b, err := json.Marshal(out)
	if err != nil {
		return out, agent.Errorf(agent.StateError, "%s: %w", name, err)
	}
	first, created, err := a.tenant(in.Run).CreateRecord(ctx, name, b)
	if err != nil {
		return out, fmt.Errorf("store %s: %w", name, err)
	}
	if !created {
		spent := out.Usage
		out = ModelOutput{}
		if err := json.Unmarshal(first, &out); err != nil {
			return out, agent.Errorf(agent.StateError, "%s: %w", name, err)
		}
		out.Usage = spent
	}
	a.heads.Add(stepRef{in.Run, in.Step}, out.Head)
	return out, nil
}

// stepRef names one step of a run.
type stepRef struct {
	run  agent.RunRef
	step int
}

// headAfter is the conversation that a step of a run led to, where it is not given.
func (a *Activities) headAfter(ctx context.Context, run agent.RunRef, step int, given agent.Digest) (agent.Digest, error) {
	if given != "" {
		return given, nil
	}
	if head, ok := a.heads.Get(stepRef{run, step}); ok {
		return head, nil
	}
	out, found, err := a.storedReply(ctx, run, step)
	if err == nil && !found {
		err = agent.Errorf(agent.StateError, "run %s has no reply of step %d", run.Run, step)
	}
	return out.Head, err
}

func (a *Activities) observation(ctx context.Context, run agent.RunRef, d agent.Digest) (o agent.Observation, err error) {
	b, err := a.tenant(run).Get(ctx, d)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, agent.Errorf(agent.StateError, "observation %s: %w", d, err)
	}
	return o, nil
}

package tool

import (
	"context"
	"encoding/json"

	"belay/agent"
)

// Keys of Memory. Both are about files: what the run last saw in one, and what a call was about to leave in one.
func seenKey(abs string) string          { return "seen:" + abs }
func intentKey(call agent.CallID) string { return "intent:" + string(call) }

// lastSeen is the digest of what the run last saw in a file; empty when it never read or wrote it.
func lastSeen(ctx context.Context, env Env, abs string) (agent.Digest, error) {
	v, _, err := env.Memory.Get(ctx, seenKey(abs))
	if err != nil {
		return "", remembering(err, env, seenKey(abs))
	}
	return agent.Digest(v), nil
}

// saw remembers what the run saw in a file, or left there.
func saw(ctx context.Context, env Env, abs string, d agent.Digest) error {
	return remembering(env.Memory.Set(ctx, seenKey(abs), string(d)), env, seenKey(abs))
}

// intent is the one change that a call is about to make. It is remembered before the change, so that a repetition of the
// call after a crash can tell which of the two contents it finds.
type intent struct {
	Arguments agent.Digest `json:"arguments"` // of the call: an id may come back with arguments that a reviewer edited
	Path      string       `json:"path"`      // with every link followed
	Before    agent.Digest `json:"before"`    // empty: there was no file
	After     agent.Digest `json:"after"`
	Report    string       `json:"report"` // what the model is told when it is done; the content before may be gone by then
}

// intended is what this call meant to do when it ran before, if it did.
func intended(ctx context.Context, env Env, args agent.Digest) (intent, bool, error) {
	v, found, err := env.Memory.Get(ctx, intentKey(env.Call))
	if err != nil || !found {
		return intent{}, false, remembering(err, env, intentKey(env.Call))
	}
	var in intent
	if err := json.Unmarshal([]byte(v), &in); err != nil {
		return intent{}, false, agent.Errorf(agent.StateError, "call %s: memory %s: %w", env.Call, intentKey(env.Call), err)
	}
	return in, in.Arguments == args, nil
}

func (in intent) remember(ctx context.Context, env Env) error {
	v, err := json.Marshal(in)
	if err != nil {
		return agent.Errorf(agent.StateError, "call %s: %w", env.Call, err)
	}
	return remembering(env.Memory.Set(ctx, intentKey(env.Call), string(v)), env, intentKey(env.Call))
}

// remembering makes an error of Memory the runtime's concern. What is remembered is part of a run's state.
func remembering(err error, env Env, key string) error {
	switch {
	case err == nil:
		return nil
	case agent.TypeOf(err) == "" && category(err) == agent.ToolError:
		return agent.Errorf(agent.StateError, "call %s: memory %s: %w", env.Call, key, err)
	}
	return failure(err, "call %s: memory %s", env.Call, key)
}

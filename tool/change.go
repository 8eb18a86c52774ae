package tool

import (
	"context"
	"fmt"
	"os"

	"belay/agent"
)

// change is the change of one file that a call asks for. However often the call is repeated, the change happens once.
//
// The order is: remember the intent, replace the file in one step, remember what the file holds. A crash leaves one of
// these, and the repeated call finds out which by comparing the file with the intent:
//
//   - before the intent: nothing happened. The repetition is like the first time.
//   - after the intent, before the file: the file is as it was. The change is made; whether the run had read the file was
//     judged the first time, and the memory of it may be newer than a workspace that was restored from a checkpoint.
//   - after the file: it holds what was intended. The change is not made again (an edit would not match any more); what
//     the file holds is remembered, and the report of the first time is given.
//   - the file holds neither: something else changed it. Nothing is written.
type change struct {
	path string       // absolute; what was judged, so it must not lead elsewhere
	args agent.Digest // of the call's arguments
	// build gives what the file shall hold and what the model is told. seen is what the run last saw in the file, or what
	// it holds now if this call was let through before.
	build func(before content, seen agent.Digest) (after []byte, report string, err error)
}

func (c change) make(ctx context.Context, env Env, root *os.Root) (string, error) {
	before, err := c.load(root, env)
	if err != nil {
		return "", err
	}
	in, repeated, err := intended(ctx, env, c.args)
	if err != nil {
		return "", err
	}
	var seen agent.Digest
	switch {
	case !repeated || in.Path != c.path:
		seen, err = lastSeen(ctx, env, c.path)
	case before.digest == in.After:
		return in.Report, saw(ctx, env, c.path, in.After)
	case before.digest == in.Before:
		seen = in.Before
	default:
		return "", refuse("%s changed while this call was being repeated after a crash; read it again", short(env.Dir, c.path))
	}
	if err != nil {
		return "", err
	}
	return c.first(ctx, env, root, before, seen)
}

// first makes the change that no earlier run of this call has made.
func (c change) first(ctx context.Context, env Env, root *os.Root, before content, seen agent.Digest) (string, error) {
	after, report, err := c.build(before, seen)
	if err != nil {
		return "", err
	}
	if len(after) > maxFile {
		return "", refuse("%s would have %d bytes; the file tools handle at most %d", short(env.Dir, c.path), len(after), maxFile)
	}
	in := intent{Arguments: c.args, Path: c.path, Before: before.digest, After: contentDigest(after), Report: report}
	if in.After == in.Before {
		return report, saw(ctx, env, c.path, in.After)
	}
	if before.info != nil {
		if links, _ := linksAndOwner(before.info); links > 1 {
			in.Report += fmt.Sprintf("(the file had %d names; the others keep the old content)\n", links)
		}
	}
	if err := in.remember(ctx, env); err != nil {
		return "", err
	}
	if err := replace(root, c.path, tempName(env.Call, c.path), after, before.info); err != nil {
		return "", err
	}
	return in.Report, saw(ctx, env, c.path, in.After)
}

// tempName is where a call prepares a file's new content, next to the file.
func tempName(call agent.CallID, abs string) string {
	return ".belay-" + digestOf(string(call), abs).Short() + ".tmp"
}

// load reads the file that is to be changed. A path that leads elsewhere is refused: policy judged this path, and calls
// are put in order by their paths.
func (c change) load(root *os.Root, env Env) (content, error) {
	before, err := load(root, c.path)
	if err != nil {
		return content{}, err
	}
	if before.path != c.path {
		return content{}, refuse("%s is reached by a link; the file is %s: name that one",
			short(env.Dir, c.path), short(env.Dir, before.path))
	}
	return before, nil
}

// changePlan is the plan of a call that changes one file.
func changePlan(dir, verb, path string) (Plan, error) {
	abs, err := resolve(dir, path)
	if err != nil {
		return Plan{}, err
	}
	return Plan{
		Effect:    agent.EffectSandboxed,
		Risk:      agent.RiskMedium,
		Resources: agent.Resources{Reads: []string{abs}, Writes: []string{abs}},
		Summary:   summary(verb, short(dir, abs)),
	}, nil
}

package tool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"belay/agent"
)

// inWorkspaceOf does something with the files of a call's sandbox, from outside of it, and makes an observation of what
// came of it. do gives the text that the model gets.
func inWorkspaceOf(ctx context.Context, env Env, do func(root *os.Root) (string, error)) (agent.Observation, error) {
	start := time.Now()
	if err := context.Cause(ctx); err != nil {
		return agent.Observation{}, failure(err, "call %s", env.Call)
	}
	root, err := env.Sandbox.Workspace()
	if err != nil {
		return agent.Observation{}, failure(err, "call %s: open the workspace", env.Call)
	}
	defer root.Close()
	text, err := do(root)
	o, err := outcome(env, text, err)
	o.Duration = agent.Duration(time.Since(start))
	return o, err
}

// invalid is a call that was not run because its arguments are wrong.
func invalid(env Env, err error) agent.Observation {
	return agent.Observation{Call: env.Call, Status: agent.CallInvalid, Text: err.Error()}
}

// absent says that there is no such file, and which one was perhaps meant.
func absent(root *os.Root, env Env, abs string) error {
	hint := ""
	if entries, _, err := readFolder(root, path.Dir(abs)); err == nil {
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if near := agent.Nearest(path.Base(abs), names); near != "" {
			hint = "; did you mean " + short(env.Dir, path.Join(path.Dir(abs), near)) + "?"
		}
	}
	return refuse("%s: no such file%s", short(env.Dir, abs), hint)
}

// exists says whether there is anything at a path whose links were followed.
func exists(root *os.Root, abs string) (fs.FileInfo, error) {
	info, err := root.Lstat(inRoot(abs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

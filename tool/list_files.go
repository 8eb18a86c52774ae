package tool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"belay/agent"
)

//go:embed list_files.md
var listFilesText string

// Bounds of one list_files, beside MaxText and maxEntries. list_files.md says so.
const (
	defaultDepth = 2
	maxListed    = 1000
)

type listFilesArgs struct {
	Path   string `json:"path,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"The folder: relative to the folder that the task starts in, or absolute below /workspace. Default: the folder that the task starts in."`
	Depth  whole  `json:"depth,omitempty" jsonschema:"minimum=1,maximum=10" jsonschema_description:"How many levels to show; 1 is the folder's own entries. Default 2."`
	Hidden bool   `json:"hidden,omitempty" jsonschema_description:"Show also what begins with a dot. Default false."`
}

type listFiles struct{ described }

func newListFiles() Tool { return listFiles{describe[listFilesArgs]("list_files", listFilesText)} }

// Plan of a listing: it reads one folder.
func (listFiles) Plan(dir string, args json.RawMessage) (Plan, error) {
	a, err := read[listFilesArgs](args)
	if err != nil {
		return Plan{}, err
	}
	abs, err := resolve(dir, cmp.Or(a.Path, "."))
	if err != nil {
		return Plan{}, err
	}
	return Plan{
		Effect:    agent.EffectPure,
		Risk:      agent.RiskLow,
		Resources: agent.Resources{Reads: []string{abs}},
		Summary:   summary("list", short(dir, abs)),
		Timeout:   walkTimeout + walkMargin,
	}, nil
}

// Run lists what is in a folder.
func (listFiles) Run(ctx context.Context, env Env, args json.RawMessage) (agent.Observation, error) {
	a, err := read[listFilesArgs](args)
	if err != nil {
		return invalid(env, err), nil
	}
	abs, err := resolve(env.Dir, cmp.Or(a.Path, "."))
	if err != nil {
		return invalid(env, err), nil
	}
	depth := cmp.Or(int(a.Depth), defaultDepth)
	return inWorkspaceOf(ctx, env, func(root *os.Root) (string, error) {
		ctx, cancel := withinLimit(ctx, env)
		defer cancel()
		folder, err := folderAt(root, env, abs)
		if err != nil {
			return "", err
		}
		var list []found
		full, hidden := false, 0
		partial, err := walk(ctx, root, folder, func(f found) (enter, stop bool) {
			if !a.Hidden && strings.HasPrefix(f.entry.Name(), ".") {
				hidden++
				return false, false
			}
			if full = len(list) == maxListed; full {
				return false, true
			}
			list = append(list, f)
			return f.depth < depth, false
		})
		text := listing(root, env, folder, list, hidden, full || partial || err != nil)
		if errors.Is(err, errSlow) {
			return "", refusal{agent.CallTimeout, text + "stopped: it took too long; list a smaller folder\n"}
		}
		return text, err
	})
}

// listing writes entries as lines under a header, in the order of a tree.
func listing(root *os.Root, env Env, folder string, list []found, hidden int, partial bool) string {
	slices.SortFunc(list, func(a, b found) int {
		return slices.Compare(strings.Split(a.path, "/"), strings.Split(b.path, "/"))
	})
	var lines strings.Builder
	for _, f := range list {
		lines.WriteString(entryLine(root, strings.TrimPrefix(f.path, folder+"/"), f) + "\n")
	}
	header := fmt.Sprintf("%s: %s", short(env.Dir, folder), plural(len(list), "entry"))
	if hidden > 0 {
		header += fmt.Sprintf("; %d hidden left out", hidden)
	}
	text, left := lineCut(lines.String(), MaxText-5000)
	if partial || left > 0 {
		header += "; this is not all: list a folder below it, or fewer levels"
	}
	return header + "\n" + text
}

// entryLine shows one entry: folders with a slash, files with their size, links with where they lead.
func entryLine(root *os.Root, name string, f found) string {
	name = visibleName(name)
	switch m := f.entry.Type(); {
	case m.IsDir():
		return name + "/"
	case m&fs.ModeSymlink != 0:
		target, err := root.Readlink(inRoot(f.path))
		if err != nil {
			return name + " (link)"
		}
		return name + " -> " + visibleName(target)
	case m.IsRegular():
		info, err := root.Lstat(inRoot(f.path))
		if err != nil {
			return name + " (gone)"
		}
		return fmt.Sprintf("%s (%d bytes)", name, info.Size())
	default:
		return name + " (" + kindOf(m) + ")"
	}
}

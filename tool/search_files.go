package tool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"belay/agent"
)

//go:embed search_files.md
var searchFilesText string

const defaultResults = 100

type searchFilesArgs struct {
	Pattern    string `json:"pattern" jsonschema:"minLength=1,maxLength=1000" jsonschema_description:"A regular expression in RE2 syntax, matched with each line. Begin it with (?i) to ignore case."`
	Path       string `json:"path,omitempty" jsonschema:"maxLength=4096" jsonschema_description:"The folder or file to search: relative to the folder that the task starts in, or absolute below /workspace. Default: the folder that the task starts in."`
	Glob       string `json:"glob,omitempty" jsonschema:"maxLength=200" jsonschema_description:"Only files that match: *.go by name, or cmd/**/*.{yml,yaml} by path below the folder."`
	MaxResults whole  `json:"max_results,omitempty" jsonschema:"minimum=1,maximum=500" jsonschema_description:"Stop after this many lines. Default 100."`
}

type searchFiles struct{ described }

func newSearchFiles() Tool {
	return searchFiles{describe[searchFilesArgs]("search_files", searchFilesText)}
}

// Plan of a search: it reads one folder.
func (searchFiles) Plan(dir string, args json.RawMessage) (Plan, error) {
	q, err := newQuery(dir, args)
	if err != nil {
		return Plan{}, err
	}
	return Plan{
		Effect:    agent.EffectPure,
		Risk:      agent.RiskLow,
		Resources: agent.Resources{Reads: []string{q.abs}},
		Summary:   summary("search", quoted(q.pattern.String()), "in", short(dir, q.abs)),
		Timeout:   walkTimeout + walkMargin,
	}, nil
}

// query is what a search looks for.
type query struct {
	abs     string
	pattern *regexp.Regexp
	glob    *regexp.Regexp // nil: every file
	most    int            // lines
}

func newQuery(dir string, args json.RawMessage) (query, error) {
	a, err := read[searchFilesArgs](args)
	if err != nil {
		return query{}, err
	}
	q := query{most: cmp.Or(int(a.MaxResults), defaultResults)}
	if q.abs, err = resolve(dir, cmp.Or(a.Path, ".")); err != nil {
		return query{}, err
	}
	if q.pattern, err = regexp.Compile(a.Pattern); err != nil {
		return query{}, fmt.Errorf("pattern: %s; expected RE2 syntax, which has no lookaround and no backreferences",
			oneLine(strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
	}
	if a.Glob != "" {
		q.glob, err = compileGlob(a.Glob)
	}
	return q, err
}

// Run searches. A search that takes too long gives what it found until then.
func (searchFiles) Run(ctx context.Context, env Env, args json.RawMessage) (agent.Observation, error) {
	q, err := newQuery(env.Dir, args)
	if err != nil {
		return invalid(env, err), nil
	}
	return inWorkspaceOf(ctx, env, func(root *os.Root) (string, error) {
		ctx, cancel := withinLimit(ctx, env)
		defer cancel()
		s := search{query: q, env: env}
		err := s.run(ctx, root)
		if errors.Is(err, errSlow) {
			return "", refusal{agent.CallTimeout, s.report() + "stopped: it took too long; search a smaller folder, or give a glob\n"}
		}
		return s.report(), err
	})
}

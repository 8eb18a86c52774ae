package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"belay/agent"
)

// taskFlags are the ways to say what a task is: a file, or one flag for each field.
type taskFlags struct {
	file string
	id   string

	goal, agent, tenant, user, workspace, path, rerunOf string
	context, criteria, checks, reviewers                []string
	limits, labels                                      []string
	priority, quorum, checkRounds                       int
	expiresAfter                                        string

	flags *pflag.FlagSet // those above
}

func (t *taskFlags) register(cmd *cobra.Command) {
	f := pflag.NewFlagSet("task", pflag.ContinueOnError)
	f.StringVar(&t.file, "file", "", "task as JSON, - for standard input; the other flags of the task then have no place")
	f.StringVar(&t.id, "id", "", "workflow id; default: made from the goal")
	f.StringVar(&t.goal, "goal", "", "the outcome asked for")
	f.StringVar(&t.agent, "agent", "", "agent definition")
	f.StringVar(&t.tenant, "tenant", "", "who pays")
	f.StringVar(&t.user, "user", "", "who asks")
	f.StringVar(&t.workspace, "workspace", "", "folder or tar below one of the worker's workspace roots")
	f.StringVar(&t.path, "path", "", "subfolder of the workspace to start in")
	f.StringArrayVar(&t.context, "context", nil, "a fact for the model; may be repeated")
	f.StringArrayVar(&t.criteria, "criterion", nil, "what the reviewer judges; may be repeated")
	f.StringArrayVar(&t.checks, "check", nil, "shell command that must exit 0 when the agent is done; may be repeated")
	f.StringSliceVar(&t.reviewers, "reviewer", nil, "who may decide about the outcome; may be repeated")
	f.IntVar(&t.checkRounds, "check-rounds", 0, "how often failed checks go back to the model; default: 2")
	f.IntVar(&t.quorum, "quorum", 0, "how many reviewers must accept; default: 1")
	f.StringVar(&t.expiresAfter, "expires-after", "", "how long the decision about the outcome may take, such as 24h; default: 72h")
	f.StringArrayVar(&t.limits, "limit", nil, "limit as name=value, such as max_cost_usd=2; may be repeated")
	f.StringArrayVar(&t.labels, "label", nil, "label as name=value; may be repeated")
	f.IntVar(&t.priority, "priority", 0, "1 (most urgent) to 5")
	f.StringVar(&t.rerunOf, "rerun-of", "", "workflow id of an earlier task that this one supersedes")
	cmd.Flags().AddFlagSet(f)
	t.flags = f
}

// misplaced says which flag can't stand where it was given.
func (t *taskFlags) misplaced() (err error) {
	t.flags.VisitAll(func(f *pflag.Flag) {
		switch {
		case err != nil || !f.Changed:
		case f.Value.Type() == "int" && f.Value.String() == "0":
			err = usagef("--%s: 0; expected at least 1", f.Name)
		case t.file != "" && f.Name != "file" && f.Name != "id":
			err = usagef("--%s: has no place with --file, whose task says it", f.Name)
		}
	})
	return err
}

// read gives the task as it is to be sent, validated. The goal may also be an argument.
func (t *taskFlags) read(args []string, stdin io.Reader) ([]byte, agent.Task, error) {
	if err := t.misplaced(); err != nil {
		return nil, agent.Task{}, err
	}
	if len(args) > 0 {
		switch {
		case t.file != "":
			return nil, agent.Task{}, usagef("goal: given twice: %q and in --file %s", args[0], t.file)
		case t.goal != "":
			return nil, agent.Task{}, usagef("goal: given twice: %q and --goal %q", args[0], t.goal)
		}
		t.goal = args[0]
	}
	raw, err := t.raw(stdin)
	if err != nil {
		return nil, agent.Task{}, err
	}
	task, err := agent.DecodeTask(raw)
	if err != nil && t.file != "" {
		return nil, agent.Task{}, usagef("%s: %w", t.file, err)
	}
	return raw, task, err
}

func (t *taskFlags) raw(stdin io.Reader) ([]byte, error) {
	switch t.file {
	case "":
		return t.encode()
	case "-":
		return io.ReadAll(io.LimitReader(stdin, agent.MaxTask+1))
	}
	b, err := os.ReadFile(t.file)
	if err != nil {
		return nil, usagef("--file: %w", err)
	}
	return b, nil
}

// encode writes the fields that were given.
func (t *taskFlags) encode() ([]byte, error) {
	limits, err := assignments("--limit", t.limits)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	for _, l := range t.labels {
		k, v, ok := strings.Cut(l, "=")
		if !ok {
			return nil, usagef("--label: %q; expected name=value", l)
		}
		if _, twice := labels[k]; twice {
			return nil, usagef("--label: %s is given twice", k)
		}
		labels[k] = v
	}
	task := map[string]any{
		"goal": t.goal, "agent": t.agent, "tenant": t.tenant, "user": t.user, "rerun_of": t.rerunOf, "priority": t.priority,
		"context": t.context, "labels": labels, "limits": limits,
		"workspace": given(map[string]any{"source": t.workspace, "path": t.path}),
		"acceptance": given(map[string]any{
			"criteria": t.criteria, "checks": t.checks, "reviewers": t.reviewers, "quorum": t.quorum, "expires_after": t.expiresAfter, "check_rounds": t.checkRounds,
		}),
	}
	return json.Marshal(given(task))
}

// given leaves out what has no value.
func given(fields map[string]any) map[string]any {
	for k, v := range fields {
		switch v := v.(type) {
		case string:
			if v == "" {
				delete(fields, k)
			}
		case int:
			if v == 0 {
				delete(fields, k)
			}
		default:
			if b, err := json.Marshal(v); err == nil && (string(b) == "null" || string(b) == "{}") {
				delete(fields, k)
			}
		}
	}
	return fields
}

// assignments reads name=value flags into an object; values that are not JSON numbers are strings.
func assignments(flag string, list []string) (map[string]any, error) {
	fields := map[string]any{}
	for _, a := range list {
		name, value, ok := strings.Cut(a, "=")
		if !ok || name == "" {
			return nil, usagef("%s: %q; expected name=value", flag, a)
		}
		if _, twice := fields[name]; twice {
			return nil, usagef("%s: %s is given twice", flag, name)
		}
		fields[name] = value
		if number.MatchString(value) {
			fields[name] = json.Number(value)
		}
	}
	return fields, nil
}

var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// workflowID is the id of a task that was given none: a few words of its goal, and something that no other has.
func (t *taskFlags) workflowID(goal string) string {
	if t.id != "" {
		return t.id
	}
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(goal), "-"), "-")
	if len(slug) > 40 {
		slug = strings.TrimRight(slug[:40], "-")
	}
	if slug == "" {
		slug = "task"
	}
	return fmt.Sprintf("%s-%s", slug, uuid.NewString()[:8])
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"belay/activities"
	"belay/agent"
	"belay/policy"
	"belay/sandbox"
	"belay/strictyaml"
	"belay/tool"
)

func (c *cli) policyVerb() *cobra.Command {
	group := &cobra.Command{
		Use:     "policy <check|explain>",
		Short:   "Check the policy, or explain what it says about a call",
		Example: "  belay policy check\n  belay policy explain --tool shell --argument command='rm -rf build'",
		Args:    cobra.ArbitraryArgs,
		RunE:    noSuchVerb,
	}
	group.AddCommand(c.policyCheckVerb(), c.policyExplainVerb())
	return group
}

func (c *cli) policyCheckVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "check [file]",
		Short:   "Compile the rules and try their examples",
		Example: "  belay policy check\n  belay policy check my-rules.yaml",
		Args:    takes("[file]"),
		RunE: func(_ *cobra.Command, args []string) error {
			pattern := filepath.Join(c.set.Config, "policy", "*.yaml")
			if len(args) == 1 {
				pattern = args[0]
			}
			dir := filepath.Dir(pattern)
			files, err := filepath.Glob(pattern)
			if err != nil || len(files) == 0 {
				return usagef("%s: no such file; expected YAML files with rules", pattern)
			}
			for i := range files {
				files[i] = filepath.Base(files[i])
			}
			set, err := policy.Load(os.DirFS(dir), files...)
			if err != nil {
				return usagef("%w", strictyaml.Within(dir, err))
			}
			if c.asJSON {
				return c.object(map[string]any{"ok": true, "policy": set.Digest(), "files": files})
			}
			c.say("%s: good; digest %s", strings.Join(files, ", "), set.Digest().Short())
			return nil
		},
	}
}

// explained is what is to be explained.
type explained struct {
	tool, agent, tenant, user string
	arguments                 []string
}

func (c *cli) policyExplainVerb() *cobra.Command {
	var x explained
	cmd := &cobra.Command{
		Use:     "explain --tool <tool> --argument name=value",
		Short:   "Say what the policy decides about a call, and why",
		Example: "  belay policy explain --tool shell --argument command='rm -rf build' --json",
		Args:    takes(),
		RunE: func(*cobra.Command, []string) error {
			return c.explain(x)
		},
	}
	f := cmd.Flags()
	f.StringVar(&x.tool, "tool", "", "tool that is called")
	f.StringArrayVar(&x.arguments, "argument", nil, "argument as name=value; may be repeated")
	f.StringVar(&x.agent, "agent", "default", "agent definition")
	f.StringVar(&x.tenant, "tenant", "default", "who pays")
	f.StringVar(&x.user, "user", "anonymous", "who asks")
	return cmd
}

// explanation is a decision with everything that it was decided on.
type explanation struct {
	agent.Decision
	Facts facts `json:"facts"`
}

// facts are what is known of a call.
type facts struct {
	Tool      string                 `json:"tool"`
	Arguments map[string]any         `json:"args"`
	Tenant    agent.TenantID         `json:"tenant"`
	User      agent.UserID           `json:"user"`
	Agent     string                 `json:"agent"`
	Mode      agent.ConfirmationMode `json:"mode"`
	Effect    agent.Effect           `json:"effect"`
	Resources agent.Resources        `json:"resources"`
	Shell     *policy.Shell          `json:"shell,omitempty"`
}

func (c *cli) explain(x explained) error {
	b, err := c.bundle()
	if err != nil {
		return err
	}
	a, ok := b.Agents[x.agent]
	if !ok {
		return usagef("--agent: %q is not in %s", x.agent, c.set.Config)
	}
	r, err := x.request(a.Confirmation)
	if err != nil {
		return err
	}
	e := explanation{b.Policy.Decide(r), facts{r.Tool, r.Arguments, r.Tenant, r.User, r.Agent, r.Mode, r.Effect, r.Resources, r.Shell}}
	if c.asJSON {
		return c.object(e)
	}
	c.say("%s · risk %s · effect %s", e.Verdict, e.Risk, r.Effect)
	for _, reason := range policy.Matched(e.Decision).Reasons {
		c.say("  %s by %s: %s", reason.Effect, reason.Rule, strings.TrimSpace(reason.Reason))
	}
	if r.Shell != nil {
		for _, f := range r.Shell.Findings {
			c.say("  %s", f)
		}
	}
	if e.Verdict == agent.RequireApproval {
		c.say("  may approve: %s", orAnyone(e.Reviewers))
	}
	return nil
}

// request makes of the flags what the gate makes of a model's call.
func (x explained) request(mode agent.ConfirmationMode) (policy.Request, error) {
	if x.tool == "" {
		return policy.Request{}, usagef("--tool: missing; expected the tool that is called")
	}
	call, err := x.call()
	if err != nil {
		return policy.Request{}, err
	}
	tools := tool.Default()
	args, err := tools.Check(call)
	if err != nil {
		return policy.Request{}, usagef("--tool, --argument: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	t, _ := tools.Lookup(x.tool) // Check knows it
	plan, err := t.Plan(sandbox.Workspace, args)
	if err != nil {
		return policy.Request{}, usagef("--argument: %w", err)
	}
	task := agent.Task{Tenant: agent.TenantID(x.tenant), User: agent.UserID(x.user), Agent: x.agent}
	return activities.Request(activities.Spec{Task: task, Mode: mode}, x.tool, sandbox.Workspace, args, plan), nil
}

// call reads the arguments as their types in the tool's schema ask: what is not a string there is JSON.
func (x explained) call() (agent.ToolCall, error) {
	call := agent.ToolCall{ID: agent.NewCallID(1), Tool: x.tool}
	var schema struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if t, ok := tool.Default().Lookup(x.tool); ok {
		if err := json.Unmarshal(t.Spec().Schema, &schema); err != nil {
			return call, fmt.Errorf("schema of %s: %w", x.tool, err)
		}
	}
	args := map[string]any{}
	for _, a := range x.arguments {
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			return call, usagef("--argument: %q; expected name=value", a)
		}
		args[name] = value
		if p := schema.Properties[name]; p.Type != "string" && json.Valid([]byte(value)) {
			args[name] = json.RawMessage(value)
		}
	}
	raw, err := json.Marshal(args)
	call.Arguments = string(raw)
	return call, err
}

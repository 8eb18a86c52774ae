package policy

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"belay/agent"
)

// example is a request that a rule must or must not match.
type example struct {
	facts map[string]any
	at    string // file:line
}

var (
	idForm   = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	userForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]{0,63}$`)
)

// rule reads one rule and checks it against its own examples.
func (f file) rule(env *cel.Env, n *yaml.Node) (rule, error) {
	fields, err := f.mapping(n, "rule", "id", "effect", "when", "reason", "approval", "sandbox", "examples")
	if err != nil {
		return rule{}, err
	}
	for _, name := range []string{"id", "effect", "when", "reason", "examples"} {
		if fields[name] == nil {
			return rule{}, f.errorf(n, "rule%s: %s: missing; every rule has id, effect, when, reason and examples", named(fields["id"]), name)
		}
	}
	r := rule{at: fmt.Sprintf("%s:%d", f.name, n.Line)}
	if r.id, err = f.text(fields["id"], "rule: id"); err != nil {
		return rule{}, err
	}
	if !idForm.MatchString(r.id) || isPseudo(r.id) {
		return rule{}, f.errorf(fields["id"], "rule: id: %q; expected lower-case words joined by dashes, and none of the pseudo-rules", r.id)
	}
	what := "rule" + named(fields["id"])
	effect, err := f.oneOf(fields["effect"], what+": effect", string(EffectDeny), string(EffectRequireApproval), string(EffectRequireSandbox), string(EffectAllow))
	if err != nil {
		return rule{}, err
	}
	r.effect = Effect(effect)
	if r.reason, err = f.text(fields["reason"], what+": reason"); err != nil {
		return rule{}, err
	}
	if err := f.obligations(&r, n, fields, what); err != nil {
		return rule{}, err
	}
	if r.condition, err = f.condition(env, fields["when"], what); err != nil {
		return rule{}, err
	}
	return r, f.examples(&r, fields["examples"], what)
}

func named(id *yaml.Node) string {
	if id == nil {
		return ""
	}
	return fmt.Sprintf(" %q", id.Value)
}

func isPseudo(id string) bool {
	switch id {
	case RuleDefaultDeny, RuleEvaluationError, RuleConfirmAlways, RuleConfirmRisky:
		return true
	}
	return false
}

// obligations reads what only some effects have: approval and sandbox.
func (f file) obligations(r *rule, n *yaml.Node, fields map[string]*yaml.Node, what string) error {
	if sandbox := fields["sandbox"]; sandbox != nil {
		if r.effect != EffectRequireSandbox {
			return f.errorf(sandbox, "%s: sandbox: only a rule with effect require_sandbox has one", what)
		}
		level, err := f.oneOf(sandbox, what+": sandbox", Levels()...)
		if err != nil {
			return err
		}
		r.sandbox = level
	} else if r.effect == EffectRequireSandbox {
		return f.errorf(n, "%s: sandbox: missing; expected one of %v", what, Levels())
	}
	approval := fields["approval"]
	if approval == nil {
		return nil
	}
	if r.effect != EffectRequireApproval {
		return f.errorf(approval, "%s: approval: only a rule with effect require_approval has one", what)
	}
	asked, err := f.mapping(approval, what+": approval", "reviewers")
	if err != nil {
		return err
	}
	if asked["reviewers"] == nil {
		return nil
	}
	reviewers, err := f.texts(asked["reviewers"], what+": approval: reviewers")
	for _, who := range reviewers {
		if !userForm.MatchString(who) {
			return f.errorf(asked["reviewers"], "%s: approval: reviewers: %q; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit", what, who)
		}
		r.reviewers = append(r.reviewers, agent.UserID(who))
	}
	return err
}

func (f file) condition(env *cel.Env, n *yaml.Node, what string) (condition, error) {
	text, err := f.text(n, what+": when")
	if err != nil {
		return condition{}, err
	}
	c, err := compile(env, text)
	if err != nil {
		line, column := positionIn(err, scalar{n, f})
		return condition{}, fmt.Errorf("%s:%d:%d: %s: when: %w", f.name, line, column, what, err)
	}
	return c, nil
}

// examples reads a rule's examples and holds its condition against them.
func (f file) examples(r *rule, n *yaml.Node, what string) error {
	lists, err := f.mapping(n, what+": examples", "match", "no_match")
	if err != nil {
		return err
	}
	for _, list := range []struct {
		name string
		want bool
	}{{"match", true}, {"no_match", false}} {
		at := fmt.Sprintf("%s: examples: %s", what, list.name)
		if lists[list.name] == nil {
			return f.errorf(n, "%s: missing; expected a list of requests", at)
		}
		items, err := f.sequence(lists[list.name], at)
		if err != nil {
			return err
		}
		if list.want && len(items) == 0 {
			return f.errorf(lists[list.name], "%s: empty; expected at least one request", at)
		}
		for _, item := range items {
			request, err := f.request(item, at)
			if err != nil {
				return err
			}
			e := example{request.facts(), fmt.Sprintf("%s:%d", f.name, item.Line)}
			got, err := r.condition.holds(e.facts)
			if err != nil {
				return f.errorf(item, "%s: the condition can't be evaluated: %s", at, oneLine(err.Error()))
			}
			if got != list.want {
				return f.errorf(item, "%s: the condition is %v for this example; expected %v", at, got, list.want)
			}
			r.examples = append(r.examples, e)
		}
	}
	return nil
}

// request reads an example's request and fills in what it leaves out.
func (f file) request(n *yaml.Node, what string) (Request, error) {
	r := Request{Tenant: "default", User: "anonymous", Agent: "default", Mode: agent.ConfirmNever, Effect: agent.EffectSandboxed, Risk: agent.RiskLow}
	fields, err := f.mapping(n, what, "tool", "args", "command", "reads", "writes", "effect", "risk", "tenant", "user", "agent", "mode")
	if err != nil {
		return r, err
	}
	if fields["tool"] == nil {
		return r, f.errorf(n, "%s: tool: missing; expected the name of a tool", what)
	}
	for _, s := range []struct {
		name  string
		set   func(string)
		known []string
	}{
		{"tool", func(s string) { r.Tool = s }, nil},
		{"tenant", func(s string) { r.Tenant = agent.TenantID(s) }, nil},
		{"user", func(s string) { r.User = agent.UserID(s) }, nil},
		{"agent", func(s string) { r.Agent = s }, nil},
		{"mode", func(s string) { r.Mode = agent.ConfirmationMode(s) }, []string{"always", "risky", "never"}},
		{"effect", func(s string) { r.Effect = agent.Effect(s) }, []string{"pure", "sandboxed", "external"}},
		{"risk", func(s string) { r.Risk = agent.Risk(s) }, []string{"low", "medium", "high"}},
	} {
		if fields[s.name] == nil {
			continue
		}
		text, err := f.word(fields[s.name], what+": "+s.name, s.known)
		if err != nil {
			return r, err
		}
		s.set(text)
	}
	if err := f.touched(&r, fields, what); err != nil {
		return r, err
	}
	return r, f.arguments(&r, fields, what)
}

// word gives a string, one of known where there are any.
func (f file) word(n *yaml.Node, what string, known []string) (string, error) {
	if len(known) == 0 {
		return f.text(n, what)
	}
	return f.oneOf(n, what, known...)
}

func (f file) touched(r *Request, fields map[string]*yaml.Node, what string) error {
	for _, list := range []struct {
		name string
		into *[]string
	}{{"reads", &r.Resources.Reads}, {"writes", &r.Resources.Writes}} {
		if fields[list.name] == nil {
			continue
		}
		paths, err := f.texts(fields[list.name], what+": "+list.name)
		if err != nil {
			return err
		}
		for _, p := range paths {
			if !path.IsAbs(p) {
				return f.errorf(fields[list.name], "%s: %s: %q; expected an absolute path as the sandbox sees it", what, list.name, p)
			}
		}
		*list.into = paths
	}
	return nil
}

// arguments reads args as the JSON that a model would send, and command.
func (f file) arguments(r *Request, fields map[string]*yaml.Node, what string) error {
	r.Arguments = map[string]any{}
	if n := fields["args"]; n != nil {
		if n.Kind != yaml.MappingNode {
			return f.errorf(n, "%s: args: %s; expected a mapping", what, kindOf(n))
		}
		var args any
		if err := n.Decode(&args); err != nil {
			return f.errorf(n, "%s: args: %s", what, oneLine(err.Error()))
		}
		raw, err := json.Marshal(args)
		if err != nil {
			return f.errorf(n, "%s: args: %s; expected what JSON can hold", what, oneLine(err.Error()))
		}
		if err := json.Unmarshal(raw, &r.Arguments); err != nil {
			return f.errorf(n, "%s: args: %v", what, err)
		}
	}
	if n := fields["command"]; n != nil {
		command, err := f.text(n, what+": command")
		if err != nil {
			return err
		}
		shell := Analyze(command)
		r.Shell, r.Arguments["command"] = &shell, command
	}
	return nil
}

package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"

	"belay/agent"
)

// example is a request that a rule must or must not match.
type example struct {
	facts map[string]any
	at    string // file:line
}

// writtenRequest is an example as it stands in a file.
type writtenRequest struct {
	Tool    string                 `yaml:"tool"`
	Args    map[string]any         `yaml:"args"`
	Command string                 `yaml:"command"`
	Reads   []string               `yaml:"reads"`
	Writes  []string               `yaml:"writes"`
	Effect  agent.Effect           `yaml:"effect"`
	Risk    agent.Risk             `yaml:"risk"`
	Tenant  agent.TenantID         `yaml:"tenant"`
	User    agent.UserID           `yaml:"user"`
	Agent   string                 `yaml:"agent"`
	Mode    agent.ConfirmationMode `yaml:"mode"`
}

// examples checks a rule's examples and holds its condition against them, unless it is the zero condition.
func (r *reader) examples(at string, w writtenRule, c condition) (all []example) {
	if !r.doc.Has(at) {
		return nil
	}
	for _, list := range []struct {
		path     string
		requests []writtenRequest
		want     bool
	}{{at + ".match", w.Examples.Match, true}, {at + ".no_match", w.Examples.NoMatch, false}} {
		switch {
		case !r.doc.Has(list.path):
			r.wrong(list.path, "missing; expected a list of requests")
		case list.want && len(list.requests) == 0:
			r.wrong(list.path, "empty; expected at least one request")
		}
		for i, request := range list.requests {
			path := fmt.Sprintf("%s[%d]", list.path, i)
			before := len(r.problems)
			e := example{r.request(path, request).facts(), r.doc.Place(path)}
			if c.program == nil || len(r.problems) > before {
				continue
			}
			if got, err := c.holds(e.facts); err != nil {
				r.wrong(path, "the condition can't be evaluated: %v", err)
			} else if got != list.want {
				r.wrong(path, "the condition is %v for this example; expected %v", got, list.want)
			}
			all = append(all, e)
		}
	}
	return all
}

// request checks an example's request and fills in what it leaves out.
func (r *reader) request(at string, w writtenRequest) Request {
	if !r.doc.Has(at + ".tool") {
		r.wrong(at+".tool", "missing; expected the name of a tool")
	}
	for _, text := range []struct{ name, value string }{
		{"tool", w.Tool}, {"command", w.Command}, {"tenant", string(w.Tenant)}, {"user", string(w.User)}, {"agent", w.Agent},
	} {
		r.notBlank(at+"."+text.name, text.value)
	}
	r.oneOf(at+".mode", string(w.Mode), string(agent.ConfirmAlways), string(agent.ConfirmRisky), string(agent.ConfirmNever))
	r.oneOf(at+".effect", string(w.Effect), string(agent.EffectPure), string(agent.EffectSandboxed), string(agent.EffectExternal))
	r.oneOf(at+".risk", string(w.Risk), string(agent.RiskLow), string(agent.RiskMedium), string(agent.RiskHigh))
	r.absolute(at+".reads", w.Reads)
	r.absolute(at+".writes", w.Writes)
	request := Request{
		Tool:      w.Tool,
		Arguments: r.arguments(at+".args", w.Args),
		Resources: agent.Resources{Reads: w.Reads, Writes: w.Writes},
		Tenant:    cmp.Or(w.Tenant, "default"),
		User:      cmp.Or(w.User, "anonymous"),
		Agent:     cmp.Or(w.Agent, "default"),
		Mode:      cmp.Or(w.Mode, agent.ConfirmNever),
		Effect:    cmp.Or(w.Effect, agent.EffectSandboxed),
		Risk:      cmp.Or(w.Risk, agent.RiskLow),
	}
	if w.Command != "" {
		shell := Analyze(w.Command)
		request.Shell, request.Arguments["command"] = &shell, w.Command
	}
	return request
}

func (r *reader) absolute(at string, paths []string) {
	for i, p := range paths {
		if !path.IsAbs(p) {
			r.wrong(fmt.Sprintf("%s[%d]", at, i), "%.80q; expected an absolute path as the sandbox sees it", p)
		}
	}
}

// arguments gives args as a model would send them: decoded JSON, in which every number is a float64.
func (r *reader) arguments(path string, args map[string]any) map[string]any {
	decoded := map[string]any{}
	if len(args) == 0 {
		return decoded
	}
	raw, err := json.Marshal(args)
	if err == nil {
		err = json.Unmarshal(raw, &decoded)
	}
	if err != nil {
		r.wrong(path, "%v; expected what JSON can hold", err)
	}
	return decoded
}

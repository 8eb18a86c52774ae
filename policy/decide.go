package policy

import (
	"cmp"
	"fmt"
	"slices"

	"belay/agent"
)

// The pseudo-rules: reasons that no file holds.
const (
	RuleDefaultDeny     = "default-deny"     // nothing matched
	RuleEvaluationError = "evaluation-error" // a condition failed, so all is denied
	RuleConfirmAlways   = "confirm-always"   // the agent's mode asks about every call that is not pure
	RuleConfirmRisky    = "confirm-risky"    // the agent's mode asks about calls of high risk
)

// Effect is what a rule asks for when its condition holds.
type Effect string

// The effects of rules.
const (
	EffectDeny            Effect = "deny"
	EffectRequireApproval Effect = "require_approval"
	EffectAllow           Effect = "allow"
	EffectRequireSandbox  Effect = "require_sandbox" // decides nothing: raises the isolation level
)

// strictness orders effects: the strictest is 0. What does not decide comes last.
func (e Effect) strictness() int {
	return slices.Index([]Effect{EffectDeny, EffectRequireApproval, EffectAllow, EffectRequireSandbox}, e)
}

// Levels names the isolation levels that a rule may require, weakest first.
func Levels() []string { return []string{"process", "container", "gvisor", "microvm"} }

// Decide evaluates every rule on a request. Reasons lists all rules: those that matched first, then by strictness, then by
// name. The same set and request give the same bytes. The zero Set denies. It is safe for concurrent use.
func (s *Set) Decide(r Request) agent.Decision {
	d := agent.Decision{Risk: r.risk(), Policy: s.digest}
	facts := r.facts()
	for _, rule := range s.rules {
		matched, err := rule.condition.holds(facts)
		reason := agent.Reason{Rule: rule.id, Effect: string(rule.effect), Matched: matched}
		switch {
		case err != nil:
			d.Reasons = append(d.Reasons, pseudo(RuleEvaluationError, EffectDeny, fmt.Sprintf("Rule %s can't be evaluated: %v", rule.id, err)))
		case matched:
			reason.Reason = rule.reason
			d.Sandbox = higherLevel(d.Sandbox, rule.sandbox)
			d.Reviewers = append(d.Reviewers, rule.reviewers...)
		}
		d.Reasons = append(d.Reasons, reason)
	}
	d.Verdict = verdictOf(d.Reasons)
	if d.Verdict == agent.Allow {
		if reason, tightens := confirmation(r, d.Risk); tightens {
			d.Verdict = agent.RequireApproval
			d.Reasons = append(d.Reasons, reason)
		}
	}
	if !slices.ContainsFunc(d.Reasons, decides) {
		d.Reasons = append(d.Reasons, pseudo(RuleDefaultDeny, EffectDeny, "No rule allows this call."))
	}
	slices.SortFunc(d.Reasons, byWeight)
	slices.Sort(d.Reviewers)
	d.Reviewers = slices.Compact(d.Reviewers)
	return d
}

// Explain gives the reasons of Decide.
func (s *Set) Explain(r Request) []agent.Reason { return s.Decide(r).Reasons }

// Matched gives a decision without the rules that did not match: the part of it that is worth keeping in a history, as the
// rest can be had again from the policy's digest.
func Matched(d agent.Decision) agent.Decision {
	d.Reasons = slices.DeleteFunc(slices.Clone(d.Reasons), func(r agent.Reason) bool { return !r.Matched })
	return d
}

func pseudo(rule string, effect Effect, why string) agent.Reason {
	return agent.Reason{Rule: rule, Effect: string(effect), Reason: why, Matched: true}
}

// decides says whether a reason settles the verdict.
func decides(r agent.Reason) bool { return r.Matched && Effect(r.Effect) != EffectRequireSandbox }

// verdictOf is the strictest effect among the rules that matched; deny when none decides.
func verdictOf(reasons []agent.Reason) agent.Verdict {
	strictest := EffectRequireSandbox
	for _, r := range reasons {
		if e := Effect(r.Effect); decides(r) && e.strictness() < strictest.strictness() {
			strictest = e
		}
	}
	switch strictest {
	case EffectAllow:
		return agent.Allow
	case EffectRequireApproval:
		return agent.RequireApproval
	}
	return agent.Deny
}

// confirmation says whether the agent's mode puts an allowed call before a person.
func confirmation(r Request, risk agent.Risk) (agent.Reason, bool) {
	switch r.Mode {
	case agent.ConfirmNever:
		return agent.Reason{}, false
	case agent.ConfirmRisky:
		return pseudo(RuleConfirmRisky, EffectRequireApproval, "The agent asks before calls of high risk."), risk == agent.RiskHigh
	}
	return pseudo(RuleConfirmAlways, EffectRequireApproval, "The agent asks before every call that changes something."), r.Effect != agent.EffectPure
}

func higherLevel(a, b string) string {
	if slices.Index(Levels(), b) > slices.Index(Levels(), a) {
		return b
	}
	return a
}

// byWeight orders reasons for reading: what matched, then the strictest, then by name.
func byWeight(a, b agent.Reason) int {
	if a.Matched != b.Matched {
		if a.Matched {
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(Effect(a.Effect).strictness(), Effect(b.Effect).strictness()),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Reason, b.Reason),
	)
}

package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"belay/agent"
	"belay/strictyaml"
)

// writtenFile is a rule file as it stands there; the package tells what its fields mean.
type writtenFile struct {
	Rules []writtenRule `yaml:"rules"`
}

type writtenRule struct {
	ID       string `yaml:"id"`
	Effect   Effect `yaml:"effect"`
	When     string `yaml:"when"`
	Reason   string `yaml:"reason"`
	Sandbox  string `yaml:"sandbox"`
	Approval struct {
		Reviewers []agent.UserID `yaml:"reviewers"`
	} `yaml:"approval"`
	Examples struct {
		Match   []writtenRequest `yaml:"match"`
		NoMatch []writtenRequest `yaml:"no_match"`
	} `yaml:"examples"`
}

var (
	idForm   = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	userForm = regexp.MustCompile(`^(group:)?[a-z0-9][a-z0-9._@-]{0,63}$`)
)

// reader checks what one file says and gathers what is wrong with it. It takes places as paths of the file's fields.
type reader struct {
	env      *cel.Env
	doc      *strictyaml.Document
	problems []*strictyaml.Problem
}

func (r *reader) wrong(path, format string, args ...any) {
	r.problems = append(r.problems, r.doc.Problem(path, format, args...))
}

// notBlank refuses a text of nothing but white space.
func (r *reader) notBlank(path, text string) {
	if r.doc.Has(path) && strings.TrimSpace(text) == "" {
		r.wrong(path, "empty; expected text")
	}
}

// oneOf refuses a word that is not among the known.
func (r *reader) oneOf(path, word string, known ...string) {
	if r.doc.Has(path) && !slices.Contains(known, word) {
		r.wrong(path, "%.40q; expected one of %s", word, strings.Join(known, ", "))
	}
}

// rule checks the rule at a path, against its own examples too.
func (r *reader) rule(at string, w writtenRule) rule {
	for _, name := range []string{"id", "effect", "when", "reason", "examples"} {
		if !r.doc.Has(at + "." + name) {
			r.wrong(at+"."+name, "missing; every rule has id, effect, when, reason and examples")
		}
	}
	if r.doc.Has(at+".id") && (!idForm.MatchString(w.ID) || isPseudo(w.ID)) {
		r.wrong(at+".id", "%.80q; expected lower-case words joined by dashes, and none of the pseudo-rules", w.ID)
	}
	r.oneOf(at+".effect", string(w.Effect), string(EffectDeny), string(EffectRequireApproval), string(EffectRequireSandbox), string(EffectAllow))
	r.notBlank(at+".reason", w.Reason)
	r.obligations(at, w)
	c := r.condition(at+".when", w.When)
	return rule{
		id: w.ID, effect: w.Effect, condition: c, reason: w.Reason, reviewers: w.Approval.Reviewers, sandbox: w.Sandbox,
		examples: r.examples(at+".examples", w, c), doc: r.doc, path: at,
	}
}

func isPseudo(id string) bool {
	switch id {
	case RuleDefaultDeny, RuleEvaluationError, RuleConfirmAlways, RuleConfirmRisky:
		return true
	}
	return false
}

// obligations checks what only some effects have: sandbox and approval.
func (r *reader) obligations(at string, w writtenRule) {
	sandbox, approval := at+".sandbox", at+".approval"
	known := w.Effect.strictness() >= 0
	switch {
	case !known:
	case w.Effect == EffectRequireSandbox && !r.doc.Has(sandbox):
		r.wrong(sandbox, "missing; expected one of %s", strings.Join(Levels(), ", "))
	case w.Effect == EffectRequireSandbox:
		r.oneOf(sandbox, w.Sandbox, Levels()...)
	case r.doc.Has(sandbox):
		r.wrong(sandbox, "beside effect %.40q; only a rule with effect require_sandbox has one", w.Effect)
	}
	if r.doc.Has(approval) && known && w.Effect != EffectRequireApproval {
		r.wrong(approval, "beside effect %.40q; only a rule with effect require_approval has one", w.Effect)
	}
	for i, who := range w.Approval.Reviewers {
		if !userForm.MatchString(string(who)) {
			r.wrong(reviewerPath(at, i), "%.80q; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit", who)
		}
	}
}

func reviewerPath(rule string, i int) string {
	return fmt.Sprintf("%s.approval.reviewers[%d]", rule, i)
}

// condition compiles a "when"; it gives the zero condition for one that is missing or wrong.
func (r *reader) condition(path, text string) condition {
	if strings.TrimSpace(text) == "" {
		r.notBlank(path, text)
		return condition{}
	}
	c, err := compile(r.env, text)
	if m, ok := errors.AsType[*mistake](err); ok {
		r.problems = append(r.problems, r.doc.Inside(path, m.line, m.column, "%s", m.what))
	} else if err != nil {
		r.wrong(path, "%v", err)
	}
	return c
}

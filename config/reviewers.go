package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"belay/agent"
	"belay/strictyaml"
)

// Reviewers are the people who may be asked, and how they are told. Rules name them as users ("ana") or as groups
// ("group:security").
type Reviewers struct {
	Users  []agent.UserID            `json:"users,omitempty" yaml:"users"`
	Groups map[string][]agent.UserID `json:"groups,omitempty" yaml:"groups"`
	Notify Notify                    `json:"notify,omitzero" yaml:"notify"`
}

// Notify says where notifications go, besides the log.
type Notify struct {
	// WebhookEnv names the environment variable that holds the URL to post to, since such a URL is often a secret. Empty: none.
	WebhookEnv string `json:"webhook_env,omitempty" yaml:"webhook_env"`
}

// groupPrefix marks the name of a group where users are named too.
const groupPrefix = "group:"

// Expand puts the members of a group in the place of its name, each person once. A name that stands for nobody stays as it
// is and matches no user: left out, it would turn "only they" into "anyone".
func (r Reviewers) Expand(names []agent.UserID) []agent.UserID {
	var people []agent.UserID
	for _, name := range names {
		who := []agent.UserID{name}
		if group, ok := strings.CutPrefix(string(name), groupPrefix); ok && len(r.Groups[group]) > 0 {
			who = r.Groups[group]
		}
		for _, w := range who {
			if !slices.Contains(people, w) {
				people = append(people, w)
			}
		}
	}
	return people
}

// known lists what rules may name.
func (r Reviewers) known() (names []string) {
	for _, u := range r.Users {
		names = append(names, string(u))
	}
	for _, g := range slices.Sorted(maps.Keys(r.Groups)) {
		names = append(names, groupPrefix+g)
	}
	return names
}

var envForm = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,127}$`)

func (l *loader) reviewers(r *Reviewers, d *strictyaml.Document) {
	for i, u := range r.Users {
		at := fmt.Sprintf("users[%d]", i)
		if !agent.ValidName(string(u)) {
			l.wrong(d, at, "%.40q; expected %s", u, agent.NameForm)
		} else if slices.Contains(r.Users[:i], u) {
			l.wrong(d, at, "%q is listed twice", u)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Groups)) {
		at, members := "groups."+name, r.Groups[name]
		if !agent.ValidName(name) {
			l.wrong(d, at, "%.40q; expected %s", name, agent.NameForm)
		}
		if len(members) == 0 {
			l.wrong(d, at, "nobody; expected at least one user")
		}
		for i, m := range members {
			at := fmt.Sprintf("%s[%d]", at, i)
			if !slices.Contains(r.Users, m) {
				l.wrong(d, at, "%.40q: no such user; %s", m, strictyaml.Suggest(string(m), Reviewers{Users: r.Users}.known()))
			} else if slices.Contains(members[:i], m) {
				l.wrong(d, at, "%q is listed twice", m)
			}
		}
	}
	if env := r.Notify.WebhookEnv; d.Has("notify.webhook_env") && !envForm.MatchString(env) {
		l.wrong(d, "notify.webhook_env", "expected the name of an environment variable, such as BELAY_WEBHOOK_URL; never the URL itself")
	}
}

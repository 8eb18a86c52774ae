package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Task is what a person asks for: the one input of the AgentTask workflow.
type Task struct {
	Goal       string            `json:"goal"`
	Agent      string            `json:"agent,omitempty"`
	Tenant     TenantID          `json:"tenant,omitempty"`
	User       UserID            `json:"user,omitempty"`
	Session    string            `json:"session,omitempty"`
	Workspace  Workspace         `json:"workspace,omitzero"`
	Context    []string          `json:"context,omitempty"`
	Acceptance Acceptance        `json:"acceptance,omitzero"`
	Limits     Limits            `json:"limits,omitzero"`
	Priority   int               `json:"priority,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	RerunOf    string            `json:"rerun_of,omitempty"`
}

// Workspace says what the agent works on.
type Workspace struct {
	Source   string `json:"source,omitempty"`   // a folder or .tar/.tar.gz below one of the worker's workspace roots; empty: an empty workspace
	Revision string `json:"revision,omitempty"` // not supported yet
	Path     string `json:"path,omitempty"`     // subfolder to start in
}

// Acceptance says when the outcome is good, and who judges.
type Acceptance struct {
	Criteria     []string `json:"criteria,omitempty"`      // what the reviewer judges
	Checks       []string `json:"checks,omitempty"`        // shell commands; all must exit 0
	CheckRounds  int      `json:"check_rounds,omitempty"`  // how often failed checks go back to the model; 2
	Reviewers    []UserID `json:"reviewers,omitempty"`     // who may decide about the ledger; nobody: no decision is asked for
	Quorum       int      `json:"quorum,omitempty"`        // how many must accept; 1
	ExpiresAfter Duration `json:"expires_after,omitempty"` // how long the decision may take; 72h
}

// Bounds of a task's input, in bytes and entries.
const (
	MaxGoal     = 32 << 10
	MaxTask     = 2 << 20 // what Temporal takes as a payload
	maxListed   = 100
	maxListItem = 16 << 10
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]{0,63}$`)

// ValidName says whether s can name a tenant, a user, an agent or anything else that people name in tasks and files.
func ValidName(s string) bool { return nameForm.MatchString(s) }

// NameForm says in words what ValidName accepts.
const NameForm = "up to 64 of a-z 0-9 . _ @ -, first a letter or digit"

// DecodeTask reads the input of AgentTask strictly, fills in the defaults and validates every field. The error is of type
// InvalidInput and names the first field that is wrong; nothing of a refused task runs.
func DecodeTask(raw []byte) (Task, error) {
	if len(raw) > MaxTask {
		return Task{}, Errorf(InvalidInput, "input: %d bytes; expected at most %d", len(raw), MaxTask)
	}
	var t Task
	if err := Decode(raw, &t); err != nil {
		return Task{}, err
	}
	t.setDefaults()
	if err := t.Validate(); err != nil {
		return Task{}, err
	}
	return t, nil
}

func (t *Task) setDefaults() {
	t.Agent = cmp.Or(t.Agent, "default")
	t.Tenant = cmp.Or(t.Tenant, "default")
	t.User = cmp.Or(t.User, "anonymous")
	t.Priority = cmp.Or(t.Priority, 3)
	a := &t.Acceptance
	a.CheckRounds = cmp.Or(a.CheckRounds, 2)
	a.Quorum = cmp.Or(a.Quorum, 1)
	a.ExpiresAfter = cmp.Or(a.ExpiresAfter, Duration(72*time.Hour))
}

// zeroIsUnset makes Decode refuse a written zero: it would silently mean the default.
func (Task) zeroIsUnset()       {}
func (Acceptance) zeroIsUnset() {}

// Validate reports the first field that is wrong, as an InvalidInput error that names its path.
func (t Task) Validate() error {
	errs := slices.Concat(
		t.validateText(),
		t.validateNames(),
		t.Workspace.validate(),
		t.Acceptance.validate(),
		below("limits", t.Limits.Validate()),
		validateLabels(t.Labels),
	)
	if t.Session != "" {
		errs = append(errs, errors.New("session: not supported yet"))
	}
	if t.Priority < 1 || t.Priority > 5 {
		errs = append(errs, fmt.Errorf("priority: %d; expected 1 (most urgent) to 5", t.Priority))
	}
	if len(errs) > 0 {
		return Errorf(InvalidInput, "%w", errs[0])
	}
	return nil
}

func (t Task) validateText() (errs []error) {
	switch {
	case strings.TrimSpace(t.Goal) == "":
		errs = append(errs, errors.New("goal: missing; expected the outcome that you ask for"))
	case len(t.Goal) > MaxGoal:
		errs = append(errs, fmt.Errorf("goal: %d bytes; expected at most %d", len(t.Goal), MaxGoal))
	case !utf8.ValidString(t.Goal):
		errs = append(errs, errors.New("goal: not valid UTF-8"))
	}
	return append(errs, validateList("context", t.Context)...)
}

func (t Task) validateNames() (errs []error) {
	for _, f := range []struct{ at, value string }{{"agent", t.Agent}, {"tenant", string(t.Tenant)}, {"user", string(t.User)}} {
		if !ValidName(f.value) {
			errs = append(errs, fmt.Errorf("%s: %s; expected %s", f.at, shown(f.value), NameForm))
		}
	}
	if len(t.RerunOf) > 1000 {
		errs = append(errs, fmt.Errorf("rerun_of: %d bytes; expected a workflow id of at most 1000", len(t.RerunOf)))
	}
	return errs
}

func (w Workspace) validate() (errs []error) {
	if w.Revision != "" {
		errs = append(errs, errors.New("workspace.revision: not supported yet"))
	}
	if strings.Contains(w.Source, "://") || strings.HasPrefix(w.Source, "git@") {
		errs = append(errs, fmt.Errorf("workspace.source: %s: git sources are not supported yet; expected a folder or .tar(.gz) below a workspace root", shown(w.Source)))
	}
	for _, f := range []struct{ at, value string }{{"workspace.source", w.Source}, {"workspace.path", w.Path}} {
		if strings.ContainsRune(f.value, 0) || len(f.value) > 4096 {
			errs = append(errs, fmt.Errorf("%s: %s; expected a path of at most 4096 bytes without NUL", f.at, shown(f.value)))
		}
	}
	if w.Path != "" && (path.IsAbs(w.Path) || path.Clean(w.Path) != strings.TrimSuffix(w.Path, "/") || strings.HasPrefix(w.Path+"/", "../")) {
		errs = append(errs, fmt.Errorf("workspace.path: %s; expected a clean relative path inside the workspace", shown(w.Path)))
	}
	return errs
}

func (a Acceptance) validate() (errs []error) {
	errs = append(errs, validateList("acceptance.criteria", a.Criteria)...)
	errs = append(errs, validateList("acceptance.checks", a.Checks)...)
	for i, r := range a.Reviewers {
		if !ValidName(string(r)) {
			errs = append(errs, fmt.Errorf("acceptance.reviewers[%d]: %s; expected %s", i, shown(string(r)), NameForm))
		}
		if slices.Contains(a.Reviewers[:i], r) {
			errs = append(errs, fmt.Errorf("acceptance.reviewers[%d]: %q is listed twice", i, r))
		}
	}
	if a.CheckRounds < 1 || a.CheckRounds > 20 {
		errs = append(errs, fmt.Errorf("acceptance.check_rounds: %d; expected 1 to 20", a.CheckRounds))
	}
	if a.Quorum < 1 || a.Quorum > max(1, len(a.Reviewers)) {
		errs = append(errs, fmt.Errorf("acceptance.quorum: %d; expected 1 to the number of reviewers, %d", a.Quorum, len(a.Reviewers)))
	}
	if a.ExpiresAfter < Duration(time.Minute) {
		errs = append(errs, fmt.Errorf("acceptance.expires_after: %s; expected at least 1m", a.ExpiresAfter))
	}
	return errs
}

// below puts a path before the paths that errors name.
func below(at string, errs []error) []error {
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s.%w", at, err)
	}
	return errs
}

func validateList(at string, list []string) (errs []error) {
	if len(list) > maxListed {
		errs = append(errs, fmt.Errorf("%s: %d entries; expected at most %d", at, len(list), maxListed))
	}
	for i, s := range list {
		if strings.TrimSpace(s) == "" || len(s) > maxListItem || !utf8.ValidString(s) {
			errs = append(errs, fmt.Errorf("%s[%d]: %d bytes; expected 1 to %d bytes of UTF-8", at, i, len(s), maxListItem))
		}
	}
	return errs
}

func validateLabels(labels map[string]string) (errs []error) {
	if len(labels) > maxListed {
		return []error{fmt.Errorf("labels: %d entries; expected at most %d", len(labels), maxListed)}
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if k == "" || len(k) > 64 || len(labels[k]) > 1024 {
			errs = append(errs, fmt.Errorf("labels: %s with %d bytes; expected a name of 1 to 64 and a value of at most 1024 bytes", shown(k), len(labels[k])))
		}
	}
	return errs
}

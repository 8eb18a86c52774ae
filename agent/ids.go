package agent

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Digest is a SHA-256 as 64 lower-case hex digits. The zero value means "nothing there".
type Digest string

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Valid says whether d has the form of a digest.
func (d Digest) Valid() bool { return digestForm.MatchString(string(d)) }

// Short is the digest as people are shown it: its first 12 hex digits.
func (d Digest) Short() string {
	if len(d) <= ShortDigest {
		return string(d)
	}
	return string(d[:ShortDigest])
}

// ShortDigest is how many hex digits of an action's digest an approval must name at the least.
const ShortDigest = 12

// Matches says whether prefix names d: at least ShortDigest hex digits, all of them d's.
func (d Digest) Matches(prefix string) bool {
	return d.Valid() && len(prefix) >= ShortDigest && strings.HasPrefix(string(d), prefix)
}

// TenantID says who pays for a task.
type TenantID string

// UserID says who asked for a task, or who decides about it.
type UserID string

// RunID names one life of a task: the first run id of its continue-as-new chain. A reset or a second task with the same
// workflow id has another one, and everything that Belay keeps outside the history is filed under it.
type RunID string

// Short is the part of a RunID that names ledgers: eight digits that no other run has. Servers since 1.29 begin run ids
// with the time (UUID version 7), which two runs of one minute share, so it is the last eight of those.
func (r RunID) Short() string {
	const digits, version = 8, 14
	switch {
	case len(r) <= digits:
		return string(r)
	case len(r) > version && r[version] == '7':
		return string(r[len(r)-digits:])
	}
	return string(r[:digits])
}

// RunRef is what an activity needs to find a run's things in the store. In JSON it is one string, "tenant/run": every
// activity carries it, and a history holds many.
type RunRef struct {
	Tenant TenantID
	Run    RunID
}

// MarshalText writes the reference as "tenant/run".
func (r RunRef) MarshalText() ([]byte, error) {
	return []byte(string(r.Tenant) + "/" + string(r.Run)), nil
}

// UnmarshalText reads what MarshalText wrote. Neither part holds a slash.
func (r *RunRef) UnmarshalText(b []byte) error {
	tenant, run, ok := strings.Cut(string(b), "/")
	if !ok {
		return fmt.Errorf("%s; expected tenant/run", shown(string(b)))
	}
	*r = RunRef{TenantID(tenant), RunID(run)}
	return nil
}

// CallID names one call that a model asked for, unique in its run: c1, c2, …
type CallID string

// NewCallID names the n-th call of a run, counted from 1.
func NewCallID(n int) CallID { return CallID("c" + strconv.Itoa(n)) }

// QuestionID names one question that a model put to a person, unique in its run: q1, q2, …
type QuestionID string

// NewQuestionID names the n-th question of a run, counted from 1.
func NewQuestionID(n int) QuestionID { return QuestionID("q" + strconv.Itoa(n)) }

// LedgerWorkflowID is the workflow id of the ledger of one run of a task.
func LedgerWorkflowID(task string, run RunID) string {
	return fmt.Sprintf("ledger/%s/%s", task, run.Short())
}

package agent

// Verdict is what policy says about an action. The zero value denies.
type Verdict string

// The verdicts, strictest first.
const (
	Deny            Verdict = ""
	RequireApproval Verdict = "require_approval"
	Allow           Verdict = "allow"
)

// String names the verdict; the zero value is "deny".
func (v Verdict) String() string {
	if v == Deny {
		return "deny"
	}
	return string(v)
}

// MarshalText writes the verdict by its name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a verdict; anything it does not know is a denial.
func (v *Verdict) UnmarshalText(b []byte) error {
	switch got := Verdict(b); got {
	case RequireApproval, Allow:
		*v = got
	default:
		*v = Deny
	}
	return nil
}

// Reason is one rule's part in a decision.
type Reason struct {
	Rule    string `json:"rule"`
	Effect  string `json:"effect"`
	Reason  string `json:"reason,omitempty"`
	Matched bool   `json:"matched"`
}

// Decision is what policy decided about one action, and why.
type Decision struct {
	Verdict   Verdict  `json:"effect"`
	Risk      Risk     `json:"risk"`
	Reasons   []Reason `json:"reasons,omitempty"`
	Reviewers []UserID `json:"reviewers,omitempty"` // who may approve; nobody named: anyone
	Sandbox   string   `json:"sandbox,omitempty"`   // minimum isolation level
	Policy    Digest   `json:"policy,omitempty"`    // of the rules that decided
}

// ConfirmationMode says which allowed calls an agent still puts before a person. It can tighten a rule, never loosen it.
type ConfirmationMode string

// The confirmation modes.
const (
	ConfirmAlways ConfirmationMode = "always" // every call that is not pure
	ConfirmRisky  ConfirmationMode = "risky"  // calls of high risk
	ConfirmNever  ConfirmationMode = "never"  // only what rules ask for
)

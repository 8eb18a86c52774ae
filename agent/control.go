package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Verb names what people can say to a running task, as a signal and as an update of that name.
type Verb string

// The verbs.
const (
	VerbApprove Verb = "approve"
	VerbReject  Verb = "reject"
	VerbEdit    Verb = "edit"
	VerbAnswer  Verb = "answer"
	VerbMessage Verb = "message"
	VerbPause   Verb = "pause"
	VerbResume  Verb = "resume"
	VerbRaise   Verb = "raise"
	VerbResolve Verb = "resolve"
	// VerbDecide is for the ledger's workflow, all others are for the task's.
	VerbDecide Verb = "decide"
)

// TaskVerbs are the verbs that a task listens to.
var TaskVerbs = []Verb{VerbApprove, VerbReject, VerbEdit, VerbAnswer, VerbMessage, VerbPause, VerbResume, VerbRaise, VerbResolve}

// MaxControl is how large one control message may be, in bytes.
const MaxControl = 64 << 10

// Control is what someone said to a task: the fields of all verbs, of which each verb takes its own.
type Control struct {
	Verb Verb
	By   UserID

	Call      CallID
	Digest    string // at least the first ShortDigest hex digits of the action's digest
	Comment   string
	Feedback  string
	Arguments json.RawMessage

	Question QuestionID
	Text     string

	Reason  string
	Limits  Limits
	Outcome string
}

// DecodeControl reads one control message strictly. The error is of type InvalidInput and names the field.
func DecodeControl(verb Verb, raw []byte) (Control, error) {
	if len(raw) > MaxControl {
		return Control{}, Errorf(InvalidInput, "%s: %d bytes; expected at most %d", verb, len(raw), MaxControl)
	}
	form, ok := controlForms[verb]
	if !ok {
		return Control{}, Errorf(InvalidInput, "unknown verb %s; expected one of %v", shown(string(verb)), TaskVerbs)
	}
	c, err := form(raw)
	if err != nil {
		return Control{}, Errorf(InvalidInput, "%s: %w", verb, err)
	}
	c.Verb = verb
	if err := c.validate(); err != nil {
		return Control{}, Errorf(InvalidInput, "%s: %w", verb, err)
	}
	return c, nil
}

// signed is the part of every verb that says who speaks.
type signed struct {
	By     UserID          `json:"by"`
	Signed json.RawMessage `json:"signed,omitempty"`
}

func (s signed) signature() json.RawMessage { return s.Signed }

type onCall struct {
	signed
	Call   CallID `json:"call"`
	Digest string `json:"digest"`
}

type (
	approveForm struct {
		onCall
		Comment string `json:"comment,omitempty"`
	}
	rejectForm struct {
		onCall
		Feedback string `json:"feedback,omitempty"`
	}
	editForm struct {
		onCall
		Arguments json.RawMessage `json:"arguments"`
		Comment   string          `json:"comment,omitempty"`
	}
	answerForm struct {
		signed
		Question QuestionID `json:"question"`
		Text     string     `json:"text"`
	}
	messageForm struct {
		signed
		Text string `json:"text"`
	}
	pauseForm struct {
		signed
		Reason string `json:"reason,omitempty"`
	}
	raiseForm struct {
		signed
		Limits Limits `json:"limits"`
	}
	resolveForm struct {
		signed
		Call    CallID `json:"call"`
		Outcome string `json:"outcome"`
	}
)

func (f approveForm) control() Control {
	return Control{By: f.By, Call: f.Call, Digest: f.Digest, Comment: f.Comment}
}

func (f rejectForm) control() Control {
	return Control{By: f.By, Call: f.Call, Digest: f.Digest, Feedback: f.Feedback}
}

func (f editForm) control() Control {
	return Control{By: f.By, Call: f.Call, Digest: f.Digest, Arguments: f.Arguments, Comment: f.Comment}
}
func (f answerForm) control() Control  { return Control{By: f.By, Question: f.Question, Text: f.Text} }
func (f messageForm) control() Control { return Control{By: f.By, Text: f.Text} }
func (f pauseForm) control() Control   { return Control{By: f.By, Reason: f.Reason} }
func (f raiseForm) control() Control   { return Control{By: f.By, Limits: f.Limits} }
func (f resolveForm) control() Control { return Control{By: f.By, Call: f.Call, Outcome: f.Outcome} }

var controlForms = map[Verb]func([]byte) (Control, error){
	VerbApprove: decodeForm[approveForm],
	VerbReject:  decodeForm[rejectForm],
	VerbEdit:    decodeForm[editForm],
	VerbAnswer:  decodeForm[answerForm],
	VerbMessage: decodeForm[messageForm],
	VerbPause:   decodeForm[pauseForm],
	VerbResume:  decodeForm[pauseForm],
	VerbRaise:   decodeForm[raiseForm],
	VerbResolve: decodeForm[resolveForm],
}

func decodeForm[F interface {
	control() Control
	signature() json.RawMessage
}](raw []byte) (Control, error) {
	var f F
	if err := Decode(raw, &f); err != nil {
		return Control{}, err
	}
	if f.signature() != nil {
		return Control{}, errors.New("signed: not supported yet")
	}
	return f.control(), nil
}

func (c Control) validate() error {
	if !ValidName(string(c.By)) {
		return fmt.Errorf("by: %s; expected who says it: %s", shown(string(c.By)), NameForm)
	}
	switch c.Verb {
	case VerbApprove, VerbReject, VerbEdit:
		return c.validateOnCall()
	case VerbAnswer:
		if c.Question == "" {
			return errors.New(`question: missing; expected its id, such as "q1"`)
		}
		return validText("text", c.Text)
	case VerbMessage:
		return validText("text", c.Text)
	case VerbRaise:
		if errs := c.Limits.Validate(); len(errs) > 0 {
			return fmt.Errorf("limits.%w", errs[0])
		}
		if c.Limits == (Limits{}) {
			return errors.New("limits: missing; expected at least one limit to raise")
		}
	case VerbResolve:
		if c.Call == "" {
			return errNoCall
		}
		if !slices.Contains([]string{"happened", "did_not", "run_again"}, c.Outcome) {
			return fmt.Errorf("outcome: %s; expected happened, did_not or run_again", shown(c.Outcome))
		}
	}
	return nil
}

var errNoCall = errors.New(`call: missing; expected its id, such as "c3"`)

func (c Control) validateOnCall() error {
	if c.Call == "" {
		return errNoCall
	}
	if len(c.Digest) < ShortDigest || len(c.Digest) > 64 || strings.Trim(c.Digest, "0123456789abcdef") != "" {
		return fmt.Errorf("digest: %s; expected at least the first %d hex digits of the digest that you were shown", shown(c.Digest), ShortDigest)
	}
	if c.Verb == VerbEdit && !bytes.HasPrefix(c.Arguments, []byte("{")) {
		return fmt.Errorf("arguments: %s; expected the arguments to run instead, as an object", shown(string(c.Arguments)))
	}
	return nil
}

func validText(at, s string) error {
	if strings.TrimSpace(s) == "" {
		return fmt.Errorf("%s: missing; expected what you have to say", at)
	}
	return nil
}

// LedgerDecide is what a reviewer says to a ledger.
type LedgerDecide struct {
	Decision   LedgerDecision  `json:"decision"`
	By         UserID          `json:"by"`
	Comment    string          `json:"comment,omitempty"`
	Conditions []string        `json:"conditions,omitempty"`
	NextAction string          `json:"next_action,omitempty"`
	Signed     json.RawMessage `json:"signed,omitempty"`
}

// DecodeDecide reads a decision about a ledger strictly. The error is of type InvalidInput and names the field.
func DecodeDecide(raw []byte) (LedgerDecide, error) {
	var d LedgerDecide
	if len(raw) > MaxControl {
		return d, Errorf(InvalidInput, "decide: %d bytes; expected at most %d", len(raw), MaxControl)
	}
	if err := Decode(raw, &d); err != nil {
		return LedgerDecide{}, Errorf(InvalidInput, "decide: %w", err)
	}
	switch {
	case d.Signed != nil:
		return LedgerDecide{}, Errorf(InvalidInput, "decide: signed: not supported yet")
	case !slices.Contains([]LedgerDecision{Accepted, Conditional, Rejected, Rerun}, d.Decision):
		return LedgerDecide{}, Errorf(InvalidInput, "decide: decision: %s; expected accepted, conditional, rejected or rerun", shown(string(d.Decision)))
	case !ValidName(string(d.By)):
		return LedgerDecide{}, Errorf(InvalidInput, "decide: by: %s; expected who decides: %s", shown(string(d.By)), NameForm)
	case d.Decision == Conditional && len(d.Conditions) == 0:
		return LedgerDecide{}, Errorf(InvalidInput, "decide: conditions: missing; a conditional decision names at least one")
	}
	if errs := validateList("conditions", d.Conditions); len(errs) > 0 {
		return LedgerDecide{}, Errorf(InvalidInput, "decide: %w", errs[0])
	}
	return d, nil
}

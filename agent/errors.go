package agent

import (
	"errors"
	"fmt"
	"time"
)

// ErrorType is the category of a failure, and the type of the Temporal application error that carries it. The names are
// part of the wire contract.
type ErrorType string

// The categories. Each has its own retry rule: RetryTable.
const (
	InvalidInput      ErrorType = "InvalidInput"
	ModelError        ErrorType = "ModelError"
	ToolError         ErrorType = "ToolError"
	NetworkError      ErrorType = "NetworkError"
	PolicyDenied      ErrorType = "PolicyDenied"
	Unauthorized      ErrorType = "Unauthorized"
	ValidationError   ErrorType = "ValidationError"
	StateError        ErrorType = "StateError"
	Timeout           ErrorType = "Timeout"
	Cancelled         ErrorType = "Cancelled"
	ResourceExhausted ErrorType = "ResourceExhausted"
	SandboxLost       ErrorType = "SandboxLost"
	OutcomeUnknown    ErrorType = "OutcomeUnknown"
	AdmissionRejected ErrorType = "AdmissionRejected"
)

// Error is a failure with its category. What a model can mend is never an Error but an Observation.
type Error struct {
	Type    ErrorType `json:"type"`
	Message string    `json:"message"`
	// RetryAfter is how long the other side asked us to wait; zero when it did not say.
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	Cause      error         `json:"-"`
}

// Errorf makes an Error. A %w among the arguments becomes its cause.
func Errorf(t ErrorType, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Type: t, Message: err.Error(), Cause: errors.Unwrap(err)}
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.Cause }

// TypeOf finds the category of an error; the empty string when it has none.
func TypeOf(err error) ErrorType {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Type
	}
	return ""
}

// RetryRule says how one category of failure is tried again.
type RetryRule struct {
	// Attempts counts the first one: 1 means never again.
	Attempts int
	// First is the wait before the second attempt; each later wait is Factor times longer, up to Max, with up to a
	// fifth of it added or taken at random. A wait that the other side asked for is kept if it is longer.
	First, Max time.Duration
	Factor     float64
}

// RetryTable gives each category its rule. A category without one is not retried.
type RetryTable map[ErrorType]RetryRule

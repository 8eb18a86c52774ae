package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"
)

// Bounds of a Command.
const (
	DefaultGrace      = 2 * time.Second
	DefaultKeepOutput = 64 << 10
	DefaultMaxOutput  = 64 << 20
	MaxKeepOutput     = 16 << 20
	// MaxArgument is the longest script, argument or variable: what Linux takes as one argument of a program, in bytes.
	MaxArgument = 128<<10 - 1
)

var (
	idForm   = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	execForm = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,128}$`)
	envForm  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// Check says what is wrong with an id.
func (id ID) Check() error {
	if !idForm.MatchString(string(id)) {
		return fmt.Errorf("sandbox id %.80q: expected 1 to 64 of [a-z0-9-]", string(id))
	}
	return nil
}

// Check says what is wrong with an execution id.
func (id ExecID) Check() error {
	if !execForm.MatchString(string(id)) {
		return fmt.Errorf("execution id %.140q: expected 1 to 128 of [a-zA-Z0-9._-]", string(id))
	}
	return nil
}

// Check says what is wrong with a command, naming the field.
func (c Command) Check() error {
	switch {
	case (c.Script == "") == (len(c.Argv) == 0):
		return fmt.Errorf("command: script and argv: expected exactly one of the two")
	case c.Session != "" && c.Script == "":
		return fmt.Errorf("command.session %q: only a script can have a session", c.Session)
	case c.Session != "" && !execForm.MatchString(c.Session):
		return fmt.Errorf("command.session %.140q: expected 1 to 128 of [a-zA-Z0-9._-]", c.Session)
	case c.Dir != "" && !path.IsAbs(c.Dir):
		return fmt.Errorf("command.dir %q: expected an absolute path", c.Dir)
	case c.Timeout <= 0:
		return fmt.Errorf("command.timeout %v: expected more than 0", c.Timeout)
	case c.Grace < 0:
		return fmt.Errorf("command.grace %v: expected 0 or more", c.Grace)
	case c.KeepOutput < 0 || c.KeepOutput > MaxKeepOutput:
		return fmt.Errorf("command.keep_output %d: expected 0 to %d", c.KeepOutput, MaxKeepOutput)
	case c.MaxOutput < 0:
		return fmt.Errorf("command.max_output %d: expected 0 or more", c.MaxOutput)
	}
	for _, a := range append([]string{c.Script, c.Dir}, c.Argv...) {
		if err := checkArgument("command", a); err != nil {
			return err
		}
	}
	return CheckEnv("command.env", c.Env)
}

// CheckEnv says what is wrong with variables for a command; place names them in the error.
func CheckEnv(place string, env map[string]string) error {
	for k, v := range env {
		if !envForm.MatchString(k) {
			return fmt.Errorf("%s %q: expected a name of [a-zA-Z0-9_] that starts with no digit", place, k)
		}
		if err := checkArgument(place+" "+k, k+"="+v); err != nil {
			return err
		}
	}
	return nil
}

func checkArgument(place, s string) error {
	if len(s) > MaxArgument {
		return fmt.Errorf("%s: argument of %d bytes; expected at most %d", place, len(s), MaxArgument)
	}
	if strings.ContainsRune(s, 0) {
		return fmt.Errorf("%s: %.40q holds a zero byte", place, s)
	}
	return nil
}

// WithDefaults fills in what is zero.
func (c Command) WithDefaults() Command {
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.KeepOutput == 0 {
		c.KeepOutput = DefaultKeepOutput
	}
	if c.MaxOutput == 0 {
		c.MaxOutput = DefaultMaxOutput
	}
	return c
}

// Digest names what a command does, so that a reused execution id is noticed. How long it may take and how much of its
// output is kept don't count: a retry may bound the same command otherwise.
func (c Command) Digest() string {
	c.Timeout, c.Grace, c.KeepOutput, c.MaxOutput = 0, 0, 0, 0
	b, err := json.Marshal(c)
	if err != nil {
		return "" // can't happen: the struct holds strings and numbers only
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

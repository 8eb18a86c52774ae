package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"belay/agent"
)

// ActionDigest is what an approval of an action is bound to: SHA-256 over its canonical JSON (RFC 8785). An action whose
// arguments could be read in two ways has none: absent or null arguments, anything but an object, invalid UTF-8, a name
// given twice, a whole number beyond 2^53. The error is of type InvalidInput and names the tool and the place.
func ActionDigest(a agent.Action) (agent.Digest, error) {
	if err := unambiguous(a.Arguments); err != nil {
		return "", agent.Errorf(agent.InvalidInput, "digest of a call of %q: arguments: %w", a.Tool, err)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return "", agent.Errorf(agent.InvalidInput, "digest of a call of %q: %w", a.Tool, err)
	}
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return "", agent.Errorf(agent.InvalidInput, "digest of a call of %q: %w", a.Tool, err)
	}
	return digestOf(canonical), nil
}

func digestOf(b []byte) agent.Digest {
	sum := sha256.Sum256(b)
	return agent.Digest(hex.EncodeToString(sum[:]))
}

// unambiguous says why some JSON is not one object that every reader reads alike.
func unambiguous(raw json.RawMessage) error {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return errors.New("missing; expected an object")
	case !utf8.Valid(raw):
		return errors.New("not valid UTF-8")
	case raw[0] != '{':
		return fmt.Errorf("%.20q; expected an object", raw)
	case !json.Valid(raw): // also bounds the nesting, which the reading below does not
		return errors.New("not valid JSON")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := unambiguousValue(d, ""); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the object's end")
	}
	return nil
}

func unambiguousValue(d *json.Decoder, at string) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Number:
		return exactNumber(t, at)
	case json.Delim:
		seen := map[string]bool{}
		for i := 0; d.More(); i++ {
			in := fmt.Sprintf("%s[%d]", at, i)
			if t == '{' {
				name, err := d.Token()
				if err != nil {
					return err
				}
				key := name.(string) // the decoder lets nothing else stand here
				in = at + "." + key
				if seen[key] {
					return fmt.Errorf("%s: given twice", in[1:])
				}
				seen[key] = true
			}
			if err := unambiguousValue(d, in); err != nil {
				return err
			}
		}
		_, err := d.Token()
		return err
	}
	return nil
}

// exactNumber refuses whole numbers that canonical JSON, whose numbers are doubles, would merge with their neighbours.
func exactNumber(n json.Number, at string) error {
	whole, ok := new(big.Int).SetString(n.String(), 10)
	if ok && whole.CmpAbs(big.NewInt(1<<53)) > 0 {
		return fmt.Errorf("%s: %s; expected a whole number of at most 2^53, or a string", at[1:], n)
	}
	if _, err := n.Float64(); err != nil {
		return fmt.Errorf("%s: %s; expected a number that a double can hold", at[1:], n)
	}
	return nil
}

package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"belay/agent"
)

// described is the part of a tool that the model is told.
type described struct{ spec agent.ToolSpec }

// Spec is what the model is told.
func (d described) Spec() agent.ToolSpec { return d.spec }

// describe makes the spec of a tool whose arguments are a T, from T's fields and their tags. Its version changes with
// anything that the model is told.
func describe[T any](name, text string) described {
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true}
	s := r.Reflect(new(T))
	s.Version = "" // the draft is the one that agent.ToolSpec states; some endpoints refuse the keyword
	schema, err := json.Marshal(s)
	if err != nil {
		panic(err) // T is this package's own
	}
	spec := agent.ToolSpec{Name: name, Description: strings.TrimSpace(text), Schema: schema}
	spec.Version = digestOf(spec.Name, spec.Description, string(spec.Schema)).Short()
	return described{spec}
}

// digestOf is the digest of several texts, each told apart from its neighbours.
func digestOf(parts ...string) agent.Digest {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d\n%s", len(p), p)
	}
	return agent.Digest(hex.EncodeToString(h.Sum(nil)))
}

// contentDigest is the digest of a file's content.
func contentDigest(b []byte) agent.Digest {
	sum := sha256.Sum256(b)
	return agent.Digest(hex.EncodeToString(sum[:]))
}

// read decodes arguments into a T, and is strict, because Plan and Run also meet arguments that a reviewer edited.
func read[T any](args json.RawMessage) (T, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, fmt.Errorf("arguments: %w", err)
	}
	return v, nil
}

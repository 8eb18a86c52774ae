package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"belay/agent"
)

func action(arguments string) agent.Action {
	return agent.Action{
		Tool: "shell", ToolVersion: "1", Arguments: json.RawMessage(arguments), Tenant: "acme", FirstRunID: "0198", Step: 3, SandboxProfile: "default",
	}
}

func TestActionDigest(t *testing.T) {
	t.Parallel()
	want, err := ActionDigest(action(`{"command":"ls <a> & é","timeout":60}`))
	if err != nil {
		t.Fatal(err)
	}
	// SHA-256 of {"arguments":{"command":"ls <a> & é","timeout":60},"first_run_id":"0198","sandbox_profile":"default",
	// "step":3,"tenant":"acme","tool":"shell","tool_version":"1"} on one line.
	if pinned := agent.Digest("d850e566c7bad0c3b7a0deac6c53ba9af884cb38aca8f9c499f5939cf20e363d"); want != pinned {
		t.Errorf("digest %s, want %s", want, pinned)
	}
	for name, same := range map[string]string{
		"order of names":     `{"timeout":60,"command":"ls <a> & é"}`,
		"white space":        "{ \"command\" : \"ls <a> & é\",\n\"timeout\":60 }",
		"another form of 60": `{"command":"ls <a> & é","timeout":6.0e1}`,
		"escapes":            `{"command":"ls \u003ca\u003e \u0026 \u00e9","timeout":60}`,
	} {
		if got, err := ActionDigest(action(same)); got != want || err != nil {
			t.Errorf("%s: %s, %v; want the same digest", name, got, err)
		}
	}
	differs := map[string]agent.Action{"arguments": action(`{"command":"ls","timeout":60}`)}
	for name, change := range map[string]func(*agent.Action){
		"tool":            func(a *agent.Action) { a.Tool = "x" },
		"tool version":    func(a *agent.Action) { a.ToolVersion = "2" },
		"tenant":          func(a *agent.Action) { a.Tenant = "x" },
		"run":             func(a *agent.Action) { a.FirstRunID = "x" },
		"step":            func(a *agent.Action) { a.Step = 4 },
		"sandbox profile": func(a *agent.Action) { a.SandboxProfile = "x" },
	} {
		a := action(`{"command":"ls <a> & é","timeout":60}`)
		change(&a)
		differs[name] = a
	}
	for name, a := range differs {
		if got, err := ActionDigest(a); got == want || err != nil {
			t.Errorf("%s: %s, %v; want another digest", name, got, err)
		}
	}
}

func TestActionsWithoutADigest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ arguments, want string }{
		"absent":                 {"", "missing; expected an object"},
		"null":                   {"null", `"null"; expected an object`},
		"a list":                 {"[]", `"[]"; expected an object`},
		"a string":               {`"{}"`, "expected an object"},
		"cut short":              {`{"a":`, "not valid JSON"},
		"more after it":          {`{} {}`, "not valid JSON"},
		"invalid UTF-8":          {"{\"a\":\"\xff\"}", "not valid UTF-8"},
		"lone surrogate":         {`{"a":"\ud800"}`, "digest of a call"},
		"name twice":             {`{"a":1,"b":{"c":1,"c":2}}`, "b.c: given twice"},
		"name twice, escaped":    {`{"a":1,"\u0061":2}`, "a: given twice"},
		"name twice in a list":   {`{"a":[{"b":1},{"b":1,"b":1}]}`, "a[1].b: given twice"},
		"number too large":       {`{"a":9007199254740993}`, "a: 9007199254740993; expected a whole number of at most 2^53, or a string"},
		"number beyond a double": {`{"a":1e999}`, "a: 1e999; expected a number that a double can hold"},
		"nested without end":     {`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}", "not valid JSON"},
	} {
		got, err := ActionDigest(action(tt.arguments))
		if err == nil || got != "" || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q, %v; want an error with %q", name, got, err, tt.want)
		}
		if err != nil && agent.TypeOf(err) != agent.InvalidInput {
			t.Errorf("%s: type %q; want InvalidInput", name, agent.TypeOf(err))
		}
	}
}

package policy

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
)

// ruleFile is a file with one good rule, in which a test replaces a part.
const ruleFile = `rules:
  - id: push
    effect: require_approval
    when: tool == "shell" && "push" in args
    reason: A push can't be taken back.
    approval: {reviewers: [ana, ben]}
    examples:
      match:
        - {tool: shell, args: {push: true}}
      no_match:
        - {tool: shell}
`

func TestMalformedFilesAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	_, asks, _ := strings.Cut(ruleFile, "id: push\n")
	asks, _, _ = strings.Cut(asks, "    examples:")
	isolates := strings.NewReplacer("require_approval", "require_sandbox", "    approval: {reviewers: [ana, ben]}\n", "").Replace(asks)
	for _, tt := range []struct {
		name, old, new string
		want           string // the whole error
	}{
		{"empty", ruleFile, "", `p.yaml:1: empty; expected a YAML document`},
		{"not YAML", "    effect: require_approval", "    effect: [deny", `p.yaml:2: not YAML: `},
		{"a list", ruleFile, "- a", `p.yaml:1: a list; expected fields`},
		{"two documents", "        - {tool: shell}\n", "        - {tool: shell}\n---\nrules: []\n", `p.yaml:12: a second document; expected one`},
		{"unknown field of the file", "rules:", "rule:", `p.yaml:1: rule: unknown field; did you mean "rules"?`},
		{"no rules", ruleFile, "rules: []", `p.yaml:1: rules: none; expected at least one rule`},
		{"rules not a list", ruleFile, "rules: {a: b}", `p.yaml:1: rules: fields; expected a list`},
		{"unknown field of a rule", "    reason:", "    reasn:", `p.yaml:5: rules[0].reasn: unknown field; did you mean "reason"?`},
		{"field far from any", "    reason:", "    xyzzyplugh:", `p.yaml:5: rules[0].xyzzyplugh: unknown field; expected one of approval, effect, examples, id, reason, sandbox, when`},
		{"field twice", "    reason:", "    effect: deny\n    reason:", `p.yaml:5: rules[0].effect: given twice, first on line 3`},
		{"no id", "  - id: push\n    effect", "  - effect", `p.yaml:2: rules[0].id: missing; every rule has id, effect, when, reason and examples`},
		{"no reason", "    reason: A push can't be taken back.\n", "", `p.yaml:2: rules[0].reason: missing; every rule has id, effect, when, reason and examples`},
		{"blank reason", "A push can't be taken back.", `" "`, `p.yaml:5: rules[0].reason: empty; expected text`},
		{"id of a wrong form", "id: push", "id: Push It", `p.yaml:2: rules[0].id: "Push It"; expected lower-case words joined by dashes, and none of the pseudo-rules`},
		{"id of a pseudo-rule", "id: push", "id: default-deny", `p.yaml:2: rules[0].id: "default-deny"; expected lower-case words joined by dashes, and none of the pseudo-rules`},
		{"id a number", "id: push", "id: 7", `p.yaml:2: rules[0].id: 7; expected text, in quotes where it looks like something else`},
		{"unknown effect", "require_approval", "ask", `p.yaml:3: rules[0].effect: "ask"; expected one of deny, require_approval, require_sandbox, allow`},
		{"approval of a deny", "effect: require_approval", "effect: deny", `p.yaml:6: rules[0].approval: beside effect "deny"; only a rule with effect require_approval has one`},
		{"unknown field of approval", "reviewers:", "reviewer:", `p.yaml:6: rules[0].approval.reviewer: unknown field; did you mean "reviewers"?`},
		{"reviewer of a wrong form", "[ana, ben]", "[ana, Ben]", `p.yaml:6: rules[0].approval.reviewers[1]: "Ben"; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit`},
		{"sandbox of another effect", "    approval: {reviewers: [ana, ben]}", "    sandbox: gvisor", `p.yaml:6: rules[0].sandbox: beside effect "require_approval"; only a rule with effect require_sandbox has one`},
		{"unknown level", asks, strings.Replace(isolates, "effect: require_sandbox", "effect: require_sandbox\n    sandbox: docker", 1), `p.yaml:4: rules[0].sandbox: "docker"; expected one of process, container, gvisor, microvm`},
		{"no level", asks, isolates, `p.yaml:2: rules[0].sandbox: missing; expected one of process, container, gvisor, microvm`},
		{"condition with a syntax error", `"push" in args`, `"push" in in args`, `p.yaml:4:40: rules[0].when: Syntax error`},
		{"condition with an unknown name", "tool ==", "tol ==", `p.yaml:4:11: rules[0].when: unknown name "tol"; did you mean "tool"?`},
		{"condition with an unknown field", `"push" in args`, `shell.commnds.size() > 0`, `p.yaml:4:35: rules[0].when: unknown field "commnds"; did you mean "commands"?`},
		{"condition in a block", `when: tool == "shell" && "push" in args`, "when: |\n      tool == \"shell\"\n        && risk >= hihg", `p.yaml:6:20: rules[0].when: unknown name "hihg"; did you mean "high"?`},
		{"condition in folded quotes", `when: tool == "shell" && "push" in args`, "when: 'tool == \"shell\"\n      && rsk >= high'", `p.yaml:5:10: rules[0].when: unknown name "rsk"; did you mean "risk"?`},
		{"condition of mixed types", `"push" in args`, `risk == "high"`, `p.yaml:4:35: rules[0].when: found no matching overload for '_==_' applied to '(int, string)'`},
		{"condition that is no condition", `tool == "shell" && "push" in args`, "risk", `p.yaml:4:11: rules[0].when: gives int; expected a condition that is true or false`},
		{"condition with a bad expression", `"push" in args`, `tool.matches("(")`, `p.yaml:4:43: rules[0].when: invalid matches argument`},
		{"loops too deep", `"push" in args`, `paths.all(a, paths.all(b, paths.all(c, paths.all(d, d.read))))`, `p.yaml:4:`},
		{"no examples", "    examples:\n      match:\n        - {tool: shell, args: {push: true}}\n      no_match:\n        - {tool: shell}\n", "", `p.yaml:2: rules[0].examples: missing; every rule has id, effect, when, reason and examples`},
		{"no no_match", "      no_match:\n        - {tool: shell}\n", "", `p.yaml:7: rules[0].examples.no_match: missing; expected a list of requests`},
		{"empty match", "match:\n        - {tool: shell, args: {push: true}}", "match: []", `p.yaml:8: rules[0].examples.match: empty; expected at least one request`},
		{"match that does not", "{tool: shell, args: {push: true}}", "{tool: read_file}", `p.yaml:9: rules[0].examples.match[0]: the condition is false for this example; expected true`},
		{"no_match that does", "        - {tool: shell}\n", "        - {tool: shell, args: {push: 1}}\n", `p.yaml:11: rules[0].examples.no_match[0]: the condition is true for this example; expected false`},
		{"example without a tool", "        - {tool: shell}\n", "        - {command: ls}\n", `p.yaml:11: rules[0].examples.no_match[0].tool: missing; expected the name of a tool`},
		{"unknown field of an example", "        - {tool: shell}\n", "        - {tool: shell, comand: ls}\n", `p.yaml:11: rules[0].examples.no_match[0].comand: unknown field; did you mean "command"?`},
		{"unknown risk of an example", "        - {tool: shell}\n", "        - {tool: shell, risk: extreme}\n", `p.yaml:11: rules[0].examples.no_match[0].risk: "extreme"; expected one of low, medium, high`},
		{"relative path of an example", "        - {tool: shell}\n", "        - {tool: shell, writes: [a.go]}\n", `p.yaml:11: rules[0].examples.no_match[0].writes[0]: "a.go"; expected an absolute path as the sandbox sees it`},
		{"condition that errs", `"push" in args`, `args.push`, `p.yaml:11: rules[0].examples.no_match[0]: the condition can't be evaluated: no such key: push`},
		{"alias", "{reviewers: [ana, ben]}", "*a", `p.yaml:6: not YAML: unknown anchor 'a' referenced`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(ruleFile, tt.old, tt.new, 1)
			if text == ruleFile {
				t.Fatal("the test changes nothing")
			}
			_, err := Parse("p.yaml", []byte(text))
			if err == nil {
				t.Fatalf("accepted; want %s", tt.want)
			}
			if got := err.Error(); !strings.HasPrefix(got, tt.want) || strings.Contains(got, "\n") {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if agent.TypeOf(err) != agent.InvalidInput {
				t.Errorf("type %q; want InvalidInput", agent.TypeOf(err))
			}
		})
	}
}

func TestEveryMistakeIsTold(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{
		"a.yaml": {Data: []byte(strings.NewReplacer("id: push", "id: Push", "tool ==", "tol ==", "ana, ben", "Ana, ben, Ben", "{tool: shell}", "{tool: shell, writes: [b.go, /a, c.go]}").Replace(ruleFile))},
		"b.yaml": {Data: []byte("rule: []\n")},
		"c.yaml": {Data: []byte("rules:\n  - id: c\n  - sandbox: {}\n")},
		"d.yaml": {Data: []byte(ruleFile + strings.Replace(strings.TrimPrefix(ruleFile, "rules:\n"), "{tool: shell, args: {push: true}}", "{tool: read_file}", 1))},
	}
	const want = `a.yaml:2: rules[0].id: "Push"; expected lower-case words joined by dashes, and none of the pseudo-rules
a.yaml:4:11: rules[0].when: unknown name "tol"; did you mean "tool"?
a.yaml:6: rules[0].approval.reviewers[0]: "Ana"; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit
a.yaml:6: rules[0].approval.reviewers[2]: "Ben"; expected up to 64 of a-z 0-9 . _ @ -, first a letter or digit
a.yaml:11: rules[0].examples.no_match[0].writes[0]: "b.go"; expected an absolute path as the sandbox sees it
a.yaml:11: rules[0].examples.no_match[0].writes[2]: "c.go"; expected an absolute path as the sandbox sees it
b.yaml:1: rule: unknown field; did you mean "rules"?
c.yaml:3: rules[1].sandbox: fields; expected text, in quotes where it looks like something else
d.yaml:19: rules[1].examples.match[0]: the condition is false for this example; expected true`
	_, err := Load(fsys, "d.yaml", "c.yaml", "b.yaml", "a.yaml")
	if err == nil {
		t.Fatal("accepted")
	}
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Error(d)
	}
	if agent.TypeOf(err) != agent.InvalidInput {
		t.Errorf("type %q; want InvalidInput", agent.TypeOf(err))
	}
}

func TestCheckReviewers(t *testing.T) {
	t.Parallel()
	s, err := Parse("p.yaml", []byte(ruleFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckReviewers([]string{"ana", "ben", "zoe"}); err != nil {
		t.Errorf("all are known: %v", err)
	}
	want := `p.yaml:6: rules[0].approval.reviewers[1]: "ben": no such reviewer; did you mean "bea"?`
	if err := s.CheckReviewers([]string{"ana", "bea"}); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestSetOfSeveralFiles(t *testing.T) {
	t.Parallel()
	other := strings.Replace(ruleFile, "id: push", "id: other", 1)
	crlf := strings.ReplaceAll(ruleFile, "\n", "\r\n")
	digest := func(names []string, files map[string]string) agent.Digest {
		t.Helper()
		fsys := fstest.MapFS{}
		for name, text := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		s, err := Load(fsys, names...)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Digest().Valid() {
			t.Fatalf("digest %q", s.Digest())
		}
		return s.Digest()
	}
	both := map[string]string{"a.yaml": ruleFile, "b.yaml": other}
	want := digest([]string{"a.yaml", "b.yaml"}, both)
	for name, got := range map[string]agent.Digest{
		"another order":     digest([]string{"b.yaml", "a.yaml"}, both),
		"another line end":  digest([]string{"a.yaml", "b.yaml"}, map[string]string{"a.yaml": crlf, "b.yaml": other}),
		"a file beside it":  digest([]string{"a.yaml", "b.yaml"}, map[string]string{"a.yaml": ruleFile, "b.yaml": other, "c.yaml": "x"}),
		"the very same set": digest([]string{"a.yaml", "b.yaml"}, both),
	} {
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, got := range map[string]agent.Digest{
		"one file less": digest([]string{"a.yaml"}, both),
		"another name":  digest([]string{"a.yaml", "c.yaml"}, map[string]string{"a.yaml": ruleFile, "c.yaml": other}),
		"another word":  digest([]string{"a.yaml", "b.yaml"}, map[string]string{"a.yaml": ruleFile + "# x\n", "b.yaml": other}),
	} {
		if got == want {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

func TestSetsThatAreRefused(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{
		"a.yaml": {Data: []byte(ruleFile)},
		"b.yaml": {Data: []byte("# again\n" + ruleFile)},
		"c.yaml": {Data: []byte(strings.NewReplacer(`"push" in args`, `args.path == "x"`, "id: push", "id: errs", "{push: true}", "{path: x}", "- {tool: shell}", "- {tool: shell, args: {path: z}}").Replace(ruleFile))},
	}
	for name, tt := range map[string]struct {
		names []string
		want  string
	}{
		"no file":                        {nil, "policy: no rule file named; expected at least one"},
		"absent file":                    {[]string{"x.yaml"}, "policy file x.yaml: open x.yaml: file does not exist"},
		"a file twice":                   {[]string{"a.yaml", "a.yaml"}, "policy file a.yaml: named twice"},
		"an id twice":                    {[]string{"a.yaml", "b.yaml"}, `b.yaml:3: rules[0].id: "push" is taken by the rule at a.yaml:2; expected an id of its own`},
		"errs on another rule's example": {[]string{"a.yaml", "c.yaml"}, `c.yaml:4: rules[0].when: can't be evaluated on the example at a.yaml:9: no such key: path`},
	} {
		if _, err := Load(fsys, tt.names...); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

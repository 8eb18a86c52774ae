// Package policy decides whether a call may run, and says why. It is pure: it reads no clock, no environment and no file
// beyond those that Load is given, starts nothing, and gives the same bytes for the same input, so its decisions can be
// recorded once and explained again later.
//
// # Rules
//
// A policy is one or more YAML files, each with a list of rules:
//
//	rules:
//	  - id: push
//	    effect: require_approval
//	    when: shell.commands.exists(c, c.program == "git" && "push" in c.argv)
//	    reason: A push can't be taken back.
//	    approval: {reviewers: [ana, ben]}
//	    examples:
//	      match:
//	        - {tool: shell, command: git push origin main}
//	      no_match:
//	        - {tool: shell, command: git log}
//
// id names the rule: lower-case words joined by dashes, unique over all files. effect is deny, require_approval, allow or
// require_sandbox. when is a condition in CEL (https://cel.dev), reason is what the model and the reviewer are told. approval
// is for require_approval only and may name reviewers; nobody named means anyone. sandbox is for require_sandbox only and is
// one of Levels. examples are requests that the condition must and must not hold for; they are checked when the file is
// loaded, and one that fails refuses the file. Both lists must be there; no_match may be empty where nothing is spared.
//
// An example has tool, and where it matters args (an object), command (a shell script, which is analysed as in a real call
// and also becomes args.command), reads and writes (absolute paths as the sandbox sees them), effect (sandboxed), risk (low),
// tenant (default), user (anonymous), agent (default) and mode (never).
//
// # Decision
//
// Every rule is evaluated and the strictest effect wins: deny, then require_approval, then allow. Nothing that matches is a
// denial by the pseudo-rule default-deny; a condition that fails to evaluate, or costs more than CostLimit, is a denial by
// evaluation-error. require_sandbox decides nothing: it raises the lowest isolation level that will do. Reviewers of several
// rules are joined. A confirmation mode turns an allow into require_approval, and never the other way.
//
// # What a condition sees
//
//	tool                       name of the tool
//	args                       its arguments, as decoded JSON
//	tenant, user, agent, mode  who asks, and the confirmation mode
//	effect                     "pure", "sandboxed" or "external"
//	risk                       low, medium or high, in that order: risk >= medium
//	paths                      list of Path: what the command was seen to touch, else what the tool says that it touches
//	shell                      Shell: the analysis of the command; of other calls all is empty and shell.parsed is false
//
// There is no clock, no network and no environment in a condition. A field that may be absent needs has(args.x), or a test of
// tool before it; on load every condition is also tried on the examples of all other rules, and one that errs is refused.
//
// # Shell analysis
//
// Analyze parses a script once, with the grammar of bash, and reduces it to facts. It is a classifier for rules and people,
// not a boundary: the sandbox is the boundary. So it errs on the high side: a script counts as low only when each program and
// each of its options is in the table (programs.tsv), and whatever decides what runs or what is written must be known.
package policy

package policy

import (
	"fmt"
	"reflect"
	"regexp"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"

	"belay/agent"
)

// CostLimit bounds the work of one condition on one request, in CEL's cost units: some tens of milliseconds. A condition that
// needs more is stopped and denies.
const CostLimit = 1_000_000

// Bounds of one condition.
const (
	maxCondition = 16 << 10 // bytes
	maxNesting   = 50       // of parentheses and calls
	maxLoops     = 3        // of exists, all, filter and map inside each other
	maxRegexp    = 1000     // instructions of one regular expression
)

// condition is a compiled "when".
type condition struct{ program cel.Program }

// holds evaluates the condition. It never blocks and never calls out.
func (c condition) holds(facts map[string]any) (bool, error) {
	got, _, err := c.program.Eval(facts)
	if err != nil {
		return false, err
	}
	held, ok := got.Value().(bool)
	if !ok {
		return false, fmt.Errorf("gave %v; expected true or false", got.Type())
	}
	return held, nil
}

// variables are the names that a condition may use.
func variables() map[string]*cel.Type {
	return map[string]*cel.Type{
		"tool": cel.StringType, "tenant": cel.StringType, "user": cel.StringType, "agent": cel.StringType,
		"mode": cel.StringType, "effect": cel.StringType, "risk": cel.IntType,
		"args":  cel.MapType(cel.StringType, cel.DynType),
		"paths": cel.ListType(cel.ObjectType("policy.Path")),
		"shell": cel.ObjectType("policy.Shell"),
	}
}

func newEnvironment() (*cel.Env, error) {
	options := []cel.EnvOption{
		ext.NativeTypes(reflect.TypeFor[Shell](), reflect.TypeFor[Command](), reflect.TypeFor[Path](), reflect.TypeFor[Finding](), ext.ParseStructTag("json")),
		cel.ParserExpressionSizeLimit(maxCondition),
		cel.ParserRecursionLimit(maxNesting),
		cel.RegexProgramSizeLimit(maxRegexp),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateComprehensionNestingLimit(maxLoops)),
	}
	for name, t := range variables() {
		options = append(options, cel.Variable(name, t))
	}
	for _, r := range []agent.Risk{agent.RiskLow, agent.RiskMedium, agent.RiskHigh} {
		options = append(options, cel.Constant(string(r), cel.IntType, types.Int(r.Level())))
	}
	return cel.NewEnv(options...)
}

// mistake is what is wrong with a condition: the line (from 1) and column (from 0) in its text.
type mistake struct {
	line, column int
	what         string
}

func (m *mistake) Error() string { return m.what }

// compile parses and type-checks a condition. Its error is a *mistake when the text is to blame.
func compile(env *cel.Env, text string) (condition, error) {
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		first := issues.Errors()[0]
		return condition{}, &mistake{first.Location.Line(), first.Location.Column(), suggest(first.Message)}
	}
	if ast.OutputType() != cel.BoolType {
		return condition{}, &mistake{1, 0, fmt.Sprintf("gives %s; expected a condition that is true or false", cel.FormatCELType(ast.OutputType()))}
	}
	program, err := env.Program(ast, cel.CostLimit(CostLimit), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return condition{}, &mistake{1, 0, err.Error()}
	}
	return condition{program}, nil
}

var (
	unknownName  = regexp.MustCompile(`^undeclared reference to '([^']+)'`)
	unknownField = regexp.MustCompile(`^undefined field '([^']+)'`)
)

// suggest adds to CEL's message the name that was most likely meant.
func suggest(message string) string {
	if m := unknownName.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("unknown name %q%s", m[1], didYouMean(m[1], append(names(variables()), "low", "medium", "high")))
	}
	if m := unknownField.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("unknown field %q%s", m[1], didYouMean(m[1], factFields()))
	}
	return message
}

func didYouMean(word string, known []string) string {
	if near := agent.Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// factFields are the fields of all facts.
func factFields() []string {
	var all []string
	for _, t := range []reflect.Type{reflect.TypeFor[Shell](), reflect.TypeFor[Command](), reflect.TypeFor[Path](), reflect.TypeFor[Finding]()} {
		for i := range t.NumField() {
			all = append(all, t.Field(i).Tag.Get("json"))
		}
	}
	return all
}

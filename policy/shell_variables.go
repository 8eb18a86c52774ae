package policy

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"belay/agent"
)

// assign walks through one assignment and judges the variable's name. lasts says that it is not for one command only.
func (w *walker) assign(a *syntax.Assign, f *frame, lasts bool) {
	if a.Index != nil {
		w.inner(a.Index, f)
	}
	if a.Array != nil {
		w.inner(a.Array, f)
	}
	value := word{dynamic: true, text: "*"}
	if a.Value != nil {
		w.inner(a.Value, f)
		value = w.foldParts(a.Value.Parts, a.Value.Pos(), f)
	}
	if hidesCommand(value.text) {
		w.find(a.Pos(), agent.RiskHigh, "a value that runs a command where it is evaluated", doesDynamic, doesExec)
	}
	if a.Name == nil { // declare "$x"
		w.declared(value)
		return
	}
	if !a.Naked {
		w.variable(a.Name.Value, value, a.Pos())
	}
	if lasts && w.scope.constant(a.Name.Value) && !value.dynamic && a.Value != nil {
		w.scope.constants[a.Name.Value] = value
	}
}

func (w *walker) declare(c *syntax.DeclClause, f *frame) {
	if len(c.Args) == 0 {
		w.find(c.Pos(), agent.RiskMedium, c.Variant.Value+": prints variables, which may hold credentials", doesRead)
	}
	for _, a := range c.Args {
		w.assign(a, f, false)
	}
}

// declared judges an argument of declare, export and the like that is not an assignment by its form: an option, or a text
// that only becomes one when it runs.
func (w *walker) declared(value word) {
	name, text, assigns := strings.Cut(value.text, "=")
	switch {
	case value.lead == "" && value.dynamic:
		w.find(value.at, agent.RiskHigh, "sets a variable whose name is not known", doesDynamic)
	case assigns:
		w.variable(name, literal(text, value.at), value.at)
	case strings.HasPrefix(value.lead, "-") && strings.ContainsAny(value.lead, "p"):
		w.find(value.at, agent.RiskMedium, "prints variables, which may hold credentials", doesRead)
	}
}

// variable judges that a variable is set.
func (w *walker) variable(name string, value word, at syntax.Pos) {
	switch {
	case decidesPrograms(name):
		w.find(at, agent.RiskHigh, "sets "+name+", which decides what later programs do", doesPersist, doesExec)
	case runsItsValue(name) && (!value.known() || !compiler(value.text)):
		w.find(at, agent.RiskHigh, "sets "+name+", whose value is run as a program", doesExec)
	case strings.Contains(value.text, "toolexec"), strings.HasSuffix(name, "FLAGS") && runsByFlag.MatchString(value.text):
		w.find(at, agent.RiskHigh, "sets "+name+" to options that run a program", doesExec)
	}
}

// runsByFlag finds options of compilers that run a program.
var runsByFlag = regexp.MustCompile(`exec|linker|plugin|wrapper|extld`)

// hidesCommand says whether a text runs a command when it is evaluated as an expression or as a variable's name: the index
// of an array is expanded once more.
func hidesCommand(text string) bool {
	_, index, ok := strings.Cut(text, "[")
	return ok && (strings.Contains(index, "$(") || strings.Contains(index, "`") || strings.Contains(index, "${"))
}

// decidesPrograms says whether a variable changes which programs run, or makes them run others.
func decidesPrograms(name string) bool {
	for _, prefix := range []string{"LD_", "DYLD_", "GIT_", "PYTHON", "PERL5", "BASH_", "npm_config_", "NPM_CONFIG_", "GCONV_", "TF_CLI_"} {
		if strings.HasPrefix(name, prefix) {
			return !slices.Contains(harmlessSettings, name)
		}
	}
	return slices.Contains([]string{
		"PATH", "IFS", "ENV", "HOME", "CDPATH", "SHELLOPTS", "BASHOPTS", "PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "NODE_OPTIONS", "NODE_PATH",
		"RUBYOPT", "RUBYLIB", "GOPROXY", "GONOSUMDB", "GOSUMDB", "GOROOT", "GOTOOLCHAIN", "JAVA_TOOL_OPTIONS",
		"_JAVA_OPTIONS", "MAVEN_OPTS", "CARGO_HOME", "HISTFILE", "TMPDIR", "XDG_CONFIG_HOME", "LESS", "LESSOPEN", "LESSCLOSE",
		"MAKEFILES", "GOENV", "GOCACHEPROG", "AWKPATH", "AWKLIBPATH", "ZDOTDIR", "PSQLRC", "RIPGREP_CONFIG_PATH", "CURL_HOME", "WGETRC", "INPUTRC",
		"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy", "POSIXLY_CORRECT",
	}, name)
}

// harmlessSettings are the exceptions to the prefixes of decidesPrograms.
var harmlessSettings = []string{
	"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE",
	"GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
}

// runsItsValue says whether programs run what a variable holds.
func runsItsValue(name string) bool {
	return strings.HasPrefix(name, "CARGO_TARGET_") || slices.Contains([]string{
		"CC", "CXX", "CPP", "AR", "LD", "AS", "SHELL", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "MAKEFLAGS", "MFLAGS", "RUSTC",
		"RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "SSH_ASKPASS", "SUDO_ASKPASS", "FCEDIT", "RSYNC_RSH", "CVS_RSH", "TAR_OPTIONS",
	}, name)
}

// compiler says whether a value is the name of a compiler or of a pager that does nothing.
func compiler(value string) bool {
	return slices.Contains([]string{"gcc", "g++", "clang", "clang++", "cc", "c++", "ar", "ld", "cat"}, value)
}

package policy

import (
	"slices"
	"strings"

	"belay/agent"
)

// The parts of find's expressions: tests and actions that only look, those of them with a value first.
var (
	findValued = strings.Fields(`-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -size -mtime -mmin -atime -amin
		-ctime -cmin -newer -anewer -cnewer -newermt -newerct -perm -user -group -uid -gid -maxdepth -mindepth -links -inum -samefile -fstype
		-lname -ilname -printf -regextype -used`)
	findPlain = strings.Fields(`-print -print0 -ls -prune -quit -depth -d -empty -readable -writable -executable -true -false -nouser -nogroup
		-follow -mount -xdev -daystart -a -and -noleaf -warn -nowarn -H -L -P -O0 -O1 -O2 -O3 -ignore_readdir_race ( )`)
	findAlternatives = strings.Fields("! -not -o -or ,")
	findRuns         = strings.Fields("-exec -execdir -ok -okdir")
	findWrites       = strings.Fields("-fprint -fprint0 -fprintf -fls")
)

// found is what a find command looks through, and for what.
type found struct {
	roots []word
	name  string // the pattern that every file found fits; "*" when there is none
}

// find judges find's arguments: where it looks, and what it does with what it finds.
func (c *call) find(args []word) {
	i := 0
	for i < len(args) && slices.Contains(findPlain, args[i].text) && strings.HasPrefix(args[i].text, "-") {
		i++ // -L and the like
	}
	in := found{name: "*"}
	for ; i < len(args) && !expressionBegins(args[i]); i++ {
		in.roots = append(in.roots, args[i])
	}
	if len(in.roots) == 0 {
		in.roots = []word{literal(".", c.at)}
	}
	for _, root := range in.roots {
		c.touch(root, useRead)
	}
	expression := args[i:]
	in.name = namePattern(expression)
	for i := 0; i < len(expression); i++ {
		i = c.findPart(expression, i, in)
	}
}

func expressionBegins(a word) bool {
	return a.lead == "" && a.dynamic || strings.HasPrefix(a.text, "-") || a.text == "(" || a.text == "!" || a.text == ","
}

// namePattern gives the pattern of an expression's -name, where everything found must fit it.
func namePattern(expression []word) string {
	name := "*"
	for i, a := range expression {
		if slices.Contains(findAlternatives, a.text) {
			return "*"
		}
		if a.text == "-name" && i+1 < len(expression) && !expression[i+1].dynamic {
			name = expression[i+1].text
		}
	}
	return name
}

// findPart judges one part of an expression and gives the index of its last word.
func (c *call) findPart(expression []word, i int, in found) int {
	a := expression[i]
	switch {
	case !a.known():
		c.high("a part of its expression is only known when it runs", doesDynamic)
	case slices.Contains(findPlain, a.text), slices.Contains(findAlternatives, a.text):
	case slices.Contains(findValued, a.text):
		if i++; i < len(expression) && strings.Contains(a.text, "name") && secret(expression[i].text) {
			c.high("looks for "+expression[i].text+", which may hold credentials", doesSecret)
		}
	case a.text == "-delete":
		for _, root := range in.roots {
			c.touch(in.below(root), useDelete)
		}
	case slices.Contains(findRuns, a.text):
		return c.findRun(expression, i+1, in)
	case slices.Contains(findWrites, a.text):
		if i++; i < len(expression) {
			c.touch(expression[i], useWrite)
		}
		c.high("option "+a.text+" writes a file", doesWrite)
	default:
		c.high("option " + a.text + " is not known here")
	}
	return i
}

// findRun judges the command of an -exec, with what is found in place of {}.
func (c *call) findRun(expression []word, i int, in found) int {
	end := i
	for end < len(expression) && expression[end].text != ";" && expression[end].text != "+" {
		end++
	}
	if end == i {
		c.raise(agent.RiskMedium, "an -exec without a command")
		return end
	}
	for _, root := range in.roots {
		var words []word
		for _, a := range expression[i:end] {
			words = append(words, a.replace("{}", in.below(root)))
		}
		c.runs(words, c.f.own(input{}))
	}
	return end
}

// below is what is found under a root, as a word with a wildcard.
func (f found) below(root word) word {
	root.text = strings.TrimSuffix(root.text, "/") + "/" + f.name
	root.lead = strings.TrimSuffix(root.lead, "/")
	root.glob = true
	if root.lead == "" {
		root.lead = "/"
	}
	return root
}

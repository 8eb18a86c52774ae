package config

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"belay/agent"
	"belay/strictyaml"
	"belay/tool"
)

// Agent is what an agent definition says. A task names it.
type Agent struct {
	// Name is the file's name without its extension; it may be left out of the file.
	Name        string `json:"name" yaml:"name"`
	Description string `json:"description,omitempty" yaml:"description"`
	// Model names the model to ask; default.
	Model string `json:"model" yaml:"model"`
	// Tools names what the agent may call. It must be written, and may be empty: then the agent can only answer in words.
	Tools []string `json:"tools" yaml:"tools"`
	// Prompt is the system prompt, written inline or in the PromptFile beside the definition.
	Prompt     string `json:"prompt" yaml:"prompt"`
	PromptFile string `json:"-" yaml:"prompt_file"`
	// Limits hold for tasks that ask for nothing stricter. What is left out is the tenant's ceiling.
	Limits agent.Limits `json:"limits,omitzero" yaml:"limits"`
	// Confirmation says which allowed calls are put before a person all the same; risky.
	Confirmation agent.ConfirmationMode `json:"confirmation" yaml:"confirmation"`
	// Sandbox names the sandbox profile; default.
	Sandbox string `json:"sandbox" yaml:"sandbox"`
}

// maxPrompt bounds a system prompt, in bytes.
const maxPrompt = 64 << 10

func (l *loader) agent(name string, a *Agent, d *strictyaml.Document) {
	l.name(d, name, &a.Name)
	a.Model = cmp.Or(a.Model, "default")
	a.Sandbox = cmp.Or(a.Sandbox, "default")
	a.Confirmation = cmp.Or(a.Confirmation, agent.ConfirmRisky)
	if modes := []agent.ConfirmationMode{agent.ConfirmAlways, agent.ConfirmRisky, agent.ConfirmNever}; !slices.Contains(modes, a.Confirmation) {
		l.wrong(d, "confirmation", "%.40q; expected always, risky or never", a.Confirmation)
	}
	l.prompt(a, d)
	l.limits(d, "limits", a.Limits)
	if !d.Has("tools") {
		l.wrong(d, "tools", "missing; expected a list of tools, which may be empty")
	}
	known := toolNames(tool.Default())
	for i, t := range a.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		if !slices.Contains(known, t) {
			l.wrong(d, at, "%.40q: no such tool; %s", t, strictyaml.Suggest(t, known))
		} else if slices.Contains(a.Tools[:i], t) {
			l.wrong(d, at, "%q is listed twice", t)
		}
	}
}

func toolNames(s *tool.Set) (names []string) {
	for _, spec := range s.Specs() {
		names = append(names, spec.Name)
	}
	return names
}

var promptFileForm = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]*\.md$`)

// prompt finds the system prompt.
func (l *loader) prompt(a *Agent, d *strictyaml.Document) {
	at := "prompt"
	switch inline, file := d.Has("prompt"), d.Has("prompt_file"); {
	case inline && file:
		l.wrong(d, "prompt_file", "given beside prompt; expected one of the two")
		return
	case !inline && !file:
		l.wrong(d, "prompt", "missing; expected the system prompt, here or in a prompt_file")
		return
	case file:
		at = "prompt_file"
		text, ok := l.folder[path.Join(agentsDir, a.PromptFile)]
		if !promptFileForm.MatchString(a.PromptFile) || !ok {
			l.wrong(d, at, "%.40q; expected the name of an .md file in %s", a.PromptFile, agentsDir)
			return
		}
		a.Prompt = string(text)
	}
	if strings.TrimSpace(a.Prompt) == "" || len(a.Prompt) > maxPrompt || !utf8.ValidString(a.Prompt) {
		l.wrong(d, at, "%d bytes; expected 1 to %d bytes of UTF-8", len(a.Prompt), maxPrompt)
	}
}

// limits checks limits that someone wrote. A written zero would pass for a limit that was left out.
func (l *loader) limits(d *strictyaml.Document, at string, have agent.Limits) {
	for _, err := range have.Validate() {
		l.problems = append(l.problems, d.At(fmt.Errorf("%s.%w", at, err)))
	}
	for _, name := range have.Missing() {
		if path := at + "." + string(name); d.Has(path) {
			l.wrong(d, path, "0; expected a positive value, or leave it out")
		}
	}
}

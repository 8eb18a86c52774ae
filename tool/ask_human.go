package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"belay/agent"
)

//go:embed ask_human.md
var askHumanText string

type askHumanArgs struct {
	Question string   `json:"question" jsonschema:"minLength=1,maxLength=4000" jsonschema_description:"What you ask, with all that a person needs to answer it."`
	Choices  []string `json:"choices,omitempty" jsonschema:"maxItems=10" jsonschema_description:"The answers to choose from, if there are such; the person may still write another."`
}

type askHuman struct{ described }

func newAskHuman() Tool { return askHuman{describe[askHumanArgs]("ask_human", askHumanText)} }

// Plan of a question: what a person is asked, with the choices below it.
func (askHuman) Plan(_ string, args json.RawMessage) (Plan, error) {
	a, err := read[askHumanArgs](args)
	if err != nil {
		return Plan{}, err
	}
	if strings.TrimSpace(a.Question) == "" {
		return Plan{}, errors.New("question: blank; expected what you ask")
	}
	question := visible(strings.TrimSpace(a.Question))
	for i, c := range a.Choices {
		if strings.TrimSpace(c) == "" || len(c) > 500 {
			return Plan{}, fmt.Errorf("choices[%d]: %s; expected 1 to 500 bytes of text", i, plural(len(c), "byte"))
		}
		question += fmt.Sprintf("\n%d. %s", i+1, oneLine(c))
	}
	return Plan{
		Effect:   agent.EffectPure,
		Risk:     agent.RiskLow,
		Question: question,
		Summary:  summary("ask:", a.Question),
	}, nil
}

// Run is always an error: a question is answered by a person, and never reaches an executor.
func (askHuman) Run(_ context.Context, env Env, _ json.RawMessage) (agent.Observation, error) {
	return agent.Observation{}, agent.Errorf(agent.StateError, "call %s: ask_human is answered by a person, not run", env.Call)
}

package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"belay/agent"
	"belay/model"
	"belay/sandbox"
)

// canned is a model in this process that answers at once: one shell call per reply until the number of steps that the
// goal names, then an answer. It keeps nothing: what it says follows from the conversation.
type canned struct{}

// What goals look like.
const (
	goalSteps = "%d steps of %d bytes" // so many calls, each of which prints so much
	goalPark  = "park"                 // one call that a person must allow
)

var prices = model.Prices{Input: 1.25, Output: 10}

var stepsOf = regexp.MustCompile(`^(\d+) steps of (\d+) bytes`)

// Reply implements model.Model.
func (canned) Reply(_ context.Context, r model.Request, _ func(model.Progress)) (model.Reply, error) {
	replies, goal := 0, ""
	for _, m := range r.Messages {
		switch {
		case m.Role == agent.RoleAssistant:
			replies++
		case m.Role == agent.RoleUser && goal == "":
			goal = m.Text
		}
	}
	// The numbers are as long as real ones, since they are part of the history, and too small to reach a limit.
	usage := agent.Usage{InputTokens: 1200 + replies%100, OutputTokens: 40, CachedTokens: 1100}
	usage.CostUSD = model.Cost(prices, usage)
	reply := model.Reply{Finish: model.FinishStop, Usage: usage, Model: "canned"}
	command := "rm -rf legacy"
	if steps := stepsOf.FindStringSubmatch(goal); steps != nil {
		n, err := strconv.Atoi(steps[1])
		if err != nil {
			return reply, &model.Error{Final: true, Failure: *agent.Errorf(agent.ModelError, "goal %q: %w", goal, err)}
		}
		if replies >= n {
			reply.Text = fmt.Sprintf("%d steps are done.", replies)
			return reply, nil
		}
		command = fmt.Sprintf("go test ./pkg%d # %s", replies+1, steps[2])
	}
	reply.Finish = model.FinishToolCalls
	reply.Calls = []agent.ToolCall{{ID: "call", Tool: "shell", Arguments: fmt.Sprintf(`{"command":%q}`, command)}}
	return reply, nil
}

// printer answers the commands of canned without running anything: each prints its part of a text.
type printer struct{ text string }

var printed = regexp.MustCompile(`pkg(\d+) # (\d+)$`)

func (p printer) handle(c sandbox.Command) (sandbox.Result, error) {
	m := printed.FindStringSubmatch(c.Script)
	if m == nil {
		return sandbox.Result{}, nil
	}
	step, err := strconv.Atoi(m[1])
	if err != nil {
		return sandbox.Result{}, err
	}
	size, err := strconv.Atoi(m[2])
	if err != nil {
		return sandbox.Result{}, err
	}
	if size == 0 {
		return sandbox.Result{}, nil
	}
	first := fmt.Sprintf("pkg %d\n", step) // no two steps say the same, which would look like being stuck
	at := step * size % max(1, len(p.text)-size)
	return sandbox.Result{Output: []byte((first + strings.ToValidUTF8(p.text[at:at+size], "?"))[:size])}, nil
}

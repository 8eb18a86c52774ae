package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"belay/agent"
	"belay/model"
)

// Result is what came of one call, as the next model call is told: an observation in the store, or a text where nothing
// ran.
type Result struct {
	Call        agent.CallID `json:"call"`
	Observation agent.Digest `json:"observation,omitempty"`
	Text        string       `json:"text,omitempty"`
}

// ModelInput asks a model for the next reply.
type ModelInput struct {
	Run  agent.RunRef `json:"run"`
	Step int          `json:"step"`
	// Head is the conversation so far. It is left out where it is what the run's step before led to.
	Head agent.Digest `json:"head,omitempty"`
	// Results answer the calls of the reply before, in the order in which it asked.
	Results []Result `json:"results,omitempty"`
	// Said is what people and the runtime want the model to hear.
	Said []string `json:"said,omitempty"`
	// Tokens and USD are what the task may still spend.
	Tokens int     `json:"tokens,omitempty"`
	USD    float64 `json:"usd,omitempty"`
	// MaxOutput and Timeout bound this reply; they are left out while they are those that the run began with.
	MaxOutput int            `json:"max_output,omitempty"`
	Timeout   agent.Duration `json:"timeout,omitempty"`
	// NoTools asks for words only.
	NoTools bool         `json:"no_tools,omitempty"`
	Notes   []agent.Note `json:"notes,omitempty"`
}

// ReplyKind says what a reply is.
type ReplyKind string

// The kinds of reply.
const (
	ReplyFinal     ReplyKind = "final"     // words, no calls
	ReplyCalls     ReplyKind = "calls"     // calls, with or without words
	ReplyRefusal   ReplyKind = "refusal"   // the model will not
	ReplyTruncated ReplyKind = "truncated" // cut at the output limit
	ReplyFiltered  ReplyKind = "filtered"  // held back by the endpoint
	ReplyEmpty     ReplyKind = "empty"     // neither words nor calls
	ReplyTooMany   ReplyKind = "too_many"  // more than MaxCalls calls
	ReplyLimit     ReplyKind = "limit"     // not asked for: the budget does not suffice
)

// ModelOutput is the reply in short; its content is the last turn of the conversation.
type ModelOutput struct {
	Head  agent.Digest    `json:"head"`
	Kind  ReplyKind       `json:"kind"`
	Calls int             `json:"calls,omitempty"` // how many calls the reply asks for, where it is more than one
	Text  string          `json:"text,omitempty"`  // of a final reply or a refusal, cut to MaxOutcome
	Limit agent.LimitName `json:"limit,omitempty"`
	Usage agent.Usage     `json:"usage"`           // without the step itself
	Model string          `json:"model,omitempty"` // the model that answered, where it is not the agent's first choice
	// Condensed is how many results were left out so that the conversation fits the model's window.
	Condensed int `json:"condensed,omitempty"`
}

// Spent is what the reply used, with the step and the model call themselves.
func (m ModelOutput) Spent() agent.Usage {
	u := m.Usage
	if m.Kind != ReplyLimit {
		u.Steps, u.ModelCalls = 1, 1
	}
	return u
}

// MaxCalls is how many calls one reply may ask for: their verdicts are part of the history.
const MaxCalls = 64

// MaxOutcome is how much of a final reply the history holds, in bytes.
const MaxOutcome = 4 << 10

// CallModel appends what happened since the last reply to the conversation, asks the model, and appends its reply. The
// reply is stored under the step before the activity returns, and an attempt looks there first, so no reply is bought
// twice because its answer got lost.
func (a *Activities) CallModel(ctx context.Context, in ModelInput) (ModelOutput, error) {
	t := a.startAttempt(ctx)
	var out ModelOutput
	err := t.run(ctx, func(ctx context.Context) (err error) {
		out, err = a.callModel(ctx, in, t)
		return err
	})
	return out, err
}

func (a *Activities) callModel(ctx context.Context, in ModelInput, t *attempt) (ModelOutput, error) {
	if out, found, err := a.storedReply(ctx, in.Run, in.Step); found || err != nil {
		return out, err
	}
	var err error
	if in.Head, err = a.headAfter(ctx, in.Run, in.Step-1, in.Head); err != nil {
		return ModelOutput{}, err
	}
	c, err := a.conversation(ctx, in)
	if err != nil {
		return ModelOutput{}, err
	}
	t.most = c.spec.Limits.MaxRetries
	in.MaxOutput = cmp.Or(in.MaxOutput, c.spec.Limits.MaxOutputTokens)
	in.Timeout = cmp.Or(in.Timeout, c.spec.Limits.ModelTimeout)
	reply, out, err := a.ask(ctx, in, c, t)
	if err != nil || out.Kind == ReplyLimit {
		return out, err
	}
	message := normalize(reply, callsIn(c.messages))
	turn := agent.Turn{Messages: append(c.added, message)}
	if out.Head, err = a.tenant(in.Run).Append(ctx, in.Head, turn); err != nil {
		return ModelOutput{}, fmt.Errorf("store the reply of step %d: %w", in.Step, err)
	}
	if out.Kind = kindOf(reply); len(message.Calls) > 1 {
		out.Calls = len(message.Calls)
	}
	out.Usage = reply.Usage.Add(t.spent())
	if out.Kind != ReplyCalls {
		out.Text = cut(cmp.Or(reply.Text, reply.Refusal), MaxOutcome)
	}
	return a.saveReply(ctx, in, out)
}

// dialogue is a conversation and what this step adds to it.
type dialogue struct {
	messages []agent.Message // everything that the model is to see
	added    []agent.Message // the part of it that is not stored yet
	spec     Spec
	tools    []agent.ToolSpec
}

func (a *Activities) conversation(ctx context.Context, in ModelInput) (dialogue, error) {
	spec, err := a.spec(ctx, in.Run)
	if err != nil {
		return dialogue{}, err
	}
	d := dialogue{spec: spec.Spec}
	if !in.NoTools {
		d.tools = spec.tools.Specs()
	}
	past, err := a.tenant(in.Run).Conversation(ctx, in.Head)
	if err != nil {
		return dialogue{}, fmt.Errorf("conversation of step %d: %w", in.Step, err)
	}
	for _, turn := range past.Turns {
		d.messages = append(d.messages, turn.Messages...)
	}
	if d.added, err = a.additions(ctx, in); err != nil {
		return dialogue{}, err
	}
	d.messages = append(d.messages, d.added...)
	return d, nil
}

// callsIn counts the calls of a conversation, so that new ones get the next ids.
func callsIn(messages []agent.Message) (n int) {
	for _, m := range messages {
		n += len(m.Calls)
	}
	return n
}

// additions are the messages that this step adds before the reply: results in the order of the calls, then what was said.
func (a *Activities) additions(ctx context.Context, in ModelInput) ([]agent.Message, error) {
	var added []agent.Message
	for _, r := range in.Results {
		text := r.Text
		if r.Observation != "" {
			o, err := a.observation(ctx, in.Run, r.Observation)
			if err != nil {
				return nil, fmt.Errorf("result of call %s: %w", r.Call, err)
			}
			text = o.Text
		}
		added = append(added, agent.Message{Role: agent.RoleTool, Call: r.Call, Text: text})
	}
	for _, s := range in.Said {
		added = append(added, agent.Message{Role: agent.RoleUser, Text: s})
	}
	return added, nil
}

// ask makes one attempt with the model of the chain whose turn it is.
func (a *Activities) ask(ctx context.Context, in ModelInput, d dialogue, t *attempt) (model.Reply, ModelOutput, error) {
	bundle := a.c.Bundle()
	chain, err := bundle.Chain(d.spec.Model)
	if err != nil {
		return model.Reply{}, ModelOutput{}, err
	}
	use := chain[min(t.p.Fallback, len(chain)-1)]
	m, err := a.c.Model(use.Name)
	if err != nil {
		return model.Reply{}, ModelOutput{}, err
	}
	view, condensed, err := model.Window(d.messages, d.tools, use.ContextWindow-in.MaxOutput)
	if err != nil {
		return model.Reply{}, ModelOutput{}, err
	}
	req := model.Request{Messages: view, Tools: d.tools}
	estimate, limit := reserve(&req, in, use, t.spent())
	if limit != "" {
		return model.Reply{}, ModelOutput{Kind: ReplyLimit, Head: in.Head, Limit: limit, Usage: t.spent()}, nil
	}
	t.update(func(p *progress) { p.InFlight = estimate })
	reply, err := replyWithin(ctx, m, req, time.Duration(in.Timeout))
	t.update(func(p *progress) { p.InFlight = agent.Usage{} })
	if err != nil {
		return reply, ModelOutput{}, a.failedReply(err, t, chain)
	}
	out := ModelOutput{Condensed: condensed}
	if use.Name != d.spec.Model {
		out.Model = use.Name
	}
	return reply, out, nil
}

func replyWithin(ctx context.Context, m model.Model, req model.Request, limit time.Duration) (model.Reply, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return m.Reply(ctx, req, nil)
}

// failedReply keeps what the attempt cost and, when a model's attempts are used up, moves on to the next of the chain.
func (a *Activities) failedReply(err error, t *attempt, chain []model.Config) error {
	failed, ok := errors.AsType[*model.Error](err)
	if !ok {
		return err
	}
	t.update(func(p *progress) {
		p.Spent = p.Spent.Add(failed.Usage)
		rule, retried := a.c.Retry[failed.Type]
		used := failed.Final || !retried || p.Failures[failed.Type]+1 >= rule.Attempts
		if used && failed.Type != agent.Cancelled && p.Fallback+1 < len(chain) {
			p.Fallback++
			p.Failures = map[agent.ErrorType]int{}
			failed.Type, failed.RetryAfter, failed.Final = agent.NetworkError, 0, false // the next model is asked after the shortest wait
		}
	})
	return err
}

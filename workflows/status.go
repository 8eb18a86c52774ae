package workflows

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
)

// Status is the answer to the query "state".
type Status struct {
	WorkflowID string                  `json:"workflow_id"`
	RunID      agent.RunID             `json:"run_id"`
	State      agent.ExecutionState    `json:"state"`
	Step       int                     `json:"step"`
	Goal       string                  `json:"goal"`
	Agent      string                  `json:"agent"`
	Tenant     agent.TenantID          `json:"tenant"`
	User       agent.UserID            `json:"user"`
	Usage      agent.Usage             `json:"usage"`
	Worked     agent.Duration          `json:"worked"`
	Limits     agent.Limits            `json:"limits"`
	Risk       agent.Risk              `json:"risk,omitempty"`
	WaitingFor []agent.UserID          `json:"waiting_for,omitempty"`
	Pending    int                     `json:"pending,omitempty"`
	Paused     *pause                  `json:"paused,omitempty"`
	Refused    []refusal               `json:"refused,omitempty"` // the last control messages that were not followed
	Head       agent.Digest            `json:"head,omitempty"`
	Base       agent.Digest            `json:"base,omitempty"`
	Tree       agent.Digest            `json:"tree,omitempty"`
	Sandbox    string                  `json:"sandbox,omitempty"`
	Ledger     string                  `json:"ledger"` // workflow id of the ledger
	Reason     agent.TerminationReason `json:"termination_reason,omitempty"`
}

// Pending is one entry of the query "pending": what waits for whom, and the command that answers.
type Pending = pending

type pending struct {
	Kind      string           `json:"kind"` // approval, question or limit
	Call      agent.CallID     `json:"call,omitempty"`
	Question  agent.QuestionID `json:"question,omitempty"`
	Limit     agent.LimitName  `json:"limit,omitempty"`
	Tool      string           `json:"tool,omitempty"`
	Digest    agent.Digest     `json:"digest,omitempty"`
	Risk      agent.Risk       `json:"risk,omitempty"`
	Effect    agent.Effect     `json:"effect,omitempty"`
	Text      string           `json:"text"`
	Reason    string           `json:"reason,omitempty"`
	Arguments string           `json:"arguments,omitempty"`
	Rules     []string         `json:"rules,omitempty"`
	Reviewers []agent.UserID   `json:"reviewers,omitempty"`
	Until     time.Time        `json:"until"`
	Command   string           `json:"command"`
}

// id is what the pending thing is called, unique in the run.
func (p pending) id() string {
	switch {
	case p.Question != "":
		return string(p.Question)
	case p.Call != "":
		return string(p.Call)
	}
	return string(p.Limit)
}

func (r *run) pendingItem(i *item) pending {
	p := pending{
		Kind: "approval", Call: i.Call, Tool: i.Tool, Digest: i.Digest, Risk: i.Risk, Effect: i.Effect, Text: i.Summary, Reason: i.Why,
		Arguments: i.Arguments, Rules: i.Rules, Reviewers: i.Reviewers, Until: i.Until,
	}
	if i.Gate == activities.GateQuestion {
		p.Kind, p.Question, p.Text, p.Reason = "question", i.Question, i.Why, ""
	}
	return p
}

// pendings is everything that waits for people.
func (r *run) pendings() []pending {
	list := []pending{}
	if r.Parked != "" {
		list = append(list, pending{Kind: "limit", Limit: r.Parked, Text: fmt.Sprintf("the limit %s is reached", r.Parked), Until: r.ParkEnd})
	}
	if r.Batch != nil {
		for _, i := range r.Batch.waiting() {
			list = append(list, r.pendingItem(i))
		}
	}
	for n := range list {
		list[n].Command = r.command(list[n])
	}
	return list
}

// command is the line of Temporal's CLI that answers.
func (r *run) command(p pending) string {
	verb, input := agent.VerbApprove, fmt.Sprintf(`{"call":"%s","digest":"%s","by":"YOU"}`, p.Call, p.Digest.Short())
	switch p.Kind {
	case "question":
		verb, input = agent.VerbAnswer, fmt.Sprintf(`{"question":"%s","by":"YOU","text":"…"}`, p.Question)
	case "limit":
		verb, input = agent.VerbRaise, fmt.Sprintf(`{"by":"YOU","limits":{"%s":…}}`, p.Limit)
	}
	return fmt.Sprintf("temporal workflow signal --workflow-id %s --name %s --input '%s'", quoted(r.info.WorkflowExecution.ID), verb, input)
}

// quoted makes a word safe for a shell.
func quoted(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@:") == "" && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// answerQueries registers the queries.
func (r *run) answerQueries(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, QueryState, func() (Status, error) { return r.status(), nil }); err != nil {
		return err
	}
	if err := workflow.SetQueryHandler(ctx, QueryPending, func() ([]pending, error) { return r.pendings(), nil }); err != nil {
		return err
	}
	return workflow.SetQueryHandler(ctx, QueryLedger, func() (LedgerRef, error) {
		return LedgerRef{WorkflowID: r.ledgerID(), Written: r.end != nil}, nil
	})
}

// LedgerRef is the answer to the query "ledger" of a task: where its ledger is, or will be.
type LedgerRef struct {
	WorkflowID string `json:"workflow_id"`
	Written    bool   `json:"written"`
}

func (r *run) ledgerID() string { return agent.LedgerWorkflowID(r.info.WorkflowExecution.ID, r.Run) }

func (r *run) status() Status {
	s := Status{
		WorkflowID: r.info.WorkflowExecution.ID, RunID: r.Run, State: r.Shown, Step: r.Step, Goal: r.Task.Goal,
		Agent: r.Task.Agent, Tenant: r.Task.Tenant, User: r.Task.User,
		Usage: r.Usage, Worked: r.Worked, Limits: r.Limits, Risk: r.Risk, Paused: r.Paused, Refused: r.Refused,
		Head: r.Head, Base: r.Base, Tree: r.Tree, Sandbox: string(r.Sandbox.ID), Ledger: r.ledgerID(),
	}
	if s.State == "" {
		s.State = agent.StateQueued
	}
	waiting := r.pendings()
	s.Pending, s.WaitingFor = len(waiting), reviewersOf(waiting)
	if r.end != nil {
		s.Reason = r.end.Reason
	}
	return s
}

func reviewersOf(list []pending) []agent.UserID {
	var all []agent.UserID
	seen := map[agent.UserID]bool{}
	for _, p := range list {
		for _, u := range p.Reviewers {
			if !seen[u] {
				seen[u] = true
				all = append(all, u)
			}
		}
	}
	return all
}

// show makes a new execution state known: to queries, to the Web UI's details, and as search attributes.
func (r *run) show(s agent.ExecutionState) {
	ctx := r.root
	if s != r.Shown {
		r.Shown = s
		if r.Prepared.SearchAttributes {
			r.upsert(ctx)
		}
	}
	workflow.SetCurrentDetails(ctx, r.details())
}

// details is the status that the Web UI shows, in Markdown.
func (r *run) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · step %d of %d\n\n%s\n\n", r.Shown, r.Step, r.Limits.MaxSteps, trim(r.Task.Goal, 1000))
	fmt.Fprintf(&b, "Spent: %d of %d tokens · $%.4f of $%.2f · %d of %d tool calls\n\n", r.Usage.Tokens(), r.Limits.MaxTokens,
		r.Usage.CostUSD, r.Limits.MaxCostUSD, r.Usage.ToolCalls, r.Limits.MaxToolCalls)
	for _, p := range r.pendings() {
		fmt.Fprintf(&b, "Waits for %s about %s: %s\n\n```\n%s\n```\n\n", orAnyone(p.Reviewers), p.id(), trim(p.Text, 500), p.Command)
	}
	fmt.Fprintf(&b, "Ledger: `%s`\n", r.ledgerID())
	return trim(b.String(), 19_000) // the server takes 20,000 bytes
}

func orAnyone(users []agent.UserID) string {
	if len(users) == 0 {
		return "anyone"
	}
	b, _ := json.Marshal(users) // strings always marshal
	return string(b)
}

// note keeps a fact that only the workflow knows for the next activity's input. fields are names and values in turn; what
// is empty is left out.
func (r *run) note(ctx workflow.Context, t agent.EventType, fields ...any) {
	n := agent.Note{Type: t, Time: workflow.Now(ctx), Step: r.Step}
	for i := 0; i < len(fields); i += 2 {
		if empty(fields[i+1]) {
			continue
		}
		if n.Fields == nil {
			n.Fields = map[string]any{}
		}
		n.Fields[fields[i].(string)] = short(fields[i+1])
	}
	r.Notes = append(r.Notes, n)
}

// short cuts a text that people wrote: notes are part of an activity's input, which has a limit.
func short(v any) any {
	if s, ok := v.(string); ok {
		return trim(s, maxNoted)
	}
	return v
}

func empty(v any) bool {
	b, err := json.Marshal(v)
	return err == nil && (string(b) == `""` || string(b) == "null")
}

func (r *run) takeNotes() []agent.Note {
	n := r.Notes
	r.Notes = nil
	return n
}

// grouped puts what follows into the step's event group, so that the Web UI shows a step as one.
func (r *run) grouped(ctx workflow.Context) workflow.Context {
	return workflow.WithEventGroups(ctx, workflow.NewEventGroup(fmt.Sprintf("s%d", r.Step+1)))
}

// summary cuts a text to what the server takes as a summary, and makes one line of it.
func (r *run) summary(s string) string { return trim(oneLine(s), 200) }

func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, s)
}

// trim shortens a text to n bytes at a rune's boundary.
func trim(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

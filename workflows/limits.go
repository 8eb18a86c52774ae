package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"belay/agent"
)

// reasonFor says how a task ends at a limit.
func reasonFor(l agent.LimitName) (agent.TerminationReason, agent.ErrorType) {
	switch l {
	case agent.LimitSteps:
		return agent.ReasonMaxSteps, agent.ResourceExhausted
	case agent.LimitTaskTimeout, agent.LimitModelTimeout:
		return agent.ReasonTimeout, agent.Timeout
	case agent.LimitApproval:
		return agent.ReasonEscalated, agent.Timeout
	}
	return agent.ReasonBudgetExhausted, agent.ResourceExhausted
}

// exceeds says whether a limit leaves no room for the next action. The limits that a call alone can tell, tokens and
// cost, count as exceeded when nothing is left.
func (r *run) exceeds(ctx workflow.Context, l agent.LimitName) bool {
	switch l {
	case agent.LimitSteps:
		return r.Step >= r.Limits.MaxSteps
	case agent.LimitTaskTimeout:
		return r.left(ctx) <= 0
	case agent.LimitTokens:
		return r.Limits.MaxTokens > 0 && r.Usage.Tokens() >= r.Limits.MaxTokens
	case agent.LimitCost:
		return r.Limits.MaxCostUSD > 0 && r.Usage.CostUSD >= r.Limits.MaxCostUSD
	case agent.LimitToolCalls:
		return r.Usage.ToolCalls >= r.Limits.MaxToolCalls
	}
	return false
}

// reached meets a limit as on_limit says. After it, either the task has an end, or it is parked.
func (r *run) reached(l agent.LimitName) {
	ctx, _ := workflow.NewDisconnectedContext(r.work)
	reason, kind := reasonFor(l)
	end := &ending{Reason: reason, Limit: l, Type: kind, Text: fmt.Sprintf("the limit %s is reached", l)}
	r.note(ctx, agent.EventLimitReached, "limit", l, "on_limit", r.Limits.OnLimit)
	switch {
	case l == agent.LimitApproval || r.Limits.OnLimit == agent.OnLimitStop || r.Limits.OnLimit == "":
		r.end = end
	case r.Limits.OnLimit == agent.OnLimitSummarize:
		end.Summary = r.summarize(ctx, l)
		r.end = end
	default:
		r.Parked = l
		r.ParkEnd = workflow.Now(ctx).Add(r.approvalTime())
		r.notify(ctx, pending{Kind: "limit", Limit: l, Text: fmt.Sprintf("the limit %s is reached", l), Until: r.ParkEnd})
	}
}

// waitForRaise parks the task until a person raises the limit. It says whether the task goes on.
func (r *run) waitForRaise() bool {
	r.show(r.atRest())
	ctx := r.waiting()
	ok, err := r.awaitUntil(ctx, r.ParkEnd, "raise "+string(r.Parked), func() bool { return r.Parked == "" })
	switch {
	case err != nil:
		r.cancelled()
		return false
	case ok && r.Parked == "":
		r.renewWork()
		r.show(agent.StateRunning)
		return true
	case ok: // the history is full; the next one waits on
		return false
	}
	reason, kind := reasonFor(r.Parked)
	r.end = &ending{Reason: reason, Limit: r.Parked, Type: kind, Text: fmt.Sprintf("the limit %s is reached, and nobody raised it in time", r.Parked)}
	return false
}

// summarize makes one last model call without tools and gives what the model says.
func (r *run) summarize(ctx workflow.Context, l agent.LimitName) string {
	if _, err := r.adopt(); err != nil {
		return ""
	}
	in := r.modelInput(ctx)
	in.NoTools = true
	in.Said = append(in.Said, fmt.Sprintf("The limit %s is reached: this is your last message. Say what was done, what is left, and what you would do next.", l))
	out, err := r.ask(ctx, in)
	if err != nil {
		return ""
	}
	return out.Text
}

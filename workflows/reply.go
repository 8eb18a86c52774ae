package workflows

import (
	"fmt"
	"math"
	"time"

	"go.temporal.io/sdk/workflow"

	"belay/activities"
	"belay/agent"
)

// reply gets the model's next reply and acts on what it is. It says whether there are calls to decide about.
func (r *run) reply() bool {
	if !r.unpaused() {
		return false
	}
	for _, l := range []agent.LimitName{agent.LimitSteps, agent.LimitTaskTimeout, agent.LimitTokens, agent.LimitCost} {
		if r.exceeds(r.work, l) {
			r.reached(l)
			return false
		}
	}
	if _, err := r.adopt(); err != nil {
		r.stop(err)
		return false
	}
	ctx := r.grouped(r.work)
	out, err := r.ask(ctx, r.modelInput(ctx))
	if err != nil {
		r.stop(err)
		if r.end != nil && r.end.Reason == agent.ReasonTimeout && r.end.Limit == "" {
			r.end.Limit = agent.LimitModelTimeout
		}
		return false
	}
	return r.interpret(ctx, out)
}

// modelInput tells the model what happened since its last reply. Results and messages are kept until its reply came.
func (r *run) modelInput(ctx workflow.Context) activities.ModelInput {
	in := activities.ModelInput{
		Run:     r.ref(ctx),
		Step:    r.Step + 1,
		Head:    r.headFor(r.ref(ctx)),
		Results: r.Results,
		Said:    r.Said,
		Notes:   r.takeNotes(),
	}
	if r.Limits.MaxOutputTokens != r.Prepared.Limits.MaxOutputTokens {
		in.MaxOutput = r.Limits.MaxOutputTokens
	}
	if r.Limits.ModelTimeout != r.Prepared.Limits.ModelTimeout {
		in.Timeout = r.Limits.ModelTimeout
	}
	if r.Limits.MaxTokens > 0 {
		in.Tokens = max(1, r.Limits.MaxTokens-r.Usage.Tokens())
	}
	if r.Limits.MaxCostUSD > 0 {
		in.USD = max(1e-9, math.Floor((r.Limits.MaxCostUSD-r.Usage.CostUSD)*1e6)/1e6)
	}
	return in
}

// headFor is the conversation, where an activity of that run does not know it.
func (r *run) headFor(ref agent.RunRef) agent.Digest {
	if ref.Run == r.HeadOf {
		return ""
	}
	return r.Head
}

// ask makes one model call and takes its reply into the state. What was said meanwhile waits for the next one.
func (r *run) ask(ctx workflow.Context, in activities.ModelInput) (activities.ModelOutput, error) {
	var out activities.ModelOutput
	opts := r.long(ctx, time.Duration(r.Limits.ModelTimeout), fmt.Sprintf("step %d · model", in.Step))
	err := r.during(ctx, func() error {
		return workflow.ExecuteActivity(opts, r.act.CallModel, in).Get(ctx, &out)
	})
	if err != nil {
		spent, _ := detailsOf(err)
		r.Usage = r.Usage.Add(spent)
		return out, err
	}
	r.Usage = r.Usage.Add(out.Spent())
	if out.Kind == activities.ReplyLimit {
		return out, nil
	}
	r.Step = in.Step
	r.Head, r.HeadOf = out.Head, in.Run.Run
	r.Results = nil
	r.Said = r.Said[min(len(in.Said), len(r.Said)):]
	if len(r.Said) == 0 {
		r.Said = nil
	}
	return out, nil
}

// nudges tell the model how to mend a reply that can't be acted upon.
var nudges = map[activities.ReplyKind]string{
	activities.ReplyTruncated: "Your reply was cut at the output limit and was not used. Answer again, shorter, or in smaller steps.",
	activities.ReplyFiltered:  "Your reply was held back by the endpoint's content filter and was not used. Answer in another way.",
	activities.ReplyTooMany:   fmt.Sprintf("Your reply asked for more than %d calls, and none of them ran. Ask for fewer at a time.", activities.MaxCalls),
	activities.ReplyEmpty:     "Your reply was empty. Call a tool, or say that you are done and what the outcome is.",
}

// interpret acts on a reply's kind. It says whether there are calls to decide about.
func (r *run) interpret(ctx workflow.Context, out activities.ModelOutput) bool {
	switch out.Kind {
	case activities.ReplyLimit:
		r.reached(out.Limit)
		return false
	case activities.ReplyCalls:
		r.Trail.acted()
		return r.gate(ctx)
	case activities.ReplyFinal:
		r.final(out.Text)
		return false
	case activities.ReplyRefusal:
		r.end = &ending{Reason: agent.ReasonFatalError, Type: agent.ModelError, Text: "the model refused: " + out.Text}
		return false
	}
	if r.Trail.idle() {
		r.end = stuck("three replies in a row without an action: %s", out.Kind)
		return false
	}
	r.Said = append([]string{nudges[out.Kind]}, r.Said...)
	return false
}

// gate has the calls of the reply judged. It says whether there is a batch.
func (r *run) gate(ctx workflow.Context) bool {
	if _, err := r.adopt(); err != nil {
		r.stop(err)
		return false
	}
	var out activities.GateOutput
	in := activities.GateInput{Run: r.ref(ctx), Step: r.Step, Head: r.Head, Dir: r.Dir, Policy: r.Prepared.Versions.Policy}
	if err := workflow.ExecuteLocalActivity(gateOptions(ctx), r.act.Gate, in).Get(ctx, &out); err != nil {
		r.stop(err)
		return false
	}
	r.Batch = &batch{}
	until := workflow.Now(ctx).Add(r.approvalTime())
	for _, v := range out.Verdicts {
		i := &item{Verdict: v}
		switch v.Gate {
		case activities.GateDeny:
			i.settle(agent.CallDenied, "Policy forbids this call, and it did not run: "+v.Why)
		case activities.GateInvalid:
			i.settle(agent.CallInvalid, "This call did not run: "+v.Why)
		case activities.GateQuestion:
			r.Questions++
			i.Question, i.Until = agent.NewQuestionID(r.Questions), until
		case activities.GateApproval:
			i.Until = until
		}
		r.Risk = worst(r.Risk, v.Risk)
		r.Batch.Items = append(r.Batch.Items, i)
	}
	return true
}

// worst is the higher of two risks, where none yet is lower than low.
func worst(a, b agent.Risk) agent.Risk {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a.Worse(b)
}

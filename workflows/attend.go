package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"belay/agent"
)

// attend follows signals as they come and watches the clock. It is one coroutine for all, since each costs a worker some
// memory for as long as the task waits for people, and it makes no signal channel before there is a signal.
func (r *run) attend(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancelled task still hears
	for {
		_ = workflow.Await(ctx, func() bool { return r.clockCalls() || heard(ctx) }) // nobody cancels this context
		r.checkClock()
		r.drain(ctx)
	}
}

// cautious is the order in which signals that came together are followed. The SDK keeps the order of each name only, so
// among several what holds back wins: a rejection over an approval, an edit over the call that it changes, and a pause over
// a resume.
var cautious = []agent.Verb{
	agent.VerbResume, agent.VerbPause, agent.VerbReject, agent.VerbEdit, agent.VerbAnswer, agent.VerbMessage,
	agent.VerbResolve, agent.VerbRaise, agent.VerbApprove,
}

// reserved begins the names that the SDK keeps to itself and can't be listened to.
const reserved = "__temporal_"

// heard says whether a signal waits that can be followed or refused.
func heard(ctx workflow.Context) bool {
	return slices.ContainsFunc(workflow.GetUnhandledSignalNames(ctx), func(n string) bool { return !strings.HasPrefix(n, reserved) })
}

// drain follows the signals that have come, verb by verb, and puts those that are no verb on record.
func (r *run) drain(ctx workflow.Context) {
	names := workflow.GetUnhandledSignalNames(ctx)
	slices.Sort(names)
	for _, verb := range cautious {
		if i, there := slices.BinarySearch(names, string(verb)); there {
			names = slices.Delete(names, i, i+1)
			receive(ctx, string(verb), func(raw converter.RawValue) { r.signal(ctx, verb, raw) })
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, reserved) {
			continue
		}
		receive(ctx, name, func(converter.RawValue) { r.refuse(ctx, agent.Verb(name), "", unknownVerb(name)) })
	}
}

func receive(ctx workflow.Context, name string, f func(converter.RawValue)) {
	ch := workflow.GetSignalChannel(ctx, name)
	var raw converter.RawValue
	for ch.ReceiveAsync(&raw) {
		f(raw)
	}
}

func (r *run) signal(ctx workflow.Context, verb agent.Verb, raw converter.RawValue) {
	c, err := agent.DecodeControl(verb, raw.Payload().GetData())
	if err == nil {
		_, err = r.follow(ctx, c)
	}
	if err != nil {
		r.refuse(ctx, verb, c.By, err)
	}
}

func unknownVerb(name string) error {
	return agent.Errorf(agent.InvalidInput, "unknown verb %.40q; expected one of %v", name, agent.TaskVerbs)
}

package workflows

import (
	"slices"
	"testing"

	"belay/agent"
)

// Signals that came together are followed in one order, which must know every verb and let what holds back come first.
func TestTheCautiousOrderKnowsEveryVerb(t *testing.T) {
	t.Parallel()
	have, want := slices.Sorted(slices.Values(cautious)), slices.Sorted(slices.Values(agent.TaskVerbs))
	if !slices.Equal(have, want) {
		t.Errorf("cautious knows %v, want %v", have, want)
	}
	for _, pair := range [][2]agent.Verb{{agent.VerbReject, agent.VerbApprove}, {agent.VerbEdit, agent.VerbApprove}, {agent.VerbResume, agent.VerbPause}} {
		if slices.Index(cautious, pair[0]) > slices.Index(cautious, pair[1]) {
			t.Errorf("%s comes after %s", pair[0], pair[1])
		}
	}
}

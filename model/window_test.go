package model_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
	"belay/model"
)

// talk is a conversation of system, goal and a number of turns, each with calls and results of up to size bytes.
func talk(seed uint64, turns, size int) []agent.Message {
	r := rand.New(rand.NewPCG(seed, 1))
	all := []agent.Message{{Role: agent.RoleSystem, Text: "You are careful."}, {Role: agent.RoleUser, Text: "Fix it."}}
	calls := 0
	for range turns {
		reply := agent.Message{Role: agent.RoleAssistant, Text: "next"}
		for range r.IntN(3) {
			calls++
			reply.Calls = append(reply.Calls, agent.ToolCall{ID: agent.NewCallID(calls), Tool: "shell", Arguments: `{"command":"ls"}`})
		}
		all = append(all, reply)
		for _, c := range reply.Calls {
			all = append(all, agent.Message{Role: agent.RoleTool, Call: c.ID, Text: strings.Repeat("x", r.IntN(size+1))})
		}
		if len(reply.Calls) == 0 || r.IntN(10) == 0 {
			all = append(all, agent.Message{Role: agent.RoleUser, Text: "go on"})
		}
	}
	return all
}

func isPointer(m agent.Message) bool {
	return m.Role == agent.RoleTool && strings.HasPrefix(m.Text, "[result of ")
}

// checkView says what must hold of every view.
func checkView(t *testing.T, messages, view []agent.Message, leftOut, limit int) {
	t.Helper()
	if len(view) != len(messages) {
		t.Fatalf("%d messages became %d", len(messages), len(view))
	}
	pointers := 0
	for i, m := range messages {
		if isPointer(view[i]) {
			pointers++
			if want := fmt.Sprintf("[result of %s left out to fit the context window; %d bytes]", m.Call, len(m.Text)); view[i].Text != want {
				t.Fatalf("message %d is %q, want %q", i, view[i].Text, want)
			}
			m.Text = view[i].Text
		}
		if diff := cmp.Diff(m, view[i]); diff != "" {
			t.Fatalf("message %d changed beyond its result (-want +got):\n%s", i, diff)
		}
	}
	if pointers != leftOut {
		t.Fatalf("%d results left out, %d reported", pointers, leftOut)
	}
	if got := model.EstimateTokens(model.Request{Messages: view}); got > limit {
		t.Fatalf("the view has %d tokens, over the limit of %d", got, limit)
	}
}

func FuzzWindow(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint16(100), uint16(4000))
	f.Add(uint64(2), uint8(60), uint16(3000), uint16(8000))
	f.Add(uint64(3), uint8(60), uint16(9000), uint16(16000))
	f.Add(uint64(4), uint8(200), uint16(500), uint16(12000))
	f.Add(uint64(5), uint8(20), uint16(60000), uint16(500))
	f.Fuzz(func(t *testing.T, seed uint64, turns uint8, size, limit uint16) {
		messages := talk(seed, int(turns), int(size))
		before := cmp.Diff(messages, nil)
		view, leftOut, err := model.Window(messages, nil, int(limit))
		if cmp.Diff(messages, nil) != before {
			t.Fatal("the conversation itself was changed")
		}
		if err != nil {
			failed, ok := errors.AsType[*model.Error](err)
			if !ok || failed.Type != agent.ModelError || !failed.Final || view != nil {
				t.Fatalf("got %#v, want a final ModelError and no view", err)
			}
			return
		}
		checkView(t, messages, view, leftOut, int(limit))
	})
}

func TestWindowLeavesAShortConversationAlone(t *testing.T) {
	t.Parallel()
	messages := talk(7, 10, 100)
	view, leftOut, err := model.Window(messages, nil, 100_000)
	if err != nil || leftOut != 0 || cmp.Diff(messages, view) != "" {
		t.Errorf("left out %d, err %v, diff %s", leftOut, err, cmp.Diff(messages, view))
	}
}

// A prompt cache serves the beginning of a request that did not change: each view must begin with the one before, but for
// the few steps at which more is left out.
func TestWindowKeepsItsBeginning(t *testing.T) {
	t.Parallel()
	const turns, limit = 80, 12_000
	messages := talk(11, turns, 3000)
	var last []agent.Message
	changed, asked := 0, 0
	for i, m := range messages {
		if m.Role != agent.RoleAssistant {
			continue
		}
		view, leftOut, err := model.Window(messages[:i], nil, limit)
		if err != nil {
			t.Fatal(err)
		}
		checkView(t, messages[:i], view, leftOut, limit)
		for j := range last {
			if isPointer(last[j]) && !isPointer(view[j]) {
				t.Fatalf("before reply %d, the result of %s came back", asked, view[j].Call)
			}
		}
		if !cmp.Equal(last, view[:len(last)]) {
			changed++
		}
		last = view
		asked++
	}
	if changed == 0 || changed > asked/8 {
		t.Errorf("the beginning changed %d times in %d requests; want at least once and at most every eighth time", changed, asked)
	}
}

func TestWindowSparesRecentResults(t *testing.T) {
	t.Parallel()
	var messages []agent.Message
	for i := range 40 {
		id := agent.NewCallID(i)
		messages = append(messages,
			agent.Message{Role: agent.RoleAssistant, Calls: []agent.ToolCall{{ID: id, Tool: "shell", Arguments: "{}"}}},
			agent.Message{Role: agent.RoleTool, Call: id, Text: strings.Repeat("y", 900)})
	}
	view, leftOut, err := model.Window(messages, nil, 6000)
	if err != nil || leftOut == 0 {
		t.Fatalf("left out %d, err %v; want some left out", leftOut, err)
	}
	for i, m := range view {
		if isPointer(m) && i >= len(view)-8 {
			t.Errorf("the result of %s, one of the last four, is left out", m.Call)
		}
		if m.Role == agent.RoleTool && !isPointer(m) && i < leftOut*2 {
			t.Errorf("the result of %s stays though later ones are left out", m.Call)
		}
	}
}

func TestWindowSaysWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	messages := []agent.Message{{Role: agent.RoleUser, Text: strings.Repeat("z", 30_000)}}
	_, _, err := model.Window(messages, nil, 2000)
	if err == nil || !strings.Contains(err.Error(), "about 10024 tokens") || !strings.Contains(err.Error(), "room for 2000") {
		t.Errorf("got %v; want an error with the size, 10024, and the room, 2000", err)
	}
	if agent.TypeOf(err) != agent.ModelError {
		t.Errorf("got type %q, want ModelError", agent.TypeOf(err))
	}
}

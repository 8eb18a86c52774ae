package endtoend_test

import "testing"

// TestTasks runs what needs no server of its own, all on one.
func TestTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newServer(t), "default")
	for _, c := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"ReadsRunAtOnce", testReadsRunAtOnce},
		{"WritesTakeTurns", testWritesTakeTurns},
		{"RefusedSignals", testRefusedSignals},
		{"RefusedUpdates", testRefusedUpdates},
		{"Limits", testLimits},
		{"TaskTimeout", testTaskTimeout},
		{"Cancel", testCancel},
		{"CancelModelCall", testCancelModelCall},
		{"Raise", testRaise},
		{"LostSandbox", testLostSandbox},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, w)
		})
	}
}

package endtoend_test

import "testing"

// TestTasks runs what needs no server of its own, all on one.
func TestTasks(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--namespace", "calc")
	w := newWorld(t, s, "default", play)
	calc := newWorld(t, s, "calc", "../examples/scenarios/calc.yaml")
	for _, c := range []struct {
		name string
		test func(*testing.T, *world)
		in   *world
	}{
		{"ReadsRunAtOnce", testReadsRunAtOnce, w},
		{"WritesTakeTurns", testWritesTakeTurns, w},
		{"RefusedSignals", testRefusedSignals, w},
		{"RefusedUpdates", testRefusedUpdates, w},
		{"Limits", testLimits, w},
		{"TaskTimeout", testTaskTimeout, w},
		{"Cancel", testCancel, w},
		{"CancelModelCall", testCancelModelCall, w},
		{"Raise", testRaise, w},
		{"LostSandbox", testLostSandbox, w},
		{"LostInACheck", testLostInACheck, w},
		{"Scripts", testScripts("testdata/script"), w},
		{"CalcScripts", testScripts("testdata/script/calc"), calc},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, c.in)
		})
	}
}

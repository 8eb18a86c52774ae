package agent_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
)

// full has every limit set, so that a limit that some code forgets shows.
func full(n int) agent.Limits {
	return agent.Limits{
		MaxSteps: n, TaskTimeout: agent.Duration(n), ModelTimeout: agent.Duration(n), ToolTimeout: agent.Duration(n),
		ApprovalTimeout: agent.Duration(n), MaxTokens: n, MaxOutputTokens: n, MaxCostUSD: float64(n), MaxToolCalls: n,
		MaxParallelTools: n, MaxRetries: n, MaxChildren: n, OnLimit: agent.OnLimitStop,
	}
}

func TestFullSetsEveryLimit(t *testing.T) {
	t.Parallel()
	v := reflect.ValueOf(full(1))
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("full leaves %s out", v.Type().Field(i).Name)
		}
	}
}

func TestTighten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		have, wish, want agent.Limits
	}{
		{"nothing asked", full(5), agent.Limits{}, full(5)},
		{"everything stricter", full(5), full(3), full(3)},
		{"everything looser", full(5), full(9), full(5)},
		{"nothing there", agent.Limits{}, full(9), full(9)},
		{"negative is not given", full(5), agent.Limits{MaxSteps: -1}, full(5)},
		{"one of each", agent.Limits{MaxSteps: 10, MaxCostUSD: 2, ToolTimeout: agent.Duration(time.Hour), OnLimit: agent.OnLimitStop},
			agent.Limits{MaxSteps: 20, MaxCostUSD: 0.5, MaxTokens: 7, ToolTimeout: agent.Duration(time.Minute), OnLimit: agent.OnLimitAsk},
			agent.Limits{MaxSteps: 10, MaxCostUSD: 0.5, MaxTokens: 7, ToolTimeout: agent.Duration(time.Minute), OnLimit: agent.OnLimitAsk}},
	} {
		before := tt.have
		if d := cmp.Diff(tt.want, tt.have.Tighten(tt.wish)); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if tt.have != before {
			t.Errorf("%s: changed its receiver", tt.name)
		}
	}
}

func TestRaised(t *testing.T) {
	t.Parallel()
	summarize := full(20)
	summarize.OnLimit = agent.OnLimitSummarize
	long := full(5)
	long.TaskTimeout = agent.Duration(7)
	for _, tt := range []struct {
		name    string
		by      agent.Limits
		want    agent.Limits
		wantErr string
	}{
		{name: "everything to the ceiling", by: full(20), want: full(20)},
		{name: "one", by: agent.Limits{TaskTimeout: agent.Duration(7)}, want: long},
		{name: "to what it is", by: agent.Limits{MaxSteps: 5}, want: full(5)},
		{name: "another way to meet it", by: summarize, want: summarize},
		{name: "nothing", wantErr: "limits: missing; expected at least one limit to raise"},
		{name: "above the ceiling", by: agent.Limits{MaxCostUSD: 20.5}, wantErr: "limits.max_cost_usd: 20.5; expected at most 20, the tenant's ceiling"},
		{name: "a duration above it", by: agent.Limits{ToolTimeout: agent.Duration(time.Hour)}, wantErr: "limits.tool_timeout: 1h0m0s; expected at most 20ns, the tenant's ceiling"},
		{name: "lower", by: agent.Limits{MaxSteps: 9, MaxTokens: 4}, wantErr: "limits.max_tokens: 4; expected at least 5, which it is now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			have := full(5)
			got, err := have.Raised(tt.by, full(20))
			if tt.wantErr != "" {
				if err == nil || err.Error() != tt.wantErr {
					t.Errorf("error %v, want %s", err, tt.wantErr)
				}
				tt.want = full(5)
			} else if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if have != full(5) {
				t.Error("changed its receiver")
			}
		})
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		have, bound agent.Limits
		want        string
	}{
		{"equal", full(5), full(5), ""},
		{"stricter", full(4), full(5), ""},
		{"unset", agent.Limits{}, full(5), ""},
		{"unbounded", full(5), agent.Limits{}, ""},
		{"looser", agent.Limits{MaxSteps: 3, MaxTokens: 6}, full(5), "max_tokens: 6; expected at most 5, the bound"},
	} {
		got := ""
		if err := tt.have.Within(tt.bound, "the bound"); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestLimitsValidate(t *testing.T) {
	t.Parallel()
	good := full(1)
	good.MaxChildren = 0
	for _, l := range []agent.Limits{{}, good} {
		if errs := l.Validate(); len(errs) > 0 {
			t.Errorf("%+v: %v", l, errs)
		}
	}
	bad := full(-1)
	bad.OnLimit = "go on"
	if got := len(bad.Validate()); got != reflect.TypeFor[agent.Limits]().NumField() {
		t.Errorf("%d errors in %v, want one a field", got, bad.Validate())
	}
	for _, usd := range []float64{math.NaN(), math.Inf(1)} {
		if errs := (agent.Limits{MaxCostUSD: usd}).Validate(); len(errs) != 1 {
			t.Errorf("max_cost_usd %v: %v", usd, errs)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	if got := full(1).Missing(); got != nil {
		t.Errorf("of full limits: %v", got)
	}
	// max_children is not supported yet, and without on_limit a task stops.
	if got, want := len((agent.Limits{}).Missing()), reflect.TypeFor[agent.Limits]().NumField()-2; got != want {
		t.Errorf("of no limits: %d, want %d", got, want)
	}
	l := full(1)
	l.ToolTimeout = 0
	if d := cmp.Diff([]agent.LimitName{agent.LimitToolTimeout}, l.Missing()); d != "" {
		t.Error(d)
	}
}

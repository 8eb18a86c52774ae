package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// The search attributes.
var (
	AttrState    = temporal.NewSearchAttributeKeyKeyword("BelayState")
	AttrTenant   = temporal.NewSearchAttributeKeyKeyword("BelayTenant")
	AttrAgent    = temporal.NewSearchAttributeKeyKeyword("BelayAgent")
	AttrUser     = temporal.NewSearchAttributeKeyKeyword("BelayUser")
	AttrWaiting  = temporal.NewSearchAttributeKeyKeywordList("BelayWaitingFor")
	AttrRisk     = temporal.NewSearchAttributeKeyKeyword("BelayRisk")
	AttrDecision = temporal.NewSearchAttributeKeyKeyword("BelayDecision")
	AttrSteps    = temporal.NewSearchAttributeKeyInt64("BelaySteps")
	AttrCost     = temporal.NewSearchAttributeKeyFloat64("BelayCostUSD")
)

func (r *run) upsert(ctx workflow.Context) {
	waiting := []string{}
	for _, u := range reviewersOf(r.pendings()) {
		waiting = append(waiting, string(u))
	}
	updates := []temporal.SearchAttributeUpdate{
		AttrState.ValueSet(string(r.Shown)),
		AttrTenant.ValueSet(string(r.Task.Tenant)),
		AttrAgent.ValueSet(r.Task.Agent),
		AttrUser.ValueSet(string(r.Task.User)),
		AttrWaiting.ValueSet(waiting),
		AttrSteps.ValueSet(int64(r.Step)),
		AttrCost.ValueSet(r.Usage.CostUSD),
	}
	if r.Risk != "" {
		updates = append(updates, AttrRisk.ValueSet(string(r.Risk)))
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes not upserted", "error", err)
	}
}

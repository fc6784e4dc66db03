package acl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// Fit divides the room of MaxRules between namespaces (max-min fairness): a namespace that needs no
// more than an equal share has all that it needs, and what it leaves is divided among the others.
// So no namespace takes room from one that needs less. Within a namespace services get room in the
// order of the plans, the oldest first.
//
// It returns the plans with room, and an error for each service without. Its rules are left out as
// a whole, because a part of them would admit too many. Merge of what fits has at most MaxRules for
// each class of interfaces.
func Fit(plans []*ServicePlan) (fitting []*ServicePlan, refused []*messages.ObjectError) {
	needs := map[string]int{}
	for _, plan := range plans {
		if plan.Needs <= MaxServiceRules {
			needs[namespaceOf(plan)] += plan.Needs
		}
	}
	share := fairShare(needs)
	used := map[string]int{}
	for _, plan := range plans {
		switch namespace := namespaceOf(plan); {
		case plan.Needs > MaxServiceRules:
			refused = append(refused, plan.refusal(fmt.Sprintf(
				"more than %d rules are needed to drop other clients; use fewer or larger ranges", MaxServiceRules)))
		case used[namespace]+plan.Needs > share:
			refused = append(refused, plan.refusal(fmt.Sprintf(
				"no room for %d rules: the services of namespace %s have %d of the %d that are its share", plan.Needs, namespace, used[namespace], share)))
		default:
			used[namespace] += plan.Needs
			fitting = append(fitting, plan)
		}
	}
	return fitting, refused
}

// fairShare returns the largest number of rules that every namespace may have when none has more
// than it needs; MaxRules where there is room for all.
func fairShare(needs map[string]int) int {
	room, left := MaxRules, len(needs)
	for _, n := range slices.Sorted(maps.Values(needs)) {
		if n > room/left {
			return room / left
		}
		room, left = room-n, left-1
	}
	return MaxRules
}

// namespaceOf is the namespace of a service.
func namespaceOf(plan *ServicePlan) string {
	namespace, _, _ := strings.Cut(plan.Service, "/")
	return namespace
}

// refusal says why a service has no rules.
func (p *ServicePlan) refusal(why string) *messages.ObjectError {
	field := "spec"
	if len(p.Ranged) > 0 {
		field = "spec.loadBalancerSourceRanges"
	}
	return &messages.ObjectError{Source: Renderer, Kind: "Service", Object: p.Service, Field: field, Message: why}
}

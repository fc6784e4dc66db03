package acl

import (
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// Merged are the rules of all services together.
type Merged struct {
	// Rules are minimal and fit into the ACLs, for Want.
	Rules []Rule
	// Closed are the services, in the order of the plans, whose rules do not fit, so that all of their clients are dropped.
	Closed []string
	// Unguarded are the services, in the order of the plans, for which not even that fits: nothing is dropped for them.
	Unguarded []string
	// Errors report the services that are closed or unguarded.
	Errors []*messages.ObjectError
}

// Merge unites the plans of all services that drop anything. Plans come in the order of their importance (the oldest service first): a
// service gets its rules as long as MaxRules allows; where they do not fit, those that drop all clients (ServicePlan.Closed); and where
// even those do not fit, none. Merge reports both.
//
// owner returns the service whose row is installed for a frontend that several services, or a foreign mapping in VPP, claim: the rules of
// the other services for it are left out. nil means that there are no conflicts.
func Merge(plans []*ServicePlan, owner func(frontend.Key) (service string, claimed bool)) Merged {
	var merged Merged
	var all []Rule
	used := map[Class]int{}
	for _, plan := range plans {
		switch rules, closed := owned(plan.Rules, plan.Service, owner), owned(plan.Closed, plan.Service, owner); {
		case fits(used, rules):
			all = append(all, rules...)
		case fits(used, closed):
			all = append(all, closed...)
			merged.Closed = append(merged.Closed, plan.Service)
			merged.report(plan, "all clients are dropped")
		default:
			merged.Unguarded = append(merged.Unguarded, plan.Service)
			merged.report(plan, "nothing is dropped")
		}
	}
	merged.Rules = Minimal(all)
	return merged
}

// Fit returns the plans that fit into the ACLs, closed where there is no room for more, and the result of Merge for all of them. It ignores
// which service owns a frontend: a service without its rules serves, and so owns, other frontends, so the answer must not depend on
// ownership. Merge always has room for what fits.
func Fit(plans []*ServicePlan) (fitting []*ServicePlan, room Merged) {
	room = Merge(plans, nil)
	if len(room.Errors) == 0 {
		return plans, room
	}
	for _, plan := range plans {
		switch {
		case slices.Contains(room.Unguarded, plan.Service):
		case slices.Contains(room.Closed, plan.Service):
			fitting = append(fitting, &ServicePlan{Service: plan.Service, Rules: plan.Closed, Closed: plan.Closed})
		default:
			fitting = append(fitting, plan)
		}
	}
	return fitting, room
}

// owned returns the rules of frontends that no other service owns.
func owned(rules []Rule, service string, owner func(frontend.Key) (string, bool)) []Rule {
	if owner == nil {
		return rules
	}
	var mine []Rule
	for _, r := range rules {
		if name, claimed := owner(r.Key()); !claimed || name == service {
			mine = append(mine, r)
		}
	}
	return mine
}

// fits adds the rules to what is used of every ACL, unless one of them would overflow.
func fits(used map[Class]int, rules []Rule) bool {
	needed := map[Class]int{}
	for _, class := range classes {
		for _, r := range rules {
			if r.Class.appliesTo(class) {
				needed[class]++
			}
		}
		if used[class]+needed[class] > MaxRules {
			return false
		}
	}
	for class, n := range needed {
		used[class] += n
	}
	return true
}

// report enters an error for a service whose rules do not fit.
func (m *Merged) report(plan *ServicePlan, outcome string) {
	m.Errors = append(m.Errors, &messages.ObjectError{
		Source: Renderer, Kind: "Service", Object: plan.Service, Field: "spec",
		Message: fmt.Sprintf("no room for its %d rules among the %d of all services: %s", len(plan.Rules), MaxRules, outcome),
	})
}

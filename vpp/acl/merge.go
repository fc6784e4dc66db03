package acl

import (
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// Merged is what is to be dropped for all services together.
type Merged struct {
	// Rules are minimal and fit into the ACLs, for Want.
	Rules []Rule
	// Closed are the services, in the order of the plans, for which there is only room to let nobody in.
	Closed []string
	// Unguarded are the services, in the order of the plans, for which there is no room at all: nothing is dropped for them.
	Unguarded []string
	// Errors say which services are closed or unguarded for want of room.
	Errors []*messages.ObjectError
}

// Merge unites the plans of all services that drop anything. Plans come in the order of their importance (the oldest service first): while
// the ACLs have room for MaxRules a service gets its rules; where they do not fit, those that drop everybody (ServicePlan.Closed); and where
// even those do not fit, none. Whom that concerns is reported.
//
// owner says whose row is installed under a frontend that several services, or somebody else in VPP, claim (nat44.Claims.Owner): the rules of
// the others about it are left out. nil means that nothing is contested.
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
			merged.report(plan, "nobody is let in")
		default:
			merged.Unguarded = append(merged.Unguarded, plan.Service)
			merged.report(plan, "nothing is dropped")
		}
	}
	merged.Rules = Minimal(all)
	return merged
}

// Fit finds out for which services there is room, whoever owns their frontends: what a service serves, and so owns, is something else where
// nothing is dropped for it, so the answer must not depend on it. It returns the plans of those that fit, with nobody let in where there is no
// room for more, and what Merge says of all. Merge always finds room for what fits.
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

// owned returns the rules about frontends that no one else owns.
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

// report enters that there is no room for the rules of a service.
func (m *Merged) report(plan *ServicePlan, outcome string) {
	m.Errors = append(m.Errors, &messages.ObjectError{
		Source: Renderer, Kind: "Service", Object: plan.Service, Field: "spec",
		Message: fmt.Sprintf("no room for its %d rules among the %d of all services: %s", len(plan.Rules), MaxRules, outcome),
	})
}

package acl

import "github.com/troupe-vpp/troupe/vpp/rule"

// Merge unites the rules of services that fit into MaxRules; minimal. The rules of source ranges
// count whichever service owns the frontend, so where several services have source ranges for one
// frontend, a client must be in the ranges of each. A drop counts unless owner returns another
// service, or a foreign mapping in VPP, for the frontend. A nil owner means that there are no
// conflicts.
func Merge(plans []*ServicePlan, owner func(rule.Key) (service string, claimed bool)) []Rule {
	var all []Rule
	for _, plan := range plans {
		all = append(all, plan.Ranges...)
		for _, r := range plan.Drops {
			if owner == nil {
				all = append(all, r)
			} else if name, claimed := owner(r.Key()); !claimed || name == plan.Service {
				all = append(all, r)
			}
		}
	}
	return Minimal(all)
}

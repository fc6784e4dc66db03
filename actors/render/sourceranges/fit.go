package sourceranges

import (
	"fmt"
	"strings"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
)

// fit divides acl.MaxRules between namespaces as service.Budget does; absent says that VPP has no
// access lists. Within a namespace services get room in the order of the plans, the oldest first.
//
// It returns the plans with room, and an error for each service without. The rules of such a
// service are left out as a whole, because a part of them would admit too many clients.
func fit(plans []*acl.ServicePlan, absent bool) (fitting []*acl.ServicePlan, refused []*messages.ObjectError) {
	budget := service.NewBudget(service.Limits{Service: service.Size{Rules: acl.MaxServiceRules}, Node: service.Size{Rules: acl.MaxRules}})
	for age, plan := range plans {
		budget.Set(plan.Service, int64(age), service.Size{Rules: plan.Needs})
	}
	budget.Settle()
	for _, plan := range plans {
		switch {
		case absent && len(plan.Ranged) == 0:
		case absent:
			refused = append(refused, refusal(plan, "VPP has no access lists, because its ACL plugin is not loaded"))
		case plan.Needs > acl.MaxServiceRules:
			refused = append(refused, refusal(plan, fmt.Sprintf(
				"more than %d rules are needed to drop other clients; use fewer or larger ranges", acl.MaxServiceRules)))
		case budget.Refused(plan.Service) != "":
			namespace, _, _ := strings.Cut(plan.Service, "/")
			refused = append(refused, refusal(plan, fmt.Sprintf(
				"no room for %d rules: older services take the share of namespace %s of the %d that a node may have", plan.Needs, namespace, acl.MaxRules)))
		default:
			fitting = append(fitting, plan)
		}
	}
	return fitting, refused
}

// refusal is the error of a service without rules.
func refusal(plan *acl.ServicePlan, why string) *messages.ObjectError {
	field := "spec"
	if len(plan.Ranged) > 0 {
		field = "spec.loadBalancerSourceRanges"
	}
	return &messages.ObjectError{Source: acl.Renderer, Kind: "Service", Object: plan.Service, Field: field, Message: why}
}

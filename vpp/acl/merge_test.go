package acl

import (
	"fmt"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// planOf makes a plan that drops all clients at the given frontends.
func planOf(service string, frontends ...string) *ServicePlan {
	plan := &ServicePlan{Service: service}
	for _, f := range frontends {
		plan.Rules = append(plan.Rules, rule(Any, f, "0.0.0.0/0"))
	}
	plan.Rules = Minimal(plan.Rules)
	plan.Closed = plan.Rules
	return plan
}

func TestMergeLeavesOthersAlone(t *testing.T) {
	plans := []*ServicePlan{planOf("a/old", "10.96.0.1:80/TCP", "10.96.0.1:81/TCP"), planOf("b/new", "10.96.0.1:80/TCP", "10.96.0.2:80/TCP", "10.96.0.3:80/TCP")}
	owners := map[string]string{"10.96.0.1:81/TCP": "b/new", "10.96.0.1:80/TCP": "a/old", "10.96.0.2:80/TCP": ""}
	merged := Merge(plans, func(k frontend.Key) (string, bool) {
		owner, claimed := owners[k.String()]
		return owner, claimed
	})
	check(t, "rules", []Rule{rule(Any, "10.96.0.1:80/TCP", "0.0.0.0/0"), rule(Any, "10.96.0.3:80/TCP", "0.0.0.0/0")}, merged.Rules)
	check(t, "errors", nil, merged.Errors)
	check(t, "all of them", 4, len(Merge(plans, nil).Rules))
	check(t, "of nothing", Merged{}, Merge(nil, nil))
}

// blocks makes n rules for one address, 65535 for the next one and so on.
func blocks(service string, first byte, n int) *ServicePlan {
	plan := &ServicePlan{Service: service}
	for i := range n {
		plan.Rules = append(plan.Rules, rule(Any, fmt.Sprintf("10.96.%d.1:%d/TCP", first, 1+i/64), fmt.Sprintf("10.0.%d.0/24", i%64)))
	}
	plan.Rules = Minimal(plan.Rules)
	for _, r := range plan.Rules {
		r.From = allAddresses(r.VIP)
		plan.Closed = append(plan.Closed, r)
	}
	plan.Closed = Minimal(plan.Closed)
	return plan
}

// TestMergeBound: the important ones get their rules, then services are closed, then left open, and each is reported; the ACLs do not overflow.
func TestMergeBound(t *testing.T) {
	big := blocks("a/big", 1, MaxRules-100)
	middle := blocks("b/middle", 2, 64*50) // 50 when closed
	small := blocks("c/small", 3, 50)      // fits as it is
	last := planOf("d/last", "10.96.4.1:80/TCP")
	merged := Merge([]*ServicePlan{big, middle, small, last}, nil)
	check(t, "rules", MaxRules, len(merged.Rules))
	check(t, "unguarded", []string{"d/last"}, merged.Unguarded)
	check(t, "closed", []string{"b/middle"}, merged.Closed)
	fitting, room := Fit([]*ServicePlan{big, middle, small, last})
	check(t, "room", merged, room)
	check(t, "fitting", []string{"a/big", "b/middle", "c/small"}, []string{fitting[0].Service, fitting[1].Service, fitting[2].Service})
	again := Merge(fitting, nil)
	check(t, "rules of what fits", merged.Rules, again.Rules)
	check(t, "errors of what fits", nil, again.Errors)
	all, _ := Fit([]*ServicePlan{small, last})
	check(t, "all fit", []*ServicePlan{small, last}, all)
	var reports []string
	for _, e := range merged.Errors {
		reports = append(reports, e.GetObject()+": "+e.GetMessage())
	}
	check(t, "reports", []string{
		"b/middle: no room for its 3200 rules among the 16384 of all services: all clients are dropped",
		"d/last: no room for its 1 rules among the 16384 of all services: nothing is dropped",
	}, reports)
	for _, class := range classes {
		if n := len(forInterface(merged.Rules, class)); n > MaxRules {
			t.Errorf("%d rules for %s", n, class)
		}
	}
	check(t, "room again", []string(nil), Merge([]*ServicePlan{middle, small, last}, nil).Unguarded)
}

// TestMergeCountsClasses: rules for one class of clients take no room from those for the other one.
func TestMergeCountsClasses(t *testing.T) {
	outside, inside := blocks("a/out", 1, MaxRules), blocks("b/in", 2, MaxRules)
	for i := range outside.Rules {
		outside.Rules[i].Class, inside.Rules[i].Class = Remote, Local
	}
	merged := Merge([]*ServicePlan{outside, inside}, nil)
	check(t, "rules", 2*MaxRules, len(merged.Rules))
	check(t, "errors", nil, merged.Errors)
}

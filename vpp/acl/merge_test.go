package acl

import (
	"testing"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// planOf makes a plan that drops all clients at the given frontends.
func planOf(service string, frontends ...string) *ServicePlan {
	plan := &ServicePlan{Plan: rule.Plan{Service: service}, Needs: len(frontends)}
	for _, f := range frontends {
		plan.Drops = append(plan.Drops, denying(Any, f, "0.0.0.0/0"))
	}
	plan.Drops = Minimal(plan.Drops)
	return plan
}

// TestMergeLeavesOthersAlone: a drop of a service does not count where another service owns the
// frontend; its source ranges do.
func TestMergeLeavesOthersAlone(t *testing.T) {
	older, younger := planOf("a/old", "10.96.0.1:80/TCP", "10.96.0.1:81/TCP"), planOf("b/new", "10.96.0.1:80/TCP", "10.96.0.2:80/TCP", "10.96.0.3:80/TCP")
	younger.Ranges = []Rule{denying(Any, "10.96.0.1:80/TCP", "10.0.0.0/8"), denying(Any, "10.96.0.4:80/TCP", "10.0.0.0/8")}
	older.Ranges = []Rule{denying(Any, "10.96.0.4:80/TCP", "192.0.0.0/8")}
	owners := map[string]string{"10.96.0.1:81/TCP": "b/new", "10.96.0.1:80/TCP": "c/third", "10.96.0.2:80/TCP": ""}
	merged := Merge([]*ServicePlan{older, younger}, func(k rule.Key) (string, bool) {
		owner, claimed := owners[k.String()]
		return owner, claimed
	})
	check(t, "rules", []Rule{
		denying(Any, "10.96.0.1:80/TCP", "10.0.0.0/8"), denying(Any, "10.96.0.3:80/TCP", "0.0.0.0/0"),
		denying(Any, "10.96.0.4:80/TCP", "10.0.0.0/8"), denying(Any, "10.96.0.4:80/TCP", "192.0.0.0/8"),
	}, merged)
	check(t, "without conflicts", 6, len(Merge([]*ServicePlan{older, younger}, nil)))
	check(t, "of nothing", nil, Merge(nil, nil))
}

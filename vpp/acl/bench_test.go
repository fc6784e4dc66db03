package acl

import (
	"fmt"
	"testing"
)

// manyPlans makes plans of n services that drop remote clients at two frontends each.
func manyPlans(n int) []*ServicePlan {
	plans := make([]*ServicePlan, n)
	for i := range plans {
		lb, port := fmt.Sprintf("203.0.%d.%d", 100+i/256, i%256), uint32(30000+i)
		plans[i] = Plan(view(fmt.Sprintf("default/web-%d", i), dropping("192.168.50.1", port, tcp, remote), dropping(lb, 80, tcp, remote)), Config{})
	}
	return plans
}

func BenchmarkPlanRanges(b *testing.B) {
	v := view("default/web", serving("203.0.113.10", 80, tcp, ranges(100)...))
	b.ReportAllocs()
	for b.Loop() {
		Plan(v, Config{})
	}
}

func BenchmarkMergeAndDiff(b *testing.B) {
	plans := manyPlans(5000)
	have := NewState()
	have.ACLs[DenyTag(Remote)] = ACL{Index: 1, Tag: DenyTag(Remote), Rules: forInterface(Merge(plans, nil), Remote)}
	have.ACLs[RecentTag(Remote)] = ACL{Index: 3, Tag: RecentTag(Remote), Rules: have.ACLs[DenyTag(Remote)].Rules[:1]}
	have.ACLs[PermitTag] = ACL{Index: 2, Tag: PermitTag}
	have.Lists[3] = Lists{Input: []uint32{1, 3, 2}}
	b.ReportAllocs()
	for b.Loop() {
		if ops := Diff(have, &Want{Rules: Merge(plans, nil), Interfaces: map[uint32]Class{3: Remote}}, true); len(ops) > 0 {
			b.Fatal(ops)
		}
	}
}

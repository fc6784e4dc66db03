package contract

import (
	"fmt"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
)

// BenchmarkAccessLists is what it costs VPP that one rule of 12,000 comes or goes, on 30
// interfaces. VPP forwards nothing meanwhile. Compared are all rules in one ACL, and what Diff
// makes of it.
func BenchmarkAccessLists(b *testing.B) {
	binary, plugins, why := realvpp.Find()
	if why != "" {
		b.Skip(why)
	}
	const rules, interfaces = 12000, 30
	ports := make([]uint16, rules)
	for i := range ports {
		ports[i] = uint16(1000 + i)
	}
	for _, count := range []int{rules, 1} {
		b.Run(fmt.Sprintf("replaced=%d", count), func(b *testing.B) {
			v := newRig(b, real{realvpp.Start(b, binary, plugins)})
			want := &acl.Want{Rules: drops(acl.Remote, ports...), Interfaces: map[uint32]acl.Class{}}
			for range interfaces {
				want.Interfaces[uint32(loopback(b, v))] = acl.Remote
			}
			v.settleACLs(b, want)
			have := v.readACLs(b)
			for more := false; b.Loop(); {
				more = !more
				flipped := *want
				if more {
					flipped.Rules = append(drops(acl.Remote, 999), want.Rules...)
				}
				ops := acl.Diff(have, &flipped, true)
				if count == rules {
					base := have.ACLs[acl.DenyTag(acl.Remote)]
					ops = []acl.Op{{Verb: acl.Replace, Tag: base.Tag, Index: base.Index, Rules: flipped.Rules}}
				}
				for _, result := range acl.Apply(b.Context(), v.link, ops) {
					if result.Err != nil {
						b.Fatal(result.Err)
					}
					have.Record(result.Op)
				}
			}
		})
	}
}

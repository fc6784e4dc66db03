package routes

import (
	"net/netip"
	"testing"
)

func TestStatePrefixes(t *testing.T) {
	want := Want{pfx("10.96.0.0/16"): plainReject, pfx("10.96.0.1/32"): plainDrop}
	have := knows(map[Place]Kind{{pfx("10.96.0.1/32"), 26}: Drop, {pfx("10.96.0.2/32"), 26}: Drop})
	set := func(all []netip.Prefix) map[netip.Prefix]int {
		n := map[netip.Prefix]int{}
		for _, p := range all {
			n[p]++
		}
		return n
	}
	check(t, "nothing is known", map[netip.Prefix]int{pfx("10.96.0.0/16"): 1, pfx("10.96.0.1/32"): 1}, set((*State)(nil).Prefixes(want)))
	check(t, "something is", map[netip.Prefix]int{pfx("10.96.0.0/16"): 1, pfx("10.96.0.1/32"): 1, pfx("10.96.0.2/32"): 1}, set(have.Prefixes(want)))
}

func TestStateInherit(t *testing.T) {
	hidden, gone, seen := pfx("10.96.0.0/16"), pfx("10.96.0.1/32"), pfx("10.96.0.2/32")
	before := knows(map[Place]Kind{{hidden, 26}: Reject, {gone, 26}: Reject, {seen, 26}: Reject, {hidden, 30}: Drop})
	state := knows(map[Place]Kind{{seen, 26}: Drop})
	state.Beneath = map[netip.Prefix]string{hidden: "API"}
	state.Inherit(nil)
	check(t, "without memory", map[Place]Kind{{seen, 26}: Drop}, state.Routes)
	state.Inherit(before)
	check(t, "with memory", map[Place]Kind{{seen, 26}: Drop, {hidden, 26}: Reject}, state.Routes)
}

package cnat

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// TestExcluded: every address is excluded unless it is in a target. While services are missing, VPP
// keeps the targets that it has.
func TestExcluded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := rapid.SliceOfN(rapid.SampledFrom(append(addresses("fd00:2::/64", 9), addresses("2001:db8::/64", 9)...)), 0, 5)
		want := Want{SNAT: SNAT{netip.IPv4Unspecified(), netip.MustParseAddr("fd00:1::1")}}
		want.Targets = remoteOf(pick.Draw(t, "targets")).Targets()
		earlier := Want{SNAT: want.SNAT}
		earlier.Targets = remoteOf(pick.Draw(t, "earlier")).Targets()
		held := earlier.excluded(nil)
		want.Partial = rapid.Bool().Draw(t, "partial")
		excluded := want.excluded(held)
		in := func(list []netip.Prefix, addr netip.Addr) bool {
			for _, p := range list {
				if p.Contains(addr) {
					return true
				}
			}
			return false
		}
		for _, addr := range pick.Draw(t, "addresses") {
			target := in(want.Targets, addr) || want.Partial && in(earlier.Targets, addr)
			kept := false
			for p := range excluded {
				kept = kept || p.Contains(addr)
			}
			if kept == target {
				t.Fatalf("%s: excluded %t, target %t", addr, kept, target)
			}
		}
	})
}

// TestExcludedIn: what VPP prints of its excluded networks.
func TestExcludedIn(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "Source NAT\n  ip4: 0.0.0.0;0\n  ip6: fd00:1::ffff;0\n\nExcluded prefixes:\n  Hash table 'snat prefixes'\n": 0,
		"[0]: heap offset 36722688, len 1, refcnt 1, linear 0\n    0: 0.0.0.0/0\n[5]: heap offset 3, len 2, refcnt 2, linear 0\n    0: fd00:1::/64\n    1: fd00:1::5/128\n": 3,
		"    0: 10.1.0.0/16 dst\n    1: 10.1.0.0/16 src\n    5 active elements 5 active buckets\n":                                                                          1,
	} {
		if got := excludedIn(text); len(got) != want {
			t.Errorf("%q: %s", text, fmt.Sprint(got))
		}
	}
}

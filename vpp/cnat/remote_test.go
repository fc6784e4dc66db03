package cnat

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// addresses are the first ones of a network.
func addresses(network string, n int) (found []netip.Addr) {
	for a := netip.MustParsePrefix(network).Addr(); len(found) < n; a = a.Next() {
		found = append(found, a)
	}
	return found
}

// remoteOf returns the endpoints with their targets.
func remoteOf(endpoints []netip.Addr, podNetworks ...netip.Prefix) *Remote {
	r := NewRemote(podNetworks)
	for _, e := range endpoints {
		r.Count(e, 1)
	}
	r.Settle()
	return r
}

// TestTargets: endpoints are targets by themselves, or with their pod network; there is room for
// few others.
func TestTargets(t *testing.T) {
	networks := []netip.Prefix{
		netip.MustParsePrefix("fd00:2::/64"), netip.MustParsePrefix("10.1.2.0/24"),
	}
	for _, c := range []struct {
		endpoints []netip.Addr
		want      int
		first     string
		left      int
	}{
		{nil, 0, "", 0},
		{
			slices.Concat(addresses("fd00:2::/64", 2), addresses("10.1.2.0/24", 3)),
			5, "10.1.2.0/32", 0,
		},
		{addresses("fd00:2::/64", maxTargets), maxTargets, "fd00:2::/128", 0},
		{addresses("fd00:2::/64", maxTargets+1), 1, "fd00:2::/64", 0},
		{
			slices.Concat(addresses("fd00:2::/64", maxTargets), addresses("2001:db8::/64", 2)),
			3, "2001:db8::/128", 0,
		},
		{addresses("2001:db8::/64", maxTargets+3), maxTargets, "2001:db8::/128", 3},
		{
			slices.Concat(addresses("10.1.2.0/24", maxTargets+1), addresses("2001:db8::/64", maxTargets)),
			1 + maxTargets, "10.1.2.0/24", 0,
		},
	} {
		r := remoteOf(c.endpoints, networks...)
		got, left := r.Targets(), r.Left()
		if len(got) != c.want || left != c.left || len(got) > 0 && got[0].String() != c.first {
			t.Errorf("%v: %d targets, %d left: %v", c.endpoints, len(got), left, got)
		}
	}
}

// TestTargetsFollow: however endpoints come and go, the targets are the same as if they were worked
// out of all endpoints at once, and Settle reports each change.
func TestTargetsFollow(t *testing.T) {
	var networks []netip.Prefix
	for _, network := range []string{"fd00:2::/64", "fd00:2::/122", "10.1.2.0/26"} {
		networks = append(networks, netip.MustParsePrefix(network))
	}
	pool := slices.Concat(
		addresses("fd00:2::/64", 80), addresses("2001:db8::/64", 40), addresses("10.1.2.0/24", 70))
	rapid.Check(t, func(t *rapid.T) {
		r, used := NewRemote(networks), map[netip.Addr]int{}
		most := rapid.IntRange(0, len(pool)-1).Draw(t, "most")
		for range 300 {
			before, leftBefore := slices.Clone(r.Targets()), r.Left()
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				at, n := rapid.IntRange(0, most).Draw(t, "endpoint"), 1
				e := pool[at*7919%len(pool)]
				if used[e] > 0 && rapid.Bool().Draw(t, "goes") {
					n = -1
				}
				used[e] += n
				r.Count(e, n)
			}
			if r.Left() != leftBefore {
				// each new number is told to every service
				t.Fatal("endpoints without room are counted before Settle")
			}
			changed := r.Settle()
			targets, left := all(used, networks)
			if !slices.Equal(r.Targets(), targets) || r.Left() != left || changed == slices.Equal(before, targets) {
				t.Fatalf("changed %t, %d left, targets %v\nwant %d left, %v\nbefore %v",
					changed, r.Left(), r.Targets(), left, targets, before)
			}
		}
	})
}

// all works out the targets of all endpoints, as Remote is documented.
func all(used map[netip.Addr]int, podNetworks []netip.Prefix) (targets []netip.Prefix, left int) {
	for _, ip6 := range [...]bool{false, true} {
		var single, outside []netip.Prefix
		within := map[netip.Prefix]bool{}
		for e, n := range used {
			if n == 0 || e.Is6() != ip6 {
				continue
			}
			p, best := netip.PrefixFrom(e, e.BitLen()), netip.Prefix{}
			for _, network := range podNetworks {
				if network.Contains(e) && (!best.IsValid() || network.Bits() > best.Bits()) {
					best = network
				}
			}
			if single = append(single, p); best.IsValid() {
				within[best] = true
			} else {
				outside = append(outside, p)
			}
		}
		if len(single) > maxTargets {
			slices.SortFunc(outside, comparePrefixes)
			room := min(len(outside), maxTargets)
			single, left = outside[:room], left+len(outside)-room
			for network := range within {
				targets = append(targets, network)
			}
		}
		targets = append(targets, single...)
	}
	slices.SortFunc(targets, comparePrefixes)
	return targets, left
}

// BenchmarkRemote: an endpoint is replaced, of as many as there are, in a pod network and in none.
func BenchmarkRemote(b *testing.B) {
	for _, n := range []int{100, 25_000} {
		for _, network := range []string{"fd00:2::/64", "2001:db8::/64"} {
			b.Run(fmt.Sprintf("%d in %s", n, network), func(b *testing.B) {
				pool := addresses(network, n+1)
				r := remoteOf(pool[:n], netip.MustParsePrefix("fd00:2::/64"))
				for i := 0; b.Loop(); i++ {
					r.Count(pool[(i+n)%(n+1)], 1)
					r.Count(pool[i%(n+1)], -1)
					r.Settle()
				}
			})
		}
	}
}

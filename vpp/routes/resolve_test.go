package routes

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// TestResolve pins which claim counts, in any order, and which routes give way.
func TestResolve(t *testing.T) {
	vip, lb := at("10.96.0.1"), at("203.0.113.7")
	connected := rule.Ground{Connected: []netip.Prefix{pfx("203.0.113.0/24")}}
	pods := rule.Ground{Pods: []netip.Prefix{pfx("203.0.113.0/24")}}
	taken := rule.Ground{Hosts: map[netip.Addr]bool{vip: true, lb: true}}
	network := Claim{vip, Network, false}
	for name, c := range map[string]struct {
		prefix netip.Prefix
		claims []Claim
		ground rule.Ground
		want   Route
	}{
		"no claim":                          {host(vip), nil, rule.Ground{}, Route{}},
		"every port has a row":              {host(vip), []Claim{{vip, Spare, false}, {vip, Spare, false}}, rule.Ground{}, plainReject},
		"one drops, one has rows":           {host(vip), []Claim{{vip, Spare, false}, {vip, Ignore, false}}, rule.Ground{}, plainDrop},
		"both drop":                         {host(vip), []Claim{{vip, Ignore, false}, {vip, Ignore, false}}, rule.Ground{}, plainDrop},
		"one drops, one rejects":            {host(vip), []Claim{{vip, Ignore, false}, {vip, Refuse, false}}, rule.Ground{}, plainReject},
		"both reject":                       {host(vip), []Claim{{vip, Refuse, false}, {vip, Refuse, false}}, rule.Ground{}, plainReject},
		"one is served elsewhere":           {host(lb), []Claim{{lb, Refuse, true}, {lb, Leave, true}}, rule.Ground{}, Route{}},
		"one drops, one is served":          {host(lb), []Claim{{lb, Ignore, true}, {lb, Leave, true}}, rule.Ground{}, Route{}},
		"external":                          {host(lb), []Claim{{lb, Refuse, true}}, rule.Ground{}, externalReject},
		"external in a connected network":   {host(lb), []Claim{{lb, Refuse, true}}, connected, Route{}},
		"external in a pod network":         {host(lb), []Claim{{lb, Refuse, true}}, pods, Route{}},
		"a cluster IP that others claim":    {host(vip), []Claim{{vip, Refuse, false}, {vip, Leave, true}}, rule.Ground{}, plainReject},
		"a cluster IP in one":               {host(lb), []Claim{{lb, Refuse, true}, {lb, Ignore, false}}, connected, plainDrop},
		"an address of a host":              {host(lb), []Claim{{lb, Refuse, true}}, taken, Route{}},
		"a cluster IP of a host":            {host(vip), []Claim{{vip, Refuse, false}}, taken, Route{}},
		"a network":                         {pfx("10.96.0.0/16"), []Claim{{at("10.96.0.0"), Network, false}}, rule.Ground{}, plainReject},
		"a network of one address":          {host(vip), []Claim{network}, rule.Ground{}, plainReject},
		"that a service wants left":         {host(vip), []Claim{network, {vip, Leave, true}}, rule.Ground{}, plainReject},
		"that a service wants dropped":      {host(vip), []Claim{network, {vip, Ignore, true}}, rule.Ground{}, plainReject},
		"that is the address of a host too": {host(vip), []Claim{network}, taken, plainReject},
	} {
		t.Run(name, func(t *testing.T) {
			backward := slices.Clone(c.claims)
			slices.Reverse(backward)
			for _, claims := range [][]Claim{c.claims, backward} {
				if got, found := Resolve(c.prefix, claims, c.ground); got != c.want || found != (c.want != Route{}) {
					t.Errorf("%s, %t; want %s", got, found, c.want)
				}
			}
		})
	}
}

// TestResolveHasNoOrder: neither order nor repetition of claims matters.
func TestResolveHasNoOrder(t *testing.T) {
	addr := at("203.0.113.7")
	rapid.Check(t, func(t *rapid.T) {
		var claims []Claim
		for range rapid.IntRange(0, 5).Draw(t, "claims") {
			claims = append(claims, Claim{addr, Stance(rapid.IntRange(1, 5).Draw(t, "stance")), rapid.Bool().Draw(t, "external")})
		}
		ground := rule.Ground{Hosts: map[netip.Addr]bool{addr: rapid.Bool().Draw(t, "taken")}}
		if rapid.Bool().Draw(t, "connected") {
			ground.Connected = []netip.Prefix{pfx("203.0.113.0/24")}
		}
		want, wanted := Resolve(host(addr), claims, ground)
		other := rapid.Permutation(claims).Draw(t, "order")
		if len(other) > 0 {
			other = append(slices.Clip(other), other[0])
		}
		if got, found := Resolve(host(addr), other, ground); got != want || found != wanted {
			t.Fatalf("%s, %t in another order, %s, %t in the first", got, found, want, wanted)
		}
	})
}

func TestNetworks(t *testing.T) {
	got := Networks([]netip.Prefix{pfx("fd96::/108"), pfx("10.96.7.7/16"), pfx("10.97.0.1/32"), pfx("0.0.0.0/0"), pfx("::/0"), {}, pfx("224.0.0.0/4")})
	keys := slices.SortedFunc(maps.Keys(got), netip.Prefix.Compare)
	check(t, "networks", []string{"10.96.0.0/16", "10.97.0.1/32", "fd96::/108"}, prefixes(keys))
	for p, claim := range got {
		if claim.Stance != Network || claim.External || claim.Addr != p.Addr() {
			t.Errorf("the claim on %s is %+v", p, claim)
		}
	}
}

func TestClaimPrefix(t *testing.T) {
	for addr, want := range map[string]string{"10.96.0.1": "10.96.0.1/32", "fd96::1": "fd96::1/128"} {
		if got := (Claim{Addr: at(addr)}).Prefix(); got != pfx(want) {
			t.Errorf("%s has %s", addr, got)
		}
	}
}

package routes

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestResolve pins what counts where wishes meet, in any order, and what gives way.
func TestResolve(t *testing.T) {
	vip, lb := at("10.96.0.1"), at("203.0.113.7")
	connected := Ground{Connected: []netip.Prefix{pfx("203.0.113.0/24")}}
	taken := Ground{Taken: map[netip.Addr]bool{vip: true, lb: true}}
	network := Claim{vip, Network, false}
	for name, c := range map[string]struct {
		prefix netip.Prefix
		claims []Claim
		ground Ground
		want   Route
	}{
		"no claim":                             {host(vip), nil, Ground{}, Route{}},
		"every port has a row":                 {host(vip), []Claim{{vip, Spare, false}, {vip, Spare, false}}, Ground{}, firmReject},
		"one drops, one has rows":              {host(vip), []Claim{{vip, Spare, false}, {vip, Ignore, false}}, Ground{}, firmDrop},
		"both drop":                            {host(vip), []Claim{{vip, Ignore, false}, {vip, Ignore, false}}, Ground{}, firmDrop},
		"one drops, one rejects":               {host(vip), []Claim{{vip, Ignore, false}, {vip, Refuse, false}}, Ground{}, firmReject},
		"both reject":                          {host(vip), []Claim{{vip, Refuse, false}, {vip, Refuse, false}}, Ground{}, firmReject},
		"one is served elsewhere":              {host(lb), []Claim{{lb, Refuse, true}, {lb, Leave, true}}, Ground{}, Route{}},
		"one drops, one is served":             {host(lb), []Claim{{lb, Ignore, true}, {lb, Leave, true}}, Ground{}, Route{}},
		"external":                             {host(lb), []Claim{{lb, Refuse, true}}, Ground{}, firmReject},
		"external in a connected network":      {host(lb), []Claim{{lb, Refuse, true}}, connected, yieldingReject},
		"a cluster IP in one":                  {host(lb), []Claim{{lb, Refuse, true}, {lb, Ignore, false}}, connected, firmDrop},
		"a cluster IP that another one leaves": {host(vip), []Claim{{vip, Refuse, false}, {vip, Leave, true}}, Ground{}, firmReject},
		"an address of a host":                 {host(lb), []Claim{{lb, Refuse, true}}, taken, Route{}},
		"a cluster IP of a host":               {host(vip), []Claim{{vip, Refuse, false}}, taken, Route{}},
		"a network":                            {pfx("10.96.0.0/16"), []Claim{{at("10.96.0.0"), Network, false}}, Ground{}, firmReject},
		"a network of one address":             {host(vip), []Claim{network}, Ground{}, firmReject},
		"that a service wants left":            {host(vip), []Claim{network, {vip, Leave, true}}, Ground{}, firmReject},
		"that a service wants dropped":         {host(vip), []Claim{network, {vip, Ignore, true}}, Ground{}, firmReject},
		"that is the address of a host too":    {host(vip), []Claim{network}, taken, firmReject},
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
		ground := Ground{Taken: map[netip.Addr]bool{addr: rapid.Bool().Draw(t, "taken")}}
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
	keys := slices.SortedFunc(maps.Keys(got), ComparePrefixes)
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

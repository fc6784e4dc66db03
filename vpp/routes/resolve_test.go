package routes

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestClaims(t *testing.T) {
	vip, lb := at("10.96.0.1"), at("203.0.113.7")
	c := NewClaims()
	route := func(p netip.Prefix, want Route) {
		t.Helper()
		got, ok := c.Route(p)
		if got != want || ok != (want != Route{}) {
			t.Errorf("route of %s is %s, %v; want %s", p, got, ok, want)
		}
	}
	check(t, "networks", []string{"10.96.0.0/16", "fd96::/108"}, prefixes(c.SetNetworks([]netip.Prefix{pfx("fd96::/108"), pfx("10.96.7.7/16"), pfx("0.0.0.0/0"), pfx("::/0"), {}, pfx("224.0.0.0/4")})))
	route(pfx("10.96.0.0/16"), firmReject)
	check(t, "the same networks", nil, prefixes(c.SetNetworks([]netip.Prefix{pfx("10.96.0.0/16"), pfx("fd96::/108")})))

	check(t, "first", []string{"10.96.0.1/32", "203.0.113.7/32"}, prefixes(c.Set("default/a", []Claim{{vip, Refuse, false}, {lb, Refuse, true}})))
	check(t, "the same", nil, prefixes(c.Set("default/a", []Claim{{lb, Refuse, true}, {vip, Refuse, false}})))
	route(host(vip), firmReject)
	route(host(lb), firmReject)
	check(t, "a second one that wants the same", nil, prefixes(c.Set("default/b", []Claim{{lb, Refuse, true}})))
	check(t, "the first goes", []string{"10.96.0.1/32"}, prefixes(c.Remove("default/a")))
	route(host(lb), firmReject)

	check(t, "somebody is served elsewhere", []string{"203.0.113.7/32"}, prefixes(c.Set("default/c", []Claim{{lb, Leave, true}})))
	route(host(lb), Route{})
	check(t, "services", []string{"default/b", "default/c"}, c.Services(host(lb)))
	check(t, "and goes", []string{"203.0.113.7/32"}, prefixes(c.Remove("default/c")))

	check(t, "connected", []string{"203.0.113.7/32"}, prefixes(c.SetGround(Ground{Connected: []netip.Prefix{pfx("203.0.113.0/24")}})))
	route(host(lb), yieldingReject)
	check(t, "a cluster IP too", []string{"203.0.113.7/32"}, prefixes(c.Set("default/d", []Claim{{lb, Ignore, false}})))
	route(host(lb), firmReject)
	c.Remove("default/d")
	check(t, "taken", []string{"203.0.113.7/32"}, prefixes(c.SetGround(Ground{Taken: map[netip.Addr]bool{lb: true}})))
	route(host(lb), Route{})
	check(t, "want", Want{pfx("10.96.0.0/16"): firmReject, pfx("fd96::/108"): firmReject}, c.Want())
	check(t, "free", []string{"203.0.113.7/32"}, prefixes(c.SetGround(Ground{})))
	check(t, "want", Want{pfx("10.96.0.0/16"): firmReject, pfx("fd96::/108"): firmReject, host(lb): firmReject}, c.Want())

	check(t, "of", []Claim{{lb, Refuse, true}}, c.Of("default/b"))
	check(t, "last", []string{"203.0.113.7/32"}, prefixes(c.Set("default/b", []Claim{{lb, Leave, true}, {lb, Refuse, true}, {at("127.0.0.1"), Refuse, true}})))
	check(t, "of, merged", []Claim{{lb, Leave, true}}, c.Of("default/b"))
	check(t, "unknown", nil, prefixes(c.Remove("default/nobody")))
	check(t, "a network goes", []string{"fd96::/108"}, prefixes(c.SetNetworks([]netip.Prefix{pfx("10.96.0.0/16")})))
	check(t, "services of a network", nil, c.Services(pfx("10.96.0.0/16")))
	c.Remove("default/b")
	if len(c.claims) != 0 || len(c.services) != 0 {
		t.Errorf("left: %v, %v", c.claims, c.services)
	}
}

// TestClaimsStances pins what counts where wishes meet.
func TestClaimsStances(t *testing.T) {
	addr := at("10.96.0.1")
	for _, c := range []struct {
		a, b Stance
		want Route
	}{
		{Spare, Spare, firmReject},
		{Spare, Ignore, firmDrop},
		{Ignore, Ignore, firmDrop},
		{Ignore, Refuse, firmReject},
		{Refuse, Refuse, firmReject},
		{Refuse, Leave, Route{}},
		{Ignore, Leave, Route{}},
	} {
		for _, order := range [][2]Stance{{c.a, c.b}, {c.b, c.a}} {
			claims := NewClaims()
			claims.Set("a", []Claim{{addr, order[0], false}})
			claims.Set("b", []Claim{{addr, order[1], false}})
			if got, _ := claims.Route(host(addr)); got != c.want {
				t.Errorf("%d and %d: %s, want %s", order[0], order[1], got, c.want)
			}
		}
	}
}

// TestANetworkOfOneAddress: a service network that is one address is refused whatever the services say.
func TestANetworkOfOneAddress(t *testing.T) {
	c := NewClaims()
	c.Set("a", []Claim{{at("10.96.0.1"), Leave, true}})
	check(t, "changed", []string{"10.96.0.1/32"}, prefixes(c.SetNetworks([]netip.Prefix{pfx("10.96.0.1/32")})))
	check(t, "nothing changes", nil, prefixes(c.Set("a", []Claim{{at("10.96.0.1"), Ignore, true}})))
	check(t, "want", Want{pfx("10.96.0.1/32"): firmReject}, c.Want())
}

// TestClaimsTellEveryChange: what the methods return is exactly the difference of Want, and Want depends on what was set last, not on
// the way there.
func TestClaimsTellEveryChange(t *testing.T) {
	addresses := []netip.Addr{at("10.96.0.1"), at("203.0.113.7"), at("192.168.50.9"), at("2001:db8::7")}
	networks := []netip.Prefix{pfx("10.96.0.0/16"), pfx("10.96.0.1/32"), pfx("fd96::/108"), pfx("0.0.0.0/0")}
	some := func(t *rapid.T, n int) []int {
		return rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID[int]).Draw(t, "some")
	}
	rapid.Check(t, func(t *rapid.T) {
		c := NewClaims()
		services := map[string][]Claim{}
		var nets []netip.Prefix
		var ground Ground
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			before := c.Want()
			var changed []netip.Prefix
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				nets = nil
				for _, i := range some(t, len(networks)) {
					nets = append(nets, networks[i])
				}
				changed = c.SetNetworks(nets)
			case 1:
				ground = Ground{Taken: map[netip.Addr]bool{}}
				for _, i := range some(t, len(addresses)) {
					ground.Taken[addresses[i]] = true
				}
				if rapid.Bool().Draw(t, "connected") {
					ground.Connected = []netip.Prefix{pfx("192.168.50.0/24")}
				}
				changed = c.SetGround(ground)
			default:
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "service")
				var claims []Claim
				for _, i := range some(t, len(addresses)) {
					claims = append(claims, Claim{addresses[i], Stance(rapid.IntRange(1, 4).Draw(t, "stance")), rapid.Bool().Draw(t, "external")})
				}
				services[name] = claims
				changed = c.Set(name, claims)
			}
			after := c.Want()
			var differs []netip.Prefix
			for p := range maps.Keys(union(before, after)) {
				if before[p] != after[p] {
					differs = append(differs, p)
				}
			}
			slices.SortFunc(differs, comparePrefix)
			if d := diff(differs, changed); d != "" {
				t.Fatalf("changed (-difference +told):\n%s", d)
			}
		}
		fresh := NewClaims()
		fresh.SetGround(ground)
		for name, claims := range services {
			fresh.Set(name, claims)
		}
		fresh.SetNetworks(nets)
		if d := diff(fresh.Want(), c.Want()); d != "" {
			t.Fatalf("the way matters:\n%s", d)
		}
	})
}

// union returns the prefixes of both.
func union(a, b Want) Want {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

package acl

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestComplement(t *testing.T) {
	for _, c := range []struct {
		name, within  string
		allowed, want []netip.Prefix
	}{
		{"no client is allowed", "0.0.0.0/0", nil, prefixes("0.0.0.0/0")},
		{"every client is", "0.0.0.0/0", prefixes("0.0.0.0/0"), nil},
		{"both halves are", "0.0.0.0/0", prefixes("0.0.0.0/1", "128.0.0.0/1"), nil},
		{"the upper half", "0.0.0.0/0", prefixes("128.0.0.0/1"), prefixes("0.0.0.0/1")},
		{"10/8", "0.0.0.0/0", prefixes("10.0.0.0/8"), prefixes(
			"0.0.0.0/5", "8.0.0.0/7", "11.0.0.0/8", "12.0.0.0/6", "16.0.0.0/4", "32.0.0.0/3", "64.0.0.0/2", "128.0.0.0/1")},
		{"host bits do not count", "10.0.0.0/30", prefixes("10.0.0.1/31"), prefixes("10.0.0.2/31")},
		{"inside and outside", "10.0.0.0/30", prefixes("10.0.0.0/32", "192.168.0.0/16"), prefixes("10.0.0.1/32", "10.0.0.2/31")},
		{"one within the other", "10.0.0.0/30", prefixes("10.0.0.0/31", "10.0.0.1/32"), prefixes("10.0.0.2/31")},
		{"the other family allows nothing", "10.0.0.0/8", prefixes("::/0"), prefixes("10.0.0.0/8")},
		{"invalid ones allow nothing", "10.0.0.0/8", []netip.Prefix{{}}, prefixes("10.0.0.0/8")},
		{"IPv6", "fd00::/126", prefixes("fd00::2/128"), prefixes("fd00::/127", "fd00::3/128")},
		{"one address", "10.0.0.1/32", nil, prefixes("10.0.0.1/32")},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, "left", c.want, Complement(netip.MustParsePrefix(c.within), c.allowed))
		})
	}
	if got := Complement(netip.Prefix{}, nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
	if got := len(Complement(netip.MustParsePrefix("0.0.0.0/0"), prefixes("192.168.50.2/32"))); got != 32 {
		t.Errorf("one address needs %d networks", got)
	}
}

// universe is a network whose addresses can be tried one by one.
type universe struct {
	network netip.Prefix
	addrs   []netip.Addr
}

func newUniverse(network string) universe {
	u := universe{network: netip.MustParsePrefix(network)}
	for a := u.network.Addr(); u.network.Contains(a); a = a.Next() {
		u.addrs = append(u.addrs, a)
	}
	return u
}

// genNetworks draws networks that lie in the universe, contain it, or do not touch it.
func genNetworks(u universe) *rapid.Generator[[]netip.Prefix] {
	one := rapid.Custom(func(t *rapid.T) netip.Prefix {
		if rapid.IntRange(0, 9).Draw(t, "elsewhere") == 0 {
			return rapid.SampledFrom(prefixes("172.16.0.0/12", "::/0", "0.0.0.0/32", "fd01::/16")).Draw(t, "network")
		}
		addr := rapid.SampledFrom(u.addrs).Draw(t, "address")
		shortest := max(0, u.network.Bits()-1)
		if rapid.IntRange(0, 5).Draw(t, "narrow") > 0 {
			shortest = addr.BitLen() - 5
		}
		return netip.PrefixFrom(addr, rapid.IntRange(shortest, addr.BitLen()).Draw(t, "bits"))
	})
	return rapid.SliceOfN(one, 0, 12)
}

// smallest counts, address by address, how few networks can cover the addresses that are left: each
// network of which all addresses are left, unless this is true of the network around it.
func smallest(u universe, left func(netip.Addr) bool) (n int) {
	whole := func(p netip.Prefix) bool {
		return !slices.ContainsFunc(u.addrs, func(a netip.Addr) bool { return p.Contains(a) && !left(a) })
	}
	var count func(p netip.Prefix)
	count = func(p netip.Prefix) {
		if whole(p) {
			n++
		} else if p.Bits() < p.Addr().BitLen() {
			low, high := halves(p)
			count(low)
			count(high)
		}
	}
	count(u.network)
	return n
}

// TestComplementByBruteForce: every address is in exactly one of both sets, and no shorter list
// does it.
func TestComplementByBruteForce(t *testing.T) {
	for _, network := range []string{"10.0.0.0/24", "10.255.255.192/26", "fd00::ff00/120"} {
		u := newUniverse(network)
		t.Run(network, rapid.MakeCheck(func(t *rapid.T) {
			allowed := genNetworks(u).Draw(t, "allowed")
			got := Complement(u.network, allowed)
			contains := func(all []netip.Prefix, a netip.Addr) bool {
				return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
			}
			for _, a := range u.addrs {
				if contains(allowed, a) == contains(got, a) {
					t.Fatalf("%s: allowed %v, dropped %v by %v", a, contains(allowed, a), contains(got, a), got)
				}
			}
			if want := smallest(u, func(a netip.Addr) bool { return !contains(allowed, a) }); len(got) != want {
				t.Fatalf("%d networks, %d are enough: %v", len(got), want, got)
			}
			for i := 1; i < len(got); i++ {
				if !got[i-1].Addr().Less(got[i].Addr()) || got[i-1].Overlaps(got[i]) || got[i] != got[i].Masked() {
					t.Fatalf("not in order, or overlapping: %v", got)
				}
			}
		}))
	}
}

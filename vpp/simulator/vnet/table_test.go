package vnet

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLookupIsLongestMatch compares the table with a linear search.
func TestLookupIsLongestMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable(0, false, NewSources())
		var prefixes []netip.Prefix
		addr := func(label string) netip.Addr {
			return netip.AddrFrom4([4]byte{10, rapid.Uint8Range(0, 3).Draw(t, label), 0, rapid.Uint8Range(0, 7).Draw(t, label)})
		}
		for range rapid.IntRange(0, 20).Draw(t, "routes") {
			p := netip.PrefixFrom(addr("route"), rapid.IntRange(0, 32).Draw(t, "bits")).Masked()
			if rapid.Bool().Draw(t, "del") {
				table.Remove(p, SourceAPI)
				kept := prefixes[:0]
				for _, q := range prefixes {
					if q != p {
						kept = append(kept, q)
					}
				}
				prefixes = kept
				continue
			}
			table.Set(p, SourceAPI, []Path{{Kind: Drop}})
			prefixes = append(prefixes, p)
		}
		dst := addr("dst")
		best := netip.MustParsePrefix("0.0.0.0/0")
		for _, p := range prefixes {
			if p.Contains(dst) && p.Bits() > best.Bits() {
				best = p
			}
		}
		if got := table.Lookup(netip.PrefixFrom(dst, 32)).Prefix.Masked(); got != best {
			t.Fatalf("%s: %s, want %s among %v", dst, got, best, prefixes)
		}
	})
}

func TestSourcesRunOut(t *testing.T) {
	s := NewSources()
	last := Source(0)
	for id := s.Add("many", 1); id != 0; id = s.Add("many", 1) {
		last = id
	}
	if last != lastSource || s.Add("another", 2) != 0 || !s.Known(last) || s.Known(255) {
		t.Errorf("the last id is %d", last)
	}
}

// TestSourcesAreOrdered: priorities decide, then the order of registration; no two sources are
// alike.
func TestSourcesAreOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSources()
		for range rapid.IntRange(0, 20).Draw(t, "sources") {
			s.Add("x", rapid.SampledFrom([]uint8{0, 0x80, 0xd0, 0xff}).Draw(t, "priority"))
		}
		order := slices.Clone(s.All)
		slices.SortFunc(order, func(a, b Registration) int { return s.compare(a.ID, b.ID) })
		for i := 1; i < len(order); i++ {
			a, b := order[i-1], order[i]
			if s.compare(a.ID, b.ID) == 0 || a.Class > b.Class || a.Class == b.Class && a.ID > b.ID {
				t.Fatalf("%+v before %+v", a, b)
			}
		}
	})
}

package fib

import (
	"net/netip"
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

package forwarding

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// Network is a prefix and the table (VRF) of the interface to which the routes of its addresses
// lead.
type Network struct {
	Prefix netip.Prefix
	Table  uint32
}

// Tables say by longest match to the interfaces of which table the routes of addresses lead. It is
// immutable; the zero value says table 0 for every address.
type Tables struct {
	of map[netip.Prefix]uint32
	// lengths of the prefixes, the longest first.
	lengths []int
}

// NewTables collects networks, of equal prefixes the first. It leaves out the ones whose
// surroundings have the same table.
func NewTables(networks []Network) Tables {
	networks = slices.Clone(networks)
	slices.SortStableFunc(networks, func(a, b Network) int { return cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()) })
	t, taken := Tables{}, map[netip.Prefix]bool{}
	for _, n := range networks {
		p := n.Prefix.Masked()
		if taken[p] || !p.IsValid() {
			continue
		}
		if taken[p] = true; t.Of(p.Addr()) == n.Table {
			continue
		}
		if t.of == nil {
			t.of = map[netip.Prefix]uint32{}
		}
		if t.of[p] = n.Table; len(t.lengths) == 0 || t.lengths[0] != p.Bits() {
			t.lengths = slices.Insert(t.lengths, 0, p.Bits())
		}
	}
	return t
}

// Of returns the table of an address; 0 for an address outside of all networks.
func (t Tables) Of(addr netip.Addr) uint32 {
	for _, bits := range t.lengths {
		if p, err := addr.Prefix(bits); err == nil {
			if table, found := t.of[p]; found {
				return table
			}
		}
	}
	return 0
}

// Networks returns the networks, ordered by prefix.
func (t Tables) Networks() []Network {
	var all []Network
	for _, p := range slices.SortedFunc(maps.Keys(t.of), netip.Prefix.Compare) {
		all = append(all, Network{p, t.of[p]})
	}
	return all
}

// Equal reports whether both say the same.
func (t Tables) Equal(other Tables) bool { return maps.Equal(t.of, other.of) }

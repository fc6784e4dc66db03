package vnet

import (
	"net/netip"
	"slices"
)

// NeighborKey identifies an ARP or ND entry.
type NeighborKey struct {
	SwIf uint32
	Addr netip.Addr
}

// Neighbor is an ARP or ND entry.
type Neighbor struct {
	MAC    [6]byte
	Static bool
	NoFIB  bool // without a route of its own
	Since  float64
	stats  uint32
}

// AddNeighbor resolves an address on an interface. A static entry is never overwritten by a dynamic
// one.
func (m *Network) AddNeighbor(key NeighborKey, mac [6]byte, static, noFIB bool) (uint32, int32) {
	if old := m.Neighbors[key]; old != nil {
		if !static && old.Static && old.MAC != mac {
			return None, -2
		}
		old.MAC, old.Static, old.Since = mac, old.Static || static, m.Now()
		return old.stats, RetOK
	}
	n := &Neighbor{MAC: mac, Static: static, NoFIB: noFIB, Since: m.Now(), stats: uint32(len(m.Neighbors) + 1)}
	m.Neighbors[key] = n
	if !noFIB {
		m.adjacent(key, true)
	}
	return n.stats, RetOK
}

// DelNeighbor forgets an address on an interface.
func (m *Network) DelNeighbor(key NeighborKey) int32 {
	n := m.Neighbors[key]
	if n == nil {
		return RetNoSuchEntry
	}
	delete(m.Neighbors, key)
	if !n.NoFIB {
		m.adjacent(key, false)
	}
	return RetOK
}

// adjacent adds or removes the host route that a resolved neighbour has in the FIB of its
// interface. It forwards only while the interface's own subnet covers it.
func (m *Network) adjacent(key NeighborKey, up bool) {
	i := m.Interface(key.SwIf)
	if i == nil {
		return
	}
	fam := Family(key.Addr)
	host := netip.PrefixFrom(key.Addr, key.Addr.BitLen())
	table := m.Tables[fam][i.FIB[fam]]
	if !up {
		table.Remove(host, SourceAdjacency)
		return
	}
	covered := slices.ContainsFunc(i.Addrs, func(p netip.Prefix) bool { return p.Contains(key.Addr) })
	if covered {
		table.Set(host, SourceAdjacency, []Path{{Kind: NextHop, SwIf: key.SwIf, NextHop: key.Addr, Weight: 1}})
	}
}

// readjoin decides again which neighbours of an interface its subnets cover.
func (m *Network) readjoin(i *Interface) {
	for key := range m.Neighbors {
		if key.SwIf == i.Index {
			m.adjacent(key, false)
			m.adjacent(key, !m.Neighbors[key].NoFIB)
		}
	}
}

// SortedNeighbors returns the keys of one address family on one interface, or on all of them for
// none, in a stable order.
func (m *Network) SortedNeighbors(fam int, swIf uint32) []NeighborKey {
	var keys []NeighborKey
	for key := range m.Neighbors {
		if Family(key.Addr) == fam && (swIf == None || swIf == key.SwIf) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b NeighborKey) int {
		if a.SwIf != b.SwIf {
			return int(int64(a.SwIf) - int64(b.SwIf))
		}
		return a.Addr.Compare(b.Addr)
	})
	return keys
}

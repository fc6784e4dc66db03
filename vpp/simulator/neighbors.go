package simulator

import (
	"net/netip"
	"slices"
)

// neighborKey identifies an ARP or ND entry.
type neighborKey struct {
	swIf uint32
	addr netip.Addr
}

// neighbor is an ARP or ND entry.
type neighbor struct {
	mac    [6]byte
	static bool
	noFIB  bool // without a route of its own
	since  float64
	stats  uint32
}

// addNeighbor resolves an address on an interface. A static entry is never
// overwritten by a dynamic one.
func (m *model) addNeighbor(key neighborKey, mac [6]byte, static, noFIB bool) (uint32, int32) {
	if old := m.neighbors[key]; old != nil {
		if !static && old.static && old.mac != mac {
			return none, -2
		}
		old.mac, old.static, old.since = mac, old.static || static, m.now()
		return old.stats, retOK
	}
	n := &neighbor{mac: mac, static: static, noFIB: noFIB, since: m.now(), stats: uint32(len(m.neighbors) + 1)}
	m.neighbors[key] = n
	if !noFIB {
		m.adjacent(key, true)
	}
	return n.stats, retOK
}

// delNeighbor forgets an address on an interface.
func (m *model) delNeighbor(key neighborKey) int32 {
	n := m.neighbors[key]
	if n == nil {
		return retNoSuchEntry
	}
	delete(m.neighbors, key)
	if !n.noFIB {
		m.adjacent(key, false)
	}
	return retOK
}

// adjacent adds or removes the host route that a resolved neighbour has in
// the FIB of its interface. It forwards only while the interface's own subnet
// covers it.
func (m *model) adjacent(key neighborKey, up bool) {
	i := m.iface(key.swIf)
	if i == nil {
		return
	}
	fam := family(key.addr)
	host := netip.PrefixFrom(key.addr, key.addr.BitLen())
	table := m.tables[fam][i.fib[fam]]
	if !up {
		table.remove(host, sourceAdjacency)
		return
	}
	covered := slices.ContainsFunc(i.addrs, func(p netip.Prefix) bool { return p.Contains(key.addr) })
	if covered {
		table.set(host, sourceAdjacency, []fibPath{{kind: pathNextHop, swIf: key.swIf, nextHop: key.addr, weight: 1}})
	}
}

// readjoin decides again which neighbours of an interface its subnets cover.
func (m *model) readjoin(i *swInterface) {
	for key := range m.neighbors {
		if key.swIf == i.index {
			m.adjacent(key, false)
			m.adjacent(key, !m.neighbors[key].noFIB)
		}
	}
}

// sortedNeighbors returns the keys of one address family on one interface, or
// on all of them for none, in a stable order.
func (m *model) sortedNeighbors(fam int, swIf uint32) []neighborKey {
	var keys []neighborKey
	for key := range m.neighbors {
		if family(key.addr) == fam && (swIf == none || swIf == key.swIf) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b neighborKey) int {
		if a.swIf != b.swIf {
			return int(int64(a.swIf) - int64(b.swIf))
		}
		return a.addr.Compare(b.addr)
	})
	return keys
}

package addresses

import (
	"fmt"
	"hash/fnv"
	"net/netip"
)

// How many addresses a group may have. An advertisement has all of them and must fit into a packet
// of 1,500 bytes; VPP builds one of IPv6 in a buffer that has room for about 120.
const (
	maxMembersIPv4 = 255
	maxMembersIPv6 = (1500 - 40 - 8) / 16
)

// Group is a virtual router of VRRP: addresses of one family that move together between nodes.
type Group struct {
	// ID is the virtual router ID, 1 to 255.
	ID uint8
	// IPv6 is its family: an ID may be used once for each.
	IPv6 bool
}

// String is "7/IPv4".
func (g Group) String() string { return fmt.Sprintf("%d/%s", g.ID, family(!g.IPv6)) }

// Compare orders groups by ID, IPv4 first.
func (g Group) Compare(o Group) int {
	order := func(g Group) int {
		if g.IPv6 {
			return int(g.ID)*2 + 1
		}
		return int(g.ID) * 2
	}
	return order(g) - order(o)
}

// Layout says in which group each address of a pool is. It depends on nothing but the pool, so that
// the allocator and all nodes have the same. No group changes while its pool stays: VPP would
// restart it, and connections through its addresses would end. A Layout is not changed after Lay.
type Layout struct {
	// Members are the addresses of each group, in the order of the ranges. They are not changed.
	Members map[Group][]netip.Addr
	groups  map[netip.Addr]Group
}

// Group returns the group of an address; false = the pool does not give the address.
func (l *Layout) Group(a netip.Addr) (Group, bool) {
	g, found := l.groups[a]
	return g, found
}

// Lay divides the addresses of a pool among its virtual router IDs: one address for each ID, as
// long as there are enough IDs, then equally many for each. Addresses for which no group has room
// are left out.
func (p *Pool) Lay() *Layout {
	l := &Layout{Members: map[Group][]netip.Addr{}, groups: map[netip.Addr]Group{}}
	ids := int(p.Last) - int(p.First) + 1
	if p.First == 0 {
		return l
	}
	for most, ipv6 := range map[int]bool{maxMembersIPv4: false, maxMembersIPv6: true} {
		var all []netip.Addr
		for _, r := range p.Ranges {
			for a := r.First; a.Is6() == ipv6 && r.contains(a) && len(all) < ids*most; a = a.Next() {
				if !p.avoids(a) {
					all = append(all, a)
				}
			}
		}
		size := (len(all) + ids - 1) / max(ids, 1)
		for i, a := range all {
			g := Group{p.First + uint8(i/size), ipv6} //nolint:gosec // less than ids
			l.Members[g], l.groups[a] = append(l.Members[g], a), g
		}
	}
	return l
}

// Priorities of VRRP. 255 is for a router whose own address it is, 0 for one that gives up.
const (
	highest, lowest = 254, 2
	// LastResort is the priority of a node that should own no group while another node can.
	LastResort = 1
)

// Priority is the priority of a node in a group. It does not depend on other nodes, so that the
// groups of other nodes go on when one comes or goes. Groups spread over nodes by hash.
func (g Group) Priority(node string) uint8 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, g, " ", node)
	// the last bytes of FNV alone change only a few bits of the first ones
	x := h.Sum64()
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	return uint8(lowest + x%(highest-lowest+1)) //nolint:gosec // at most highest
}

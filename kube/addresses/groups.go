package addresses

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"
)

// Announced is an address that one node at a time answers for.
type Announced struct {
	Addr netip.Addr
	// Service is "namespace/name" of the first Service with the address, Created its age: the group
	// of an older one does not depend on younger ones.
	Service string
	Created int64
	// Local says that only Nodes may answer (externalTrafficPolicy); otherwise every node may.
	Local bool
	Nodes []string
}

// Numbers are the numbers of groups (virtual router IDs) that may be used in a network.
type Numbers struct {
	// First and Last belong to the range; 1 to 255.
	First, Last uint8
	// Shared is how many of them, the first ones, have addresses for which every node may answer.
	// The others have one address of a Local Service each.
	Shared uint8
}

// MaxAddresses is how many addresses a group may have. An advertisement has all of them, and must
// fit into a packet of 1,500 bytes.
const (
	MaxAddressesIPv4 = 255
	MaxAddressesIPv6 = (1500 - 40 - 8) / 16
)

// Group is a virtual router: addresses of one family that move together.
type Group struct {
	Number uint8
	IPv6   bool
	// Addresses are ordered.
	Addresses []netip.Addr
	// Nodes may own the group; nil = every node.
	Nodes []string
}

// Groups puts addresses into groups. Every node computes the same groups from the same addresses.
// An address for which every node may answer has the group of its hash, whatever other addresses
// there are. Without are the addresses for which there is no room.
func Groups(all []Announced, n Numbers) (groups []Group, without []Announced) {
	order := slices.Clone(all)
	slices.SortFunc(order, func(a, b Announced) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Service, b.Service), a.Addr.Compare(b.Addr))
	})
	type id struct {
		ipv6   bool
		number int
	}
	used := map[id]*Group{}
	for _, one := range order {
		ipv6, most := one.Addr.Is6(), MaxAddressesIPv4
		first, size := int(n.First), int(n.Shared)
		if ipv6 {
			most = MaxAddressesIPv6
		}
		if one.Local {
			first, size, most = first+size, int(n.Last)-int(n.First)+1-size, 1
		}
		tries := 1
		if one.Local {
			tries = size // the next number, where an older address has this one
		}
		placed := false
		for i := 0; i < tries && size > 0 && !placed; i++ {
			at := id{ipv6, first + (int(hash(one.Addr.String())%uint64(size))+i)%size}
			g := used[at]
			if g == nil {
				g = &Group{Number: uint8(at.number), IPv6: ipv6} //nolint:gosec // within Numbers
				if one.Local {
					g.Nodes = append([]string{}, one.Nodes...)
				}
				used[at] = g
			}
			if placed = len(g.Addresses) < most; placed {
				g.Addresses = append(g.Addresses, one.Addr)
			}
		}
		if !placed {
			without = append(without, one)
		}
	}
	for _, g := range used {
		slices.SortFunc(g.Addresses, netip.Addr.Compare)
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), map[bool]int{true: 1, false: -1}[a.IPv6])
	})
	return groups, without
}

// Highest and lowest priority of a node that wants to own a group. VRRP has 255 for a router whose
// own address it is, and 0 for one that gives up.
const (
	highest = 254
	lowest  = 1
)

// Priority is the priority of a node in a group, from 1 to 254, by the rank of the hash of group and
// node among the candidates; 0 = the node must not own the group. So groups spread over nodes, and
// only the groups of a node move when it comes or goes.
func (g *Group) Priority(node string, candidates []string) uint8 {
	may := func(n string) bool { return g.Nodes == nil || slices.Contains(g.Nodes, n) }
	if !slices.Contains(candidates, node) || !may(node) {
		return 0
	}
	weight := func(n string) uint64 {
		family := "4 "
		if g.IPv6 {
			family = "6 "
		}
		return hash(family + string(rune(g.Number)) + n)
	}
	own, rank := weight(node), 0
	for _, n := range candidates {
		if w := weight(n); n != node && may(n) && (w > own || w == own && n < node) {
			rank++
		}
	}
	return uint8(max(highest-rank, lowest)) //nolint:gosec // from 1 to 254
}

// hash spreads texts. It is the same on all nodes, and in all versions.
func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	// the last bytes of FNV alone change only a few bits of the first ones
	x := h.Sum64()
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

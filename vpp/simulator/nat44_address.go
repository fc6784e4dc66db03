package simulator

import (
	"net/netip"
	"slices"
)

// natAddress is a member of the SNAT pool or the twice-nat pool.
type natAddress struct {
	addr netip.Addr
	fib  uint32       // none: usable for every VRF
	swIf uint32       // interface that has the address, none if unknown
	net  netip.Prefix // its subnet; invalid if unknown
}

// followedInterface is an interface whose first address is in a pool.
type followedInterface struct {
	swIf     uint32
	twice    bool
	resolved bool
}

// addresses returns the pool of the given kind.
func (n *nat44) addresses(twice bool) *[]*natAddress {
	if twice {
		return &n.twice
	}
	return &n.pool
}

// addAddress puts an address into a pool.
func (n *nat44) addAddress(addr netip.Addr, vrf uint32, twice bool) int32 {
	if !n.enabled {
		return retUnsupported
	}
	list := n.addresses(twice)
	if slices.ContainsFunc(*list, func(a *natAddress) bool { return a.addr == addr }) {
		return retValueExist
	}
	a := &natAddress{addr: addr, fib: none, swIf: none}
	if vrf != none {
		a.fib = n.m.findOrCreateFIB(0, vrf)
	}
	*list = append(*list, a)
	if !twice {
		n.receiveEverywhere(addr, true)
		n.locate(a)
	}
	return retOK
}

// delAddress takes an address out of a pool and ends the dynamic sessions
// that are translated to it.
func (n *nat44) delAddress(addr netip.Addr, twice bool) int32 {
	list := n.addresses(twice)
	at := slices.IndexFunc(*list, func(a *natAddress) bool { return a.addr == addr })
	if at < 0 {
		return retNoSuchEntry
	}
	for _, s := range n.sessions.all {
		if !s.has(sessionStatic) && s.outside.Addr() == addr {
			n.freeSession(s)
		}
	}
	if !twice {
		n.receiveEverywhere(addr, false)
	}
	*list = swapDelete(*list, at)
	return retOK
}

// maxRange is the length of an address range that VPP's memory and time do not
// suffice for.
const maxRange = 1 << 20

// changeRange adds or deletes the addresses of a range one by one and stops at
// the first error; what happened before stays.
func (n *nat44) changeRange(from, to netip.Addr, vrf uint32, twice, add bool) int32 {
	count := int32(asUint32(to) - asUint32(from) + 1)
	if count > maxRange {
		n.m.die("main heap exhausted by an address range")
		return retUnspecified
	}
	for addr := from; count > 0; count-- {
		retval := retOK
		if add {
			retval = n.addAddress(addr, vrf, twice)
		} else {
			retval = n.delAddress(addr, twice)
		}
		if retval != retOK {
			return retval
		}
		addr = addr.Next()
	}
	return retOK
}

// locate finds the outside interface in the address's table that has it.
func (n *nat44) locate(a *natAddress) {
	for _, ifs := range []*pool[*natInterface]{&n.inOut, &n.output} {
		for _, ni := range ifs.all {
			i := n.m.iface(ni.swIf)
			if ni.outside && i != nil && i.fib[0] == a.fib && a.bind(i) {
				return
			}
		}
	}
}

// bind notes the subnet of the address if the interface has it.
func (a *natAddress) bind(i *swInterface) bool {
	for _, p := range i.addrs {
		if p.Addr() == a.addr {
			a.swIf, a.net = i.index, p.Masked()
			return true
		}
	}
	return false
}

// bindPool notes for the first fitting pool address that a new outside
// interface has it.
func (n *nat44) bindPool(swIf uint32) {
	i := n.m.iface(swIf)
	if i == nil {
		return
	}
	for _, a := range n.pool {
		if a.fib == i.fib[0] && a.bind(i) {
			return
		}
	}
}

// follow puts the first address of an interface into a pool, now and whenever
// it changes.
func (n *nat44) follow(swIf uint32, twice bool) int32 {
	if !n.enabled {
		return retUnsupported
	}
	if n.followedAt(swIf, twice) >= 0 {
		return retValueExist
	}
	f := &followedInterface{swIf: swIf, twice: twice}
	n.followed = append(n.followed, f)
	if addr, ok := n.m.firstAddress(swIf); ok {
		if retval := n.addAddress(addr, none, twice); retval != retOK {
			n.followed = n.followed[:len(n.followed)-1]
			return retval
		}
		f.resolved = true
	}
	return retOK
}

// unfollow ends follow.
func (n *nat44) unfollow(swIf uint32, twice bool) int32 {
	if !n.enabled {
		return retUnsupported
	}
	at := n.followedAt(swIf, twice)
	if at < 0 {
		return retNoSuchEntry
	}
	n.followed = swapDelete(n.followed, at)
	if addr, ok := n.m.firstAddress(swIf); ok {
		return n.delAddress(addr, twice)
	}
	return retOK
}

// followedAt returns the position of a followed interface, -1 if there is none.
func (n *nat44) followedAt(swIf uint32, twice bool) int {
	return slices.IndexFunc(n.followed, func(f *followedInterface) bool { return f.swIf == swIf && f.twice == twice })
}

// firstAddress returns the first ip4 address of an interface.
func (m *model) firstAddress(swIf uint32) (netip.Addr, bool) {
	if i := m.iface(swIf); i != nil {
		return i.firstIP4()
	}
	return netip.Addr{}, false
}

// addressAdded tells NAT about a new interface address.
func (n *nat44) addressAdded(i *swInterface, p netip.Prefix) {
	if !n.enabled || !p.Addr().Is4() {
		return
	}
	if f := n.follower(i.index); f == nil {
		for _, a := range n.pool {
			if a.fib == i.fib[0] && a.addr == p.Addr() {
				a.swIf, a.net = i.index, p.Masked()
				break
			}
		}
	} else if !f.resolved {
		f.resolved = n.addAddress(p.Addr(), none, f.twice) == retOK
	}
	for _, b := range n.unbound {
		if b.swIf == i.index && !b.resolved {
			b.resolved = n.addStatic(b.at(p.Addr())) == retOK
		}
	}
}

// addressDeleted tells NAT that an interface lost an address.
func (n *nat44) addressDeleted(i *swInterface, p netip.Prefix) {
	if !n.enabled || !p.Addr().Is4() {
		return
	}
	if f := n.follower(i.index); f == nil {
		for _, a := range n.pool {
			if a.fib == i.fib[0] && a.addr == p.Addr() {
				a.net = netip.Prefix{}
				break
			}
		}
	} else if f.resolved {
		f.resolved = n.delAddress(p.Addr(), f.twice) != retOK
	}
	for _, b := range n.unbound {
		if b.swIf == i.index && b.resolved {
			b.resolved = n.delStatic(b.at(p.Addr())) != retOK
		}
	}
}

// follower returns the record of a followed interface; the one for the SNAT
// pool comes first, and hides the other.
func (n *nat44) follower(swIf uint32) *followedInterface {
	for _, twice := range []bool{false, true} {
		if at := n.followedAt(swIf, twice); at >= 0 {
			return n.followed[at]
		}
	}
	return nil
}

// swapDelete removes an element the way VPP's vectors do: the last one takes
// its place.
func swapDelete[T any](s []T, at int) []T {
	s[at] = s[len(s)-1]
	return s[:len(s)-1]
}

// asUint32 returns an ip4 address as a number.
func asUint32(addr netip.Addr) uint32 {
	b := addr.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// asWord returns an ip4 address as VPP computes with it on a little-endian
// machine.
func asWord(addr netip.Addr) uint32 {
	b := addr.As4()
	return uint32(b[3])<<24 | uint32(b[2])<<16 | uint32(b[1])<<8 | uint32(b[0])
}

package nat

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Address is a member of the SNAT pool or the twice-nat pool.
type Address struct {
	Addr netip.Addr
	FIB  uint32       // none: usable for every VRF
	swIf uint32       // interface that has the address, none if unknown
	net  netip.Prefix // its subnet; invalid if unknown
}

// addresses returns the pool of the given kind.
func (n *Plugin) addresses(twice bool) *[]*Address {
	if twice {
		return &n.Twice
	}
	return &n.Pool
}

// addAddress puts an address into a pool.
func (n *Plugin) addAddress(addr netip.Addr, vrf uint32, twice bool) int32 {
	if !n.Enabled {
		return vnet.RetUnsupported
	}
	list := n.addresses(twice)
	if slices.ContainsFunc(*list, func(a *Address) bool { return a.Addr == addr }) {
		return vnet.RetValueExist
	}
	a := &Address{Addr: addr, FIB: vnet.None, swIf: vnet.None}
	if vrf != vnet.None {
		a.FIB = n.net.FindOrCreateFIB(0, vrf)
	}
	*list = append(*list, a)
	if !twice {
		n.receiveEverywhere(addr, true)
		n.locate(a)
	}
	return vnet.RetOK
}

// delAddress takes an address out of a pool and ends the dynamic sessions that are translated to
// it.
func (n *Plugin) delAddress(addr netip.Addr, twice bool) int32 {
	list := n.addresses(twice)
	at := slices.IndexFunc(*list, func(a *Address) bool { return a.Addr == addr })
	if at < 0 {
		return vnet.RetNoSuchEntry
	}
	for _, s := range n.Sessions.All {
		if !s.Has(SessionStatic) && s.Outside.Addr() == addr {
			n.freeSession(s)
		}
	}
	if !twice {
		n.receiveEverywhere(addr, false)
	}
	*list = swapDelete(*list, at)
	return vnet.RetOK
}

// maxRange is the length of an address range that VPP's memory and time do not suffice for.
const maxRange = 1 << 20

// ChangeRange adds or deletes the addresses of a range one by one and stops at the first error;
// what happened before stays.
func (n *Plugin) ChangeRange(from, to netip.Addr, vrf uint32, twice, add bool) int32 {
	count := int32(asUint32(to) - asUint32(from) + 1)
	if count > maxRange {
		n.net.Die("main heap exhausted by an address range")
		return vnet.RetUnspecified
	}
	for addr := from; count > 0; count-- {
		retval := vnet.RetOK
		if add {
			retval = n.addAddress(addr, vrf, twice)
		} else {
			retval = n.delAddress(addr, twice)
		}
		if retval != vnet.RetOK {
			return retval
		}
		addr = addr.Next()
	}
	return vnet.RetOK
}

// locate finds the outside interface in the address's table that has it.
func (n *Plugin) locate(a *Address) {
	for _, ifs := range []*vnet.Pool[*Interface]{&n.InOut, &n.Output} {
		for _, ni := range ifs.All {
			i := n.net.Interface(ni.SwIf)
			if ni.Outside && i != nil && i.FIB[0] == a.FIB && a.bind(i) {
				return
			}
		}
	}
}

// bind notes the subnet of the address if the interface has it.
func (a *Address) bind(i *vnet.Interface) bool {
	for _, p := range i.Addrs {
		if p.Addr() == a.Addr {
			a.swIf, a.net = i.Index, p.Masked()
			return true
		}
	}
	return false
}

// bindPool notes for the first fitting pool address that a new outside interface has it.
func (n *Plugin) bindPool(swIf uint32) {
	i := n.net.Interface(swIf)
	if i == nil {
		return
	}
	for _, a := range n.Pool {
		if a.FIB == i.FIB[0] && a.bind(i) {
			return
		}
	}
}

// AddressAdded follows a new interface address, as vnet.Watcher.
func (n *Plugin) AddressAdded(i *vnet.Interface, p netip.Prefix) {
	if !n.Enabled || !p.Addr().Is4() {
		return
	}
	for _, a := range n.Pool {
		if a.FIB == i.FIB[0] && a.Addr == p.Addr() {
			a.swIf, a.net = i.Index, p.Masked()
			break
		}
	}
}

// AddressDeleted follows the removal of an interface address, as vnet.Watcher.
func (n *Plugin) AddressDeleted(i *vnet.Interface, p netip.Prefix) {
	if !n.Enabled || !p.Addr().Is4() {
		return
	}
	for _, a := range n.Pool {
		if a.FIB == i.FIB[0] && a.Addr == p.Addr() {
			a.net = netip.Prefix{}
			break
		}
	}
}

// swapDelete removes an element the way VPP's vectors do: the last one takes its place.
func swapDelete[T any](s []T, at int) []T {
	s[at] = s[len(s)-1]
	return s[:len(s)-1]
}

// asUint32 returns an ip4 address as a number.
func asUint32(addr netip.Addr) uint32 {
	b := addr.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// asWord returns an ip4 address as VPP computes with it on a little-endian machine.
func asWord(addr netip.Addr) uint32 {
	b := addr.As4()
	return uint32(b[3])<<24 | uint32(b[2])<<16 | uint32(b[1])<<8 | uint32(b[0])
}

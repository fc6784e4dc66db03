package nat

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Backend is a local of a load-balancing mapping, or the record of one VRF in an identity mapping.
type Backend struct {
	At          netip.AddrPort
	Probability uint8
	prefix      uint8 // cumulative probability, 8 bits as in VPP
	VRF, fib    uint32
}

// MaxLocals is the number of locals in one message that VPP does not survive: it counts them in 8
// bits and never comes to an end.
const MaxLocals = 256

// unspecified4 is the local endpoint of a load-balancing mapping.
var unspecified4 = netip.AddrPortFrom(netip.AddrFrom4([4]byte{}), 0)

// AddLB adds a load-balancing mapping. There is no update: an existing mapping of any type is in
// the way. Locals are not checked for duplicates.
func (n *Plugin) AddLB(mp *Mapping, locals []Backend) int32 {
	if !n.Enabled {
		return vnet.RetUnsupported
	}
	if old, _ := n.External(mp.External, mp.Proto); old != nil {
		return vnet.RetValueExist
	}
	if len(locals) < 2 {
		return vnet.RetInvalidValue
	}
	if !mp.Flags.Has(MapOut2inOnly) && !n.inPool(mp.External.Addr()) {
		return vnet.RetNoSuchEntry
	}
	if n.Frozen {
		return vnet.RetUnspecified
	}
	mp.Flags |= MapLB
	mp.Local = unspecified4
	if mp.Affinity > 0 {
		mp.sticky = make(map[affinityKey]bool)
	}
	index := n.Mappings.Put(mp)
	n.o2i[mappingKey{at: mp.External, proto: mp.Proto}] = index
	sum := uint8(0)
	for _, l := range locals {
		l.fib = n.net.FindOrCreateFIB(0, l.VRF)
		if !mp.Flags.Has(MapOut2inOnly) {
			n.i2o[mappingKey{at: l.At, fib: 0, proto: mp.Proto}] = index
		}
		sum += l.Probability
		l.prefix = sum
		mp.Locals.Put(&l)
	}
	return vnet.RetOK
}

// inPool reports whether an address is in the SNAT pool.
func (n *Plugin) inPool(addr netip.Addr) bool {
	for _, a := range n.Pool {
		if a.Addr == addr {
			return true
		}
	}
	return false
}

// DelLB deletes a load-balancing mapping. Every load-balanced session to any of its backends ends,
// whatever service and protocol it belongs to.
func (n *Plugin) DelLB(external netip.AddrPort, proto uint8, flags Flags) int32 {
	if !n.Enabled {
		return vnet.RetUnsupported
	}
	mp, index := n.External(external, proto)
	if mp == nil {
		return vnet.RetNoSuchEntry
	}
	if !mp.Flags.Has(MapLB) {
		return vnet.RetInvalidValue
	}
	delete(n.o2i, mappingKey{at: mp.External, proto: mp.Proto})
	for _, l := range mp.Locals.All {
		if !flags.Has(MapOut2inOnly) {
			delete(n.i2o, mappingKey{at: l.At, fib: l.fib, proto: mp.Proto})
		}
		n.endBackendSessions(l.At)
	}
	n.forgetClients(mp)
	n.Mappings.Remove(index)
	return vnet.RetOK
}

// endBackendSessions ends all load-balanced sessions to a backend.
func (n *Plugin) endBackendSessions(at netip.AddrPort) {
	peers := slices.SortedFunc(maps.Keys(n.byBackend[at]), func(a, b *Session) int {
		return cmp.Compare(a.index, b.index)
	})
	for _, s := range peers {
		if s.Has(sessionLB) {
			n.freeSession(s)
		}
	}
}

// lbMapping returns the load-balancing mapping of an external endpoint.
func (n *Plugin) lbMapping(external netip.AddrPort, proto uint8) (*Mapping, uint32, int32) {
	if !n.Enabled {
		return nil, vnet.None, vnet.RetUnsupported
	}
	mp, index := n.External(external, proto)
	switch {
	case mp == nil:
		return nil, vnet.None, vnet.RetNoSuchEntry
	case !mp.Flags.Has(MapLB):
		return nil, vnet.None, vnet.RetInvalidValue
	}
	return mp, index, vnet.RetOK
}

// AddLocal adds a backend to a load-balancing mapping. Sessions stay as they are.
func (n *Plugin) AddLocal(external netip.AddrPort, proto uint8, l Backend) int32 {
	mp, index, retval := n.lbMapping(external, proto)
	if retval != vnet.RetOK {
		return retval
	}
	if _, at := mp.findLocal(l.At, l.VRF); at != vnet.None {
		return vnet.RetValueExist
	}
	l.fib = n.net.FindOrCreateFIB(0, l.VRF)
	if !mp.Flags.Has(MapOut2inOnly) {
		n.i2o[mappingKey{at: l.At, fib: l.fib, proto: proto}] = index
	}
	mp.Locals.Put(&l)
	mp.weigh()
	return vnet.RetOK
}

// DelLocal removes a backend from a load-balancing mapping, which must keep two. All load-balanced
// sessions to the backend end, also of other services. Clients that stick to it keep being sent
// there.
func (n *Plugin) DelLocal(external netip.AddrPort, proto uint8, l Backend) int32 {
	mp, _, retval := n.lbMapping(external, proto)
	if retval != vnet.RetOK {
		return retval
	}
	old, at := mp.findLocal(l.At, l.VRF)
	if at == vnet.None {
		return vnet.RetNoSuchEntry
	}
	if mp.Locals.Len() < 3 {
		return vnet.RetUnspecified
	}
	if !mp.Flags.Has(MapOut2inOnly) {
		delete(n.i2o, mappingKey{at: l.At, fib: old.fib, proto: proto})
	}
	n.endBackendSessions(old.At)
	mp.Locals.Remove(at)
	mp.weigh()
	return vnet.RetOK
}

// findLocal returns the first backend with this endpoint and VRF.
func (mp *Mapping) findLocal(at netip.AddrPort, vrf uint32) (*Backend, uint32) {
	for i, l := range mp.Locals.All {
		if l.At == at && l.VRF == vrf {
			return l, i
		}
	}
	return nil, vnet.None
}

// weigh recomputes the cumulative probabilities in pool order.
func (mp *Mapping) weigh() {
	sum := uint8(0)
	for _, l := range mp.Locals.All {
		sum += l.Probability
		l.prefix = sum
	}
}

// pick chooses a backend at random by weight. The last cumulative probability is the divisor: when
// it is 0, VPP divides by zero and crashes. A sum that wrapped around may end in no choice at all.
func (n *Plugin) pick(mp *Mapping) (*Backend, uint32) {
	var order []uint32
	for i := range mp.Locals.All {
		order = append(order, i)
	}
	lo, hi := 0, len(order)-1
	last, _ := mp.Locals.Get(order[hi])
	if last.prefix == 0 {
		n.net.Die("division by zero: weight sum of " + mp.External.String() + " is 0")
		return nil, vnet.None
	}
	rand := 1 + n.random.next()%uint32(last.prefix)
	for lo < hi {
		mid := (hi-lo)/2 + lo
		if l, _ := mp.Locals.Get(order[mid]); rand > uint32(l.prefix) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	l, _ := mp.Locals.Get(order[lo])
	if uint32(l.prefix) < rand {
		return nil, vnet.None
	}
	return l, order[lo]
}

// affinityKey is a client of a service.
type affinityKey struct {
	client  netip.Addr
	service netip.AddrPort
	proto   uint8
}

// affinity binds a client to a backend, by the index that the backend has (or had) in the mapping.
type affinity struct {
	index   uint8 // 8 bits as in VPP
	refs    int   // sessions that hold it
	expire  float64
	seconds uint32
	owner   *Mapping
}

// stick returns the backend index that a client is bound to, and takes a reference. The time runs
// only while no session holds the entry. As in VPP, the index may point to another backend by now,
// or to none.
func (n *Plugin) stick(key affinityKey) (uint8, bool) {
	a := n.affinities[key]
	if a == nil {
		return 0, false
	}
	if a.refs == 0 && a.expire < n.net.Now() {
		n.dropAffinity(key, a)
		return 0, false
	}
	a.refs++
	return a.index, true
}

// bindClient binds a client to the backend that was chosen for it, unless an entry exists already.
func (n *Plugin) bindClient(key affinityKey, mp *Mapping, index uint32) {
	if n.affinities[key] != nil {
		return
	}
	n.affinities[key] = &affinity{index: uint8(index), refs: 1, seconds: mp.Affinity, owner: mp}
	mp.sticky[key] = true
}

// release gives a reference back when a session ends; the last one starts the clock.
func (n *Plugin) release(key affinityKey) {
	a := n.affinities[key]
	if a == nil {
		return
	}
	if a.refs--; a.refs == 0 {
		a.expire = float64(a.seconds) + n.net.Now()
	}
}

// forgetClients drops the entries of a deleted mapping.
func (n *Plugin) forgetClients(mp *Mapping) {
	for key := range mp.sticky {
		delete(n.affinities, key)
	}
	mp.sticky = nil
}

// dropAffinity removes an entry, also from the index of its mapping.
func (n *Plugin) dropAffinity(key affinityKey, a *affinity) {
	delete(n.affinities, key)
	delete(a.owner.sticky, key)
}

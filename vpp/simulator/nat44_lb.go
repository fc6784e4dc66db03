package simulator

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// backend is a local of a load-balancing mapping, or the record of one VRF in
// an identity mapping.
type backend struct {
	at          netip.AddrPort
	probability uint8
	prefix      uint8 // cumulative probability, 8 bits as in VPP
	vrf, fib    uint32
}

// maxLocals is the number of locals in one message that VPP does not survive:
// it counts them in 8 bits and never comes to an end.
const maxLocals = 256

// unspecified4 is the local endpoint of a load-balancing mapping.
var unspecified4 = netip.AddrPortFrom(netip.AddrFrom4([4]byte{}), 0)

// addLB adds a load-balancing mapping. There is no update: an existing mapping
// of any type is in the way. Locals are not checked for duplicates.
func (n *nat44) addLB(mp *mapping, locals []backend) int32 {
	if !n.enabled {
		return retUnsupported
	}
	if old, _ := n.external(mp.external, mp.proto); old != nil {
		return retValueExist
	}
	if len(locals) < 2 {
		return retInvalidValue
	}
	if !mp.flags.has(mapOut2inOnly) && !n.inPool(mp.external.Addr()) {
		return retNoSuchEntry
	}
	if n.m.frozen {
		return retUnspecified
	}
	mp.flags |= mapLB
	mp.local = unspecified4
	if mp.affinity > 0 {
		mp.sticky = make(map[affinityKey]bool)
	}
	index := n.mappings.put(mp)
	n.o2i[mappingKey{at: mp.external, proto: mp.proto}] = index
	sum := uint8(0)
	for _, l := range locals {
		l.fib = n.m.findOrCreateFIB(0, l.vrf)
		if !mp.flags.has(mapOut2inOnly) {
			n.i2o[mappingKey{at: l.at, fib: 0, proto: mp.proto}] = index
		}
		sum += l.probability
		l.prefix = sum
		mp.locals.put(&l)
	}
	return retOK
}

// inPool reports whether an address is in the SNAT pool.
func (n *nat44) inPool(addr netip.Addr) bool {
	for _, a := range n.pool {
		if a.addr == addr {
			return true
		}
	}
	return false
}

// delLB deletes a load-balancing mapping. Every load-balanced session to any
// of its backends ends, whatever service and protocol it belongs to.
func (n *nat44) delLB(external netip.AddrPort, proto uint8, flags mappingFlags) int32 {
	if !n.enabled {
		return retUnsupported
	}
	mp, index := n.external(external, proto)
	if mp == nil {
		return retNoSuchEntry
	}
	if !mp.flags.has(mapLB) {
		return retInvalidValue
	}
	delete(n.o2i, mappingKey{at: mp.external, proto: mp.proto})
	for _, l := range mp.locals.all {
		if !flags.has(mapOut2inOnly) {
			delete(n.i2o, mappingKey{at: l.at, fib: l.fib, proto: mp.proto})
		}
		n.endBackendSessions(l.at)
	}
	n.forgetClients(mp)
	n.mappings.remove(index)
	return retOK
}

// endBackendSessions ends all load-balanced sessions to a backend.
func (n *nat44) endBackendSessions(at netip.AddrPort) {
	peers := slices.SortedFunc(maps.Keys(n.byBackend[at]), func(a, b *session) int {
		return cmp.Compare(a.index, b.index)
	})
	for _, s := range peers {
		if s.has(sessionLB) {
			n.freeSession(s)
		}
	}
}

// lbMapping returns the load-balancing mapping of an external endpoint.
func (n *nat44) lbMapping(external netip.AddrPort, proto uint8) (*mapping, uint32, int32) {
	if !n.enabled {
		return nil, none, retUnsupported
	}
	mp, index := n.external(external, proto)
	switch {
	case mp == nil:
		return nil, none, retNoSuchEntry
	case !mp.flags.has(mapLB):
		return nil, none, retInvalidValue
	}
	return mp, index, retOK
}

// addLocal adds a backend to a load-balancing mapping. Sessions do not notice.
func (n *nat44) addLocal(external netip.AddrPort, proto uint8, l backend) int32 {
	mp, index, retval := n.lbMapping(external, proto)
	if retval != retOK {
		return retval
	}
	if _, at := mp.findLocal(l.at, l.vrf); at != none {
		return retValueExist
	}
	l.fib = n.m.findOrCreateFIB(0, l.vrf)
	if !mp.flags.has(mapOut2inOnly) {
		n.i2o[mappingKey{at: l.at, fib: l.fib, proto: proto}] = index
	}
	mp.locals.put(&l)
	mp.weigh()
	return retOK
}

// delLocal removes a backend from a load-balancing mapping, which must keep
// two. All load-balanced sessions to the backend end, those of other services
// too. Clients that stick to it keep being sent there.
func (n *nat44) delLocal(external netip.AddrPort, proto uint8, l backend) int32 {
	mp, _, retval := n.lbMapping(external, proto)
	if retval != retOK {
		return retval
	}
	old, at := mp.findLocal(l.at, l.vrf)
	if at == none {
		return retNoSuchEntry
	}
	if mp.locals.len() < 3 {
		return retUnspecified
	}
	if !mp.flags.has(mapOut2inOnly) {
		delete(n.i2o, mappingKey{at: l.at, fib: old.fib, proto: proto})
	}
	n.endBackendSessions(old.at)
	mp.locals.remove(at)
	mp.weigh()
	return retOK
}

// findLocal returns the first backend with this endpoint and VRF.
func (mp *mapping) findLocal(at netip.AddrPort, vrf uint32) (*backend, uint32) {
	for i, l := range mp.locals.all {
		if l.at == at && l.vrf == vrf {
			return l, i
		}
	}
	return nil, none
}

// weigh recomputes the cumulative probabilities in pool order.
func (mp *mapping) weigh() {
	sum := uint8(0)
	for _, l := range mp.locals.all {
		sum += l.probability
		l.prefix = sum
	}
}

// pick chooses a backend at random by weight. The last cumulative probability
// is the divisor: when it is 0, VPP divides by zero and dies. A sum that
// wrapped around may end in no choice at all.
func (n *nat44) pick(mp *mapping) (*backend, uint32) {
	var order []uint32
	for i := range mp.locals.all {
		order = append(order, i)
	}
	lo, hi := 0, len(order)-1
	last, _ := mp.locals.get(order[hi])
	if last.prefix == 0 {
		n.m.die("division by zero: weight sum of " + mp.external.String() + " is 0")
		return nil, none
	}
	rand := 1 + n.m.random.next()%uint32(last.prefix)
	for lo < hi {
		mid := (hi-lo)/2 + lo
		if l, _ := mp.locals.get(order[mid]); rand > uint32(l.prefix) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	l, _ := mp.locals.get(order[lo])
	if uint32(l.prefix) < rand {
		return nil, none
	}
	return l, order[lo]
}

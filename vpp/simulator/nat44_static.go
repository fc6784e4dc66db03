package simulator

import (
	"net/netip"
	"slices"
)

// mappingFlags are the properties of a mapping; the values are internal.
type mappingFlags uint16

const (
	mapAddrOnly mappingFlags = 1 << iota
	mapIdentity
	mapInterface // external address is that of an interface
	mapTwice
	mapSelfTwice
	mapOut2inOnly
	mapLB
	mapExact // twice-nat address is given
)

func (f mappingFlags) has(g mappingFlags) bool { return f&g != 0 }

// mapping is a static mapping: simple, identity or load-balancing.
type mapping struct {
	flags    mappingFlags
	local    netip.AddrPort // 0.0.0.0:0 for load balancing
	external netip.AddrPort
	proto    uint8
	pool     netip.Addr // twice-nat address of mapExact
	vrf, fib uint32     // 0 for load balancing and identity
	tag      string
	affinity uint32         // seconds
	locals   pool[*backend] // load balancing: backends; identity: one per VRF
	sticky   map[affinityKey]bool
}

// mappingKey is a mapping's key in the flow hash.
type mappingKey struct {
	at    netip.AddrPort
	fib   uint32
	proto uint8
}

// staticRequest is what a message about a simple or identity mapping says.
type staticRequest struct {
	local, external netip.AddrPort
	proto           uint8
	vrf             uint32
	swIf            uint32
	flags           mappingFlags
	pool            netip.Addr
	tag             string
}

// boundMapping is a mapping whose external address is that of an interface.
type boundMapping struct {
	staticRequest
	resolved bool
}

// at returns the mapping with the address that the interface has now.
func (b *boundMapping) at(addr netip.Addr) staticRequest {
	r := b.staticRequest
	r.external = netip.AddrPortFrom(addr, r.external.Port())
	return r
}

// validate refuses combinations of flags that VPP does not support.
func (r staticRequest) validate() int32 {
	if r.flags.has(mapIdentity) && r.flags.has(mapOut2inOnly) {
		return retUnsupported
	}
	if r.flags.has(mapTwice|mapSelfTwice) && r.flags.has(mapAddrOnly|mapIdentity) {
		return retUnsupported
	}
	return retOK
}

// normal returns the request as the tables know it: no ports and protocol for
// address-only mappings, local = external for identity mappings.
func (r staticRequest) normal() staticRequest {
	if r.flags.has(mapAddrOnly) {
		r.proto = 0
		r.external = netip.AddrPortFrom(r.external.Addr(), 0)
		r.local = netip.AddrPortFrom(r.local.Addr(), 0)
	}
	if r.flags.has(mapIdentity) {
		r.local = r.external
	}
	return r
}

// addMapping adds a simple or identity mapping. One that is bound to an
// interface without address is kept until the address comes.
func (n *nat44) addMapping(r staticRequest) int32 {
	if !n.enabled {
		return retUnsupported
	}
	if retval := r.validate(); retval != retOK {
		return retval
	}
	if !r.flags.has(mapInterface) {
		return n.addStatic(r)
	}
	if n.boundAt(r) >= 0 {
		return retValueExist
	}
	b := &boundMapping{staticRequest: r}
	n.unbound = append(n.unbound, b)
	addr, ok := n.m.firstAddress(r.swIf)
	if !ok {
		return retOK
	}
	b.resolved = true
	retval := n.addStatic(b.at(addr))
	if retval != retOK {
		n.unbound = swapDelete(n.unbound, n.boundAt(r))
	}
	return retval
}

// delMapping deletes a simple or identity mapping.
func (n *nat44) delMapping(r staticRequest) int32 {
	if !n.enabled {
		return retUnsupported
	}
	if retval := r.validate(); retval != retOK {
		return retval
	}
	if !r.flags.has(mapInterface) {
		return n.delStatic(r)
	}
	at := n.boundAt(r)
	if at < 0 {
		return retNoSuchEntry
	}
	b := n.unbound[at]
	n.unbound = swapDelete(n.unbound, at)
	addr, ok := n.m.firstAddress(r.swIf)
	if !ok {
		return retOK
	}
	bound := b.at(addr)
	bound.flags = r.flags
	return n.delStatic(bound)
}

// boundAt finds the record of an interface-bound mapping, -1 if there is none.
func (n *nat44) boundAt(r staticRequest) int {
	return slices.IndexFunc(n.unbound, func(b *boundMapping) bool {
		if b.swIf != r.swIf || b.vrf != r.vrf {
			return false
		}
		anyPort := b.flags.has(mapAddrOnly) && r.flags.has(mapAddrOnly)
		if b.flags.has(mapIdentity) && r.flags.has(mapIdentity) {
			return anyPort || (b.external.Port() == r.external.Port() && b.proto == r.proto)
		}
		if b.local.Addr() != r.local.Addr() {
			return false
		}
		return anyPort || (b.local.Port() == r.local.Port() &&
			b.external.Port() == r.external.Port() && b.proto == r.proto)
	})
}

// external returns the mapping of an external endpoint, and its index.
func (n *nat44) external(at netip.AddrPort, proto uint8) (*mapping, uint32) {
	index, ok := n.o2i[mappingKey{at: at, proto: proto}]
	if !ok {
		return nil, none
	}
	mp, _ := n.mappings.stale(index)
	return mp, index
}

// internal returns the mapping of a local endpoint.
func (n *nat44) internal(at netip.AddrPort, fib uint32, proto uint8) *mapping {
	index, ok := n.i2o[mappingKey{at: at, fib: fib, proto: proto}]
	if !ok {
		return nil
	}
	mp, _ := n.mappings.stale(index)
	return mp
}

// addStatic adds a mapping whose external address is known.
func (n *nat44) addStatic(r staticRequest) int32 {
	r = r.normal()
	if mp, index := n.external(r.external, r.proto); mp != nil {
		return n.addIdentityVRF(mp, index, r.vrf)
	}
	if n.m.frozen {
		return retUnspecified
	}
	fib := n.insideFIB
	if r.vrf != none {
		fib = n.m.findOrCreateFIB(0, r.vrf)
	} else {
		r.vrf = n.insideVRF
	}
	if !r.flags.has(mapOut2inOnly | mapIdentity) {
		if n.internal(r.local, fib, r.proto) != nil {
			return retValueExist
		}
	}
	mp := &mapping{
		flags: r.flags, local: r.local, external: r.external, proto: r.proto,
		pool: r.pool, tag: r.tag,
	}
	if r.flags.has(mapIdentity) {
		mp.locals.put(&backend{vrf: r.vrf, fib: fib})
	} else {
		mp.vrf, mp.fib = r.vrf, fib
	}
	index := n.mappings.put(mp)
	if !r.flags.has(mapOut2inOnly) {
		n.i2o[mappingKey{at: mp.local, fib: fib, proto: mp.proto}] = index
	}
	n.o2i[mappingKey{at: mp.external, proto: mp.proto}] = index
	n.receiveEverywhere(mp.external.Addr(), true)
	return retOK
}

// addIdentityVRF adds a VRF to an existing identity mapping; any other
// existing mapping is in the way.
func (n *nat44) addIdentityVRF(mp *mapping, index, vrf uint32) int32 {
	if !mp.flags.has(mapIdentity) {
		return retValueExist
	}
	for _, l := range mp.locals.all {
		if l.vrf == vrf {
			return retValueExist
		}
	}
	l := &backend{vrf: vrf, fib: n.m.findOrCreateFIB(0, vrf)}
	mp.locals.put(l)
	n.i2o[mappingKey{at: mp.local, fib: l.fib, proto: mp.proto}] = index
	return retOK
}

// delStatic deletes what it finds under the external endpoint. Deleting a
// load-balancing mapping this way succeeds and does nothing.
func (n *nat44) delStatic(r staticRequest) int32 {
	r = r.normal()
	mp, index := n.external(r.external, r.proto)
	if mp == nil {
		return retNoSuchEntry
	}
	fib := mp.fib
	if r.flags.has(mapIdentity) {
		if r.vrf == none {
			r.vrf = n.insideVRF
		}
		l, ok := mp.takeVRF(r.vrf)
		if !ok {
			return retNoSuchEntry
		}
		fib = l.fib
	}
	if !r.flags.has(mapOut2inOnly) {
		delete(n.i2o, mappingKey{at: r.local, fib: fib, proto: r.proto})
	}
	n.endStaticSessions(mp, fib, r)
	if mp.locals.len() == 0 {
		delete(n.o2i, mappingKey{at: r.external, proto: r.proto})
		n.mappings.remove(index)
		n.receiveEverywhere(r.external.Addr(), false)
	}
	return retOK
}

// takeVRF removes the record of a VRF from an identity mapping.
func (mp *mapping) takeVRF(vrf uint32) (*backend, bool) {
	var found *backend
	for i, l := range mp.locals.all {
		if l.vrf == vrf {
			found = l
			mp.locals.remove(i)
		}
	}
	return found, found != nil
}

// endStaticSessions ends the sessions of a deleted simple mapping: all of an
// address-only mapping, but only the first one of a mapping with ports.
func (n *nat44) endStaticSessions(mp *mapping, fib uint32, r staticRequest) {
	for _, s := range n.sessions.all {
		if s.insideFIB != fib || s.inside.Addr() != mp.local.Addr() {
			continue
		}
		addrOnly := r.flags.has(mapAddrOnly)
		if !addrOnly && (s.outside != r.external || s.inside.Port() != mp.local.Port() || s.proto != mp.proto) {
			continue
		}
		if s.has(sessionLB) || !s.has(sessionStatic) {
			continue
		}
		n.freeSession(s)
		if !addrOnly {
			return
		}
	}
}

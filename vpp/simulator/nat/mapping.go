package nat

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Flags are the properties of a mapping; the values are internal.
type Flags uint16

// The properties of mappings.
const (
	MapAddrOnly Flags = 1 << iota
	MapIdentity
	MapTwice
	MapSelfTwice
	MapOut2inOnly
	MapLB
)

// Has reports whether one of the flags of g is set.
func (f Flags) Has(g Flags) bool { return f&g != 0 }

// Mapping is a static mapping: simple, identity or load-balancing.
type Mapping struct {
	Flags    Flags
	Local    netip.AddrPort // 0.0.0.0:0 for load balancing
	External netip.AddrPort
	Proto    uint8
	VRF, fib uint32 // 0 for load balancing and identity
	Tag      string
	Affinity uint32              // seconds
	Locals   vnet.Pool[*Backend] // load balancing: backends; identity: one per VRF
	sticky   map[affinityKey]bool
}

// mappingKey is a mapping's key in the flow hash.
type mappingKey struct {
	at    netip.AddrPort
	fib   uint32
	proto uint8
}

// Request is the content of a message about a simple or identity mapping.
type Request struct {
	Local, External netip.AddrPort
	Proto           uint8
	VRF             uint32
	SwIf            uint32
	Flags           Flags
	Tag             string
}

// validate refuses combinations of flags that VPP does not support.
func (r Request) validate() int32 {
	if r.Flags.Has(MapIdentity) && r.Flags.Has(MapOut2inOnly) {
		return vnet.RetUnsupported
	}
	if r.Flags.Has(MapTwice|MapSelfTwice) && r.Flags.Has(MapAddrOnly|MapIdentity) {
		return vnet.RetUnsupported
	}
	return vnet.RetOK
}

// normal returns the request as the tables know it: no ports and protocol for address-only
// mappings, local = external for identity mappings.
func (r Request) normal() Request {
	if r.Flags.Has(MapAddrOnly) {
		r.Proto = 0
		r.External = netip.AddrPortFrom(r.External.Addr(), 0)
		r.Local = netip.AddrPortFrom(r.Local.Addr(), 0)
	}
	if r.Flags.Has(MapIdentity) {
		r.Local = r.External
	}
	return r
}

// ChangeMapping adds or deletes a simple or identity mapping. The model has none with the address
// of an interface.
func (n *Plugin) ChangeMapping(r Request, add bool) int32 {
	switch {
	case r.SwIf != vnet.None:
		return vnet.RetUnimplemented
	case !n.Enabled:
		return vnet.RetUnsupported
	}
	if retval := r.validate(); retval != vnet.RetOK {
		return retval
	}
	if r.Flags.Has(MapAddrOnly) {
		r.Local = netip.AddrPortFrom(r.Local.Addr(), 0)
		r.External = netip.AddrPortFrom(r.External.Addr(), 0)
	}
	if add {
		return n.addStatic(r)
	}
	return n.DelStatic(r)
}

// External returns the mapping of an external endpoint, and its index.
func (n *Plugin) External(at netip.AddrPort, proto uint8) (*Mapping, uint32) {
	index, ok := n.o2i[mappingKey{at: at, proto: proto}]
	if !ok {
		return nil, vnet.None
	}
	mp, _ := n.Mappings.Stale(index)
	return mp, index
}

// internal returns the mapping of a local endpoint.
func (n *Plugin) internal(at netip.AddrPort, fib uint32, proto uint8) *Mapping {
	index, ok := n.i2o[mappingKey{at: at, fib: fib, proto: proto}]
	if !ok {
		return nil
	}
	mp, _ := n.Mappings.Stale(index)
	return mp
}

// addStatic adds a mapping whose external address is known.
func (n *Plugin) addStatic(r Request) int32 {
	r = r.normal()
	if mp, index := n.External(r.External, r.Proto); mp != nil {
		return n.addIdentityVRF(mp, index, r.VRF)
	}
	if n.Frozen {
		return vnet.RetUnspecified
	}
	fib := n.insideFIB
	if r.VRF != vnet.None {
		fib = n.net.FindOrCreateFIB(0, r.VRF)
	} else {
		r.VRF = n.insideVRF
	}
	if !r.Flags.Has(MapOut2inOnly | MapIdentity) {
		if n.internal(r.Local, fib, r.Proto) != nil {
			return vnet.RetValueExist
		}
	}
	mp := &Mapping{
		Flags: r.Flags, Local: r.Local, External: r.External, Proto: r.Proto,
		Tag: r.Tag,
	}
	if r.Flags.Has(MapIdentity) {
		mp.Locals.Put(&Backend{VRF: r.VRF, fib: fib})
	} else {
		mp.VRF, mp.fib = r.VRF, fib
	}
	index := n.Mappings.Put(mp)
	if !r.Flags.Has(MapOut2inOnly) {
		n.i2o[mappingKey{at: mp.Local, fib: fib, proto: mp.Proto}] = index
	}
	n.o2i[mappingKey{at: mp.External, proto: mp.Proto}] = index
	n.receiveEverywhere(mp.External.Addr(), true)
	return vnet.RetOK
}

// addIdentityVRF adds a VRF to an existing identity mapping; any other existing mapping is in the
// way.
func (n *Plugin) addIdentityVRF(mp *Mapping, index, vrf uint32) int32 {
	if !mp.Flags.Has(MapIdentity) {
		return vnet.RetValueExist
	}
	for _, l := range mp.Locals.All {
		if l.VRF == vrf {
			return vnet.RetValueExist
		}
	}
	l := &Backend{VRF: vrf, fib: n.net.FindOrCreateFIB(0, vrf)}
	mp.Locals.Put(l)
	n.i2o[mappingKey{at: mp.Local, fib: l.fib, proto: mp.Proto}] = index
	return vnet.RetOK
}

// DelStatic deletes what it finds under the external endpoint. Deleting a load-balancing mapping
// this way succeeds and does nothing.
func (n *Plugin) DelStatic(r Request) int32 {
	r = r.normal()
	mp, index := n.External(r.External, r.Proto)
	if mp == nil {
		return vnet.RetNoSuchEntry
	}
	fib := mp.fib
	if r.Flags.Has(MapIdentity) {
		if r.VRF == vnet.None {
			r.VRF = n.insideVRF
		}
		l, ok := mp.takeVRF(r.VRF)
		if !ok {
			return vnet.RetNoSuchEntry
		}
		fib = l.fib
	}
	if !r.Flags.Has(MapOut2inOnly) {
		delete(n.i2o, mappingKey{at: r.Local, fib: fib, proto: r.Proto})
	}
	n.endStaticSessions(mp, fib, r)
	if mp.Locals.Len() == 0 {
		delete(n.o2i, mappingKey{at: r.External, proto: r.Proto})
		n.Mappings.Remove(index)
		n.receiveEverywhere(r.External.Addr(), false)
	}
	return vnet.RetOK
}

// takeVRF removes the record of a VRF from an identity mapping.
func (mp *Mapping) takeVRF(vrf uint32) (*Backend, bool) {
	var found *Backend
	for i, l := range mp.Locals.All {
		if l.VRF == vrf {
			found = l
			mp.Locals.Remove(i)
		}
	}
	return found, found != nil
}

// endStaticSessions ends the sessions of a deleted simple mapping: all of an address-only mapping,
// but only the first one of a mapping with ports.
func (n *Plugin) endStaticSessions(mp *Mapping, fib uint32, r Request) {
	for _, s := range n.Sessions.All {
		if s.InsideFIB != fib || s.Inside.Addr() != mp.Local.Addr() {
			continue
		}
		addrOnly := r.Flags.Has(MapAddrOnly)
		if !addrOnly && (s.Outside != r.External || s.Inside.Port() != mp.Local.Port() || s.Proto != mp.Proto) {
			continue
		}
		if s.Has(sessionLB) || !s.Has(SessionStatic) {
			continue
		}
		n.freeSession(s)
		if !addrOnly {
			return
		}
	}
}

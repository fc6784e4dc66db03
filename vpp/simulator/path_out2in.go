package simulator

import "net/netip"

// out2in is the node for packets from outside. It reports whether the packet
// goes on to the lookup.
func (t *transit) out2in() bool {
	key := t.key(t.rxFIB)
	s := t.live(key)
	if s == nil {
		return t.out2inSlow()
	}
	switch {
	case s.o2i.match == key:
		t.translate(s, &s.o2i, dirO2I)
	case s.i2o.match == key && (s.has(sessionTwice) || t.nat.forwarding):
		t.translate(s, &s.i2o, dirO2I)
	case !t.nat.forwarding:
		return t.drop("no translation")
	default:
		t.nat.freeSession(s)
		return t.drop("flow mismatch")
	}
	return true
}

// out2inSlow handles the first packet of a flow from outside.
func (t *transit) out2inSlow() bool {
	if !knownProto(t.Proto) {
		return t.out2inUnknown()
	}
	client := t.Src.Addr()
	if t.Proto == ProtoICMP {
		client = netip.Addr{} // VPP does not name it here
	}
	found, ok := t.matchExternal(t.Dst, client)
	if t.cause != "" {
		return false
	}
	if !ok {
		return t.out2inUnmatched()
	}
	if t.Proto == ProtoICMP && !t.EchoReply && !found.mp.flags.has(mapAddrOnly) {
		return t.drop("bad ICMP type")
	}
	if found.mp.flags.has(mapIdentity) {
		return true
	}
	if !t.initial() {
		return t.drop("non-SYN packet try to create session")
	}
	s := t.serviceSession(found)
	if s == nil {
		return false
	}
	t.translate(s, &s.o2i, dirO2I)
	t.fresh = true
	return true
}

// out2inUnmatched handles a packet that no mapping claims: without forwarding
// it is dropped unless it is for the interface itself; with forwarding it
// passes, and a bypass session remembers it.
func (t *transit) out2inUnmatched() bool {
	switch {
	case t.nat.forwarding:
		if t.nat.flows[t.key(t.rxFIB)] != nil {
			return t.in2out()
		}
		t.bypass()
		return true
	case t.Proto == ProtoICMP && t.hasAddress(t.iface(t.InIndex), t.Dst.Addr()):
		return true
	case t.Proto == ProtoUDP && t.Dst.Port() == 68:
		return true
	}
	return t.drop("no translation")
}

// bypass makes or refreshes the session of a forwarded flow. It never stops
// the packet.
func (t *transit) bypass() {
	n := t.nat
	s := n.flows[t.reverse(t.rxFIB)]
	if s == nil {
		if n.full(t.rxFIB) {
			return
		}
		s = n.newSession(t.Proto)
		s.flags = sessionBypass
		s.ext = t.Src
		s.inside, s.insideFIB = t.Dst, t.rxFIB
		s.outside, s.outsideFIB = t.Dst, t.rxFIB
		s.i2o = flow{match: t.reverse(t.rxFIB), src: t.Dst, dst: t.Src, fib: t.rxFIB}
		n.addI2O(s)
		n.register(s)
		t.fresh = true
	}
	if t.Proto == ProtoTCP {
		n.track(s, t.Flags, dirO2I)
	}
	n.touch(s, 0)
	t.used = s
}

// serviceSession makes the session of a mapping. Unlike dynamic sessions it
// never pushes out an expired one when the table is full.
func (t *transit) serviceSession(found match) *session {
	n := t.nat
	if n.full(t.rxFIB) {
		t.drop("maximum sessions exceeded")
		return nil
	}
	s := n.newSession(t.Proto)
	s.flags = sessionStatic
	if found.mp.flags.has(mapLB) && t.Proto != ProtoICMP {
		s.flags |= sessionLB
		if found.sticky {
			s.flags |= sessionAffinity
		}
	}
	s.ext = t.Src
	s.outside, s.outsideFIB = t.Dst, t.rxFIB
	s.inside, s.insideFIB = found.at, found.fib
	s.o2i = flow{match: t.key(t.rxFIB), src: t.Src, dst: found.at, fib: found.fib}
	if t.Proto == ProtoICMP {
		s.ext = netip.AddrPortFrom(t.Src.Addr(), 0)
		s.o2i.src = netip.AddrPortFrom(t.Src.Addr(), found.at.Port())
	}
	n.addO2I(s, false)
	if t.wantsTwice(found) {
		if !t.twiceNAT(s, found.mp) {
			n.dropSession(s)
			t.drop("out of ports")
			return nil
		}
	} else {
		peer := t.Src
		if t.Proto == ProtoICMP {
			peer = s.o2i.src
		}
		s.i2o = flow{
			match: flowKey{src: s.inside, dst: peer, fib: s.insideFIB, proto: t.Proto},
			src:   s.outside, dst: t.Src, fib: none,
		}
		n.addI2O(s)
	}
	n.register(s)
	return s
}

// wantsTwice reports whether the client's address is to be translated too:
// always, or when the client is the chosen backend itself.
func (t *transit) wantsTwice(found match) bool {
	if t.Proto == ProtoICMP {
		return false
	}
	flags := found.mp.flags
	return flags.has(mapTwice) || (flags.has(mapSelfTwice) && t.Src.Addr() == found.at.Addr())
}

// twiceNAT gives the client an address of the twice-nat pool.
func (t *transit) twiceNAT(s *session, mp *mapping) bool {
	n := t.nat
	addr, ok := n.exactAddress(mp)
	if !ok {
		if addr, ok = n.twiceAddress(s); !ok {
			return false
		}
	}
	port := minPort + n.m.random.port(portCount-1)
	s.extNAT = netip.AddrPortFrom(addr, port)
	s.flags |= sessionTwice
	s.o2i.src = s.extNAT
	s.i2o = flow{
		match: flowKey{src: s.inside, dst: s.extNAT, fib: s.insideFIB, proto: s.proto},
		src:   s.outside, dst: s.ext, fib: none,
	}
	n.addI2O(s)
	return true
}

// Ports that NAT gives out.
const (
	minPort   uint16 = 1024
	portCount uint16 = 65535 - minPort + 1
)

// exactAddress returns the twice-nat address that a mapping names, if it is
// in the pool.
func (n *nat44) exactAddress(mp *mapping) (netip.Addr, bool) {
	if mp.flags.has(mapExact) {
		for _, a := range n.twice {
			if a.addr == mp.pool {
				return a.addr, true
			}
		}
	}
	return netip.Addr{}, false
}

// twiceAddress chooses an address of the twice-nat pool for a session: the
// backend decides where the search begins; an address of the session's VRF is
// taken at once, one for all VRFs only if there is none.
func (n *nat44) twiceAddress(s *session) (netip.Addr, bool) {
	if len(n.twice) == 0 {
		return netip.Addr{}, false
	}
	start := int(asWord(s.inside.Addr()) % uint32(len(n.twice)))
	var spare netip.Addr
	for i := range n.twice {
		a := n.twice[(start+i)%len(n.twice)]
		switch a.fib {
		case s.insideFIB:
			return a.addr, true
		case none:
			spare = a.addr
		}
	}
	return spare, spare.IsValid()
}

// out2inUnknown handles protocols without ports: only a mapping for the
// protocol with port 0 matches.
func (t *transit) out2inUnknown() bool {
	n := t.nat
	if n.full(t.rxFIB) {
		return n.forwarding || t.drop("maximum sessions exceeded")
	}
	bare := netip.AddrPortFrom(t.Dst.Addr(), 0)
	mp, _ := n.external(bare, t.Proto)
	if mp == nil {
		return n.forwarding || t.drop("no translation")
	}
	s := n.newSession(t.Proto)
	s.flags = sessionStatic
	s.ext = netip.AddrPortFrom(t.Src.Addr(), 0)
	s.outside, s.outsideFIB = netip.AddrPortFrom(t.Dst.Addr(), uint16(t.Proto)), t.rxFIB
	s.inside, s.insideFIB = netip.AddrPortFrom(mp.local.Addr(), uint16(t.Proto)), mp.fib
	s.i2o = flow{
		match: flowKey{src: netip.AddrPortFrom(mp.local.Addr(), 0), dst: s.ext, fib: mp.fib, proto: t.Proto},
		src:   bare, dst: s.ext, fib: none,
	}
	s.o2i = flow{match: t.key(t.rxFIB), src: t.Src, dst: netip.AddrPortFrom(mp.local.Addr(), 0), fib: mp.fib}
	n.addI2O(s)
	n.addO2I(s, false)
	n.register(s)
	t.translate(s, &s.o2i, dirO2I)
	t.fresh = true
	return true
}

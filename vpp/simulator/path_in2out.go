package simulator

import "net/netip"

// in2out is the node for packets from inside, on the input arc or, with t.out
// set, after routing. It reports whether the packet goes on.
func (t *transit) in2out() bool {
	if t.out != none && t.isBypassed() {
		return true
	}
	key := t.key(t.rxFIB)
	s := t.live(key)
	if s == nil {
		return t.in2outSlow()
	}
	switch {
	case s.i2o.match == key:
		t.translate(s, &s.i2o, dirI2O)
	case s.has(sessionHairpin) && s.o2i.match == key:
		t.translate(s, &s.o2i, dirI2O)
	default:
		t.nat.freeSession(s)
		return t.drop("flow mismatch")
	}
	return true
}

// isBypassed reports whether a forwarded flow has a bypass session, which is
// refreshed. VPP looks for it in the default table only.
func (t *transit) isBypassed() bool {
	s := t.nat.flows[t.key(0)]
	if !t.nat.forwarding || s == nil || !s.has(sessionBypass) {
		return false
	}
	if t.Proto == ProtoTCP {
		t.nat.track(s, t.Flags, dirI2O)
	}
	t.nat.touch(s, t.Length)
	return true
}

// in2outSlow handles the first packet of a flow from inside.
func (t *transit) in2outSlow() bool {
	if !knownProto(t.Proto) {
		return t.in2outUnknown()
	}
	if t.leaveAlone() {
		return t.cause == ""
	}
	s, pass := t.dynamicSession()
	if s == nil {
		return pass
	}
	t.translate(s, &s.i2o, dirI2O)
	t.fresh = true
	return true
}

// leaveAlone reports whether a packet from inside is not to be translated.
func (t *transit) leaveAlone() bool {
	if t.out != none {
		return t.leaveAloneOutput()
	}
	n := t.nat
	if n.flows[t.reverse(n.outsideFIB)] != nil {
		return false
	}
	// VPP asks for the mapping without naming the client. Besides consuming a
	// random number, that is fatal for a mapping with affinity.
	if _, ok := t.matchExternal(t.Dst, netip.Addr{}); ok || t.cause != "" {
		return t.cause != ""
	}
	if n.forwarding || t.hasAddress(t.iface(t.InIndex), t.Dst.Addr()) {
		return true
	}
	return !t.resolvable()
}

// leaveAloneOutput is leaveAlone after routing: packets that a session has
// already translated, in whatever direction, are left alone.
func (t *transit) leaveAloneOutput() bool {
	n := t.nat
	if n.flows[t.key(n.fibOf(t.out))] != nil {
		return true
	}
	s := n.flows[t.reverse(t.rxFIB)]
	if s == nil || s.has(sessionBypass) {
		return t.Proto == ProtoUDP && t.Dst.Port() == 67 && t.Dst.Addr() == netip.AddrFrom4([4]byte{255, 255, 255, 255})
	}
	i, _ := find(&n.output, t.InIndex)
	return i == nil || !i.inside
}

// resolvable reports whether the destination is reached through an outside
// interface, or through a VRF that the packet's VRF may be translated into.
func (t *transit) resolvable() bool {
	n := t.nat
	if vt := n.vrfTableOf(t.rxFIB); vt != nil {
		for _, r := range vt.routes.all {
			if t.forward(r.fib, t.Dst.Addr(), t.Src.Addr()).swIf != none {
				return true
			}
		}
		return false
	}
	for _, o := range n.outside {
		swIf := t.forward(o.fib, t.Dst.Addr(), t.Src.Addr()).swIf
		if i, _ := find(&n.inOut, swIf); i != nil && i.outside {
			return true
		}
	}
	return false
}

// vrfTableOf returns the VRF table of a FIB, nil if there is none.
func (n *nat44) vrfTableOf(fib uint32) *vrfTable {
	for _, t := range n.vrfTables.all {
		if t.fib == fib {
			return t
		}
	}
	return nil
}

// outsideOf returns the FIB that a translated packet to dst is looked up in.
func (t *transit) outsideOf(dst netip.Addr) uint32 {
	n := t.nat
	if vt := n.vrfTableOf(t.rxFIB); vt != nil {
		for _, r := range vt.routes.all {
			if t.forward(r.fib, dst, t.Src.Addr()).swIf != none {
				return r.fib
			}
		}
		return t.rxFIB
	}
	for _, o := range n.outside {
		if t.forward(o.fib, dst, t.Src.Addr()).swIf != none {
			return o.fib
		}
	}
	return n.outsideFIB
}

// dynamicSession makes the session of a packet from inside. Without a session
// it reports whether the packet passes untranslated.
func (t *transit) dynamicSession() (*session, bool) {
	n := t.nat
	if n.full(t.rxFIB) && !n.freeOldest() {
		return nil, t.drop("maximum sessions exceeded")
	}
	mp, outside := t.matchInternal(t.Src)
	if mp != nil && mp.flags.has(mapIdentity) {
		return nil, true
	}
	if !t.initial() {
		return nil, t.drop("non-SYN packet try to create session")
	}
	s := n.newSession(t.Proto)
	s.inside, s.insideFIB = t.Src, t.rxFIB
	s.outsideFIB = t.outsideOf(t.Dst.Addr())
	s.ext = t.Dst
	peer, hairpin := t.hairpinPeer()
	if hairpin {
		s.flags |= sessionHairpin
	}
	s.o2i = flow{
		match: flowKey{src: peer, fib: s.outsideFIB, proto: t.Proto},
		src:   t.Dst, dst: t.Src, fib: t.rxFIB,
	}
	if mp != nil {
		s.flags |= sessionStatic
		s.outside = outside
		s.o2i.match.dst = outside
		if t.Proto == ProtoICMP {
			s.o2i.match.src = netip.AddrPortFrom(peer.Addr(), outside.Port())
		}
		if !n.addO2I(s, true) {
			n.dropSession(s)
			return nil, t.drop("out2in key add failed")
		}
	} else if !t.allocate(s) {
		n.dropSession(s)
		return nil, t.drop("out of ports")
	}
	s.i2o = flow{match: t.key(t.rxFIB), src: s.outside, dst: peer, fib: s.outsideFIB}
	if t.Proto == ProtoICMP {
		s.i2o.dst = netip.AddrPortFrom(peer.Addr(), s.outside.Port())
		s.o2i.src = netip.AddrPortFrom(t.Dst.Addr(), t.Src.Port())
	}
	n.addI2O(s)
	n.register(s)
	return s, true
}

// hairpinPeer returns where packets to the destination really go: to the local
// side of a mapping that owns it. A load-balancing mapping has none, so its
// clients are sent to 0.0.0.0:0.
func (t *transit) hairpinPeer() (netip.AddrPort, bool) {
	mp, _ := t.nat.external(t.Dst, t.Proto)
	if mp == nil {
		mp, _ = t.nat.external(netip.AddrPortFrom(t.Dst.Addr(), 0), 0)
	}
	if mp == nil {
		return t.Dst, false
	}
	if mp.flags.has(mapAddrOnly) {
		return netip.AddrPortFrom(mp.local.Addr(), t.Dst.Port()), true
	}
	return mp.local, true
}

// portAttempts is how many ports are tried before a flow is given up.
const portAttempts = 10

// allocate gives a dynamic session an outside address and port: its own port
// if that is free, random ones otherwise.
func (t *transit) allocate(s *session) bool {
	n := t.nat
	a := t.poolAddress(s.insideFIB)
	if a == nil {
		return false
	}
	port := t.Src.Port()
	if port < minPort {
		port = minPort + n.m.random.port(portCount-1)
	}
	peer := s.o2i.match.src
	for range portAttempts {
		s.o2i.match.dst = netip.AddrPortFrom(a.addr, port)
		if t.Proto == ProtoICMP {
			s.o2i.match.src = netip.AddrPortFrom(peer.Addr(), port)
		}
		if n.addO2I(s, true) {
			s.outside = s.o2i.match.dst
			return true
		}
		port = minPort + n.m.random.port(portCount-1)
	}
	s.o2i.match = flowKey{}
	return false
}

// poolAddress chooses a pool address for a session: one of its VRF on the way
// to the destination if there is one, any of its VRF, or one for all VRFs. The
// source address decides where the search begins.
func (t *transit) poolAddress(fib uint32) *natAddress {
	n := t.nat
	if len(n.pool) == 0 {
		return nil
	}
	word := asWord(t.Src.Addr())
	start := int((word + word>>8 + word>>16 + word>>24) % uint32(len(n.pool)))
	var onInterface, sameVRF, anyVRF *natAddress
	for i := range n.pool {
		a := n.pool[(start+i)%len(n.pool)]
		if a.fib != fib {
			if a.fib == none {
				anyVRF = a
			}
			continue
		}
		fits := t.out == none || a.swIf == t.out
		if fits && a.net.IsValid() && a.net.Contains(t.Dst.Addr()) {
			return a
		}
		if t.out != none && fits {
			onInterface = a
		}
		sameVRF = a
	}
	for _, a := range []*natAddress{onInterface, sameVRF, anyVRF} {
		if a != nil {
			return a
		}
	}
	return nil
}

// in2outUnknown handles protocols without ports: one flow per protocol and
// pair of addresses.
func (t *transit) in2outUnknown() bool {
	n := t.nat
	if n.full(t.rxFIB) {
		return t.drop("maximum sessions exceeded")
	}
	outsideFIB := t.outsideOf(t.Dst.Addr())
	bare := netip.AddrPortFrom(t.Src.Addr(), 0)
	peer := netip.AddrPortFrom(t.Dst.Addr(), 0)
	mp := n.internal(bare, t.rxFIB, t.Proto)
	var addr netip.Addr
	if mp != nil {
		addr = mp.external.Addr()
	} else {
		addr = n.freeAddress(peer, outsideFIB, t.Proto)
	}
	if !addr.IsValid() {
		return t.drop("no translation")
	}
	s := n.newSession(t.Proto)
	if mp != nil {
		s.flags |= sessionStatic
	}
	real, hairpin := peer, false
	if target, _ := n.external(peer, t.Proto); target != nil {
		real, hairpin = netip.AddrPortFrom(target.local.Addr(), 0), true
	}
	if hairpin {
		s.flags |= sessionHairpin
	}
	s.ext = peer
	s.inside, s.insideFIB = netip.AddrPortFrom(t.Src.Addr(), uint16(t.Proto)), t.rxFIB
	s.outside, s.outsideFIB = netip.AddrPortFrom(addr, uint16(t.Proto)), outsideFIB
	outside := netip.AddrPortFrom(addr, 0)
	s.i2o = flow{match: t.key(t.rxFIB), src: outside, dst: real, fib: outsideFIB}
	s.o2i = flow{
		match: flowKey{src: real, dst: outside, fib: outsideFIB, proto: t.Proto},
		src:   peer, dst: bare, fib: t.rxFIB,
	}
	n.addI2O(s)
	n.addO2I(s, false)
	n.register(s)
	t.translate(s, &s.i2o, dirI2O)
	t.fresh = true
	return true
}

// freeAddress returns the last pool address that has no flow of the protocol
// with the peer yet.
func (n *nat44) freeAddress(peer netip.AddrPort, fib uint32, proto uint8) netip.Addr {
	var addr netip.Addr
	for _, a := range n.pool {
		if n.flows[flowKey{src: netip.AddrPortFrom(a.addr, 0), dst: peer, fib: fib, proto: proto}] == nil {
			addr = a.addr
		}
	}
	return addr
}

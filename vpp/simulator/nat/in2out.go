package nat

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// in2out is the node for packets from inside, on the input arc or, with t.out set, after routing.
// It reports whether the packet goes on.
func (t *Transit) in2out() bool {
	if t.out != vnet.None && t.isBypassed() {
		return true
	}
	key := t.key(t.rxFIB)
	s := t.live(key)
	counters := &t.nat.Counters
	if s == nil {
		pass := t.in2outSlow()
		if !pass {
			counters.SlowDrops++
		}
		if !vnet.KnownProto(key.Proto) {
			counters.SlowOther++
		}
		return pass
	}
	if !vnet.KnownProto(key.Proto) {
		counters.FastOther++
	}
	switch {
	case s.i2o.match == key:
		t.translate(s, &s.i2o, dirI2O)
	case s.Has(sessionHairpin) && s.o2i.match == key:
		t.translate(s, &s.o2i, dirI2O)
	default:
		t.nat.freeSession(s)
		return t.Drop("flow mismatch")
	}
	return true
}

// isBypassed reports whether a forwarded flow has a bypass session, which is refreshed. VPP looks
// for it in the default table only.
func (t *Transit) isBypassed() bool {
	s := t.nat.flows[t.key(0)]
	if !t.nat.Forwarding || s == nil || !s.Has(sessionBypass) {
		return false
	}
	if t.Proto == vnet.ProtoTCP {
		t.nat.track(s, t.Flags, dirI2O)
	}
	t.nat.touch(s, t.Size())
	return true
}

// in2outSlow handles the first packet of a flow from inside.
func (t *Transit) in2outSlow() bool {
	if !vnet.KnownProto(t.Proto) {
		return t.in2outUnknown()
	}
	if t.leaveAlone() {
		return t.Cause == ""
	}
	s, pass := t.dynamicSession()
	if s == nil {
		return pass
	}
	t.translate(s, &s.i2o, dirI2O)
	t.Fresh = true
	return true
}

// leaveAlone reports whether a packet from inside is not to be translated.
func (t *Transit) leaveAlone() bool {
	if t.out != vnet.None {
		return t.leaveAloneOutput()
	}
	n := t.nat
	if n.flows[t.reverse(n.outsideFIB)] != nil {
		return false
	}
	// VPP looks up the mapping without the client. Besides consuming a random number, that is
	// fatal for a mapping with affinity.
	if _, ok := t.matchExternal(t.Dst, netip.Addr{}); ok || t.Cause != "" {
		return t.Cause != ""
	}
	if n.Forwarding || t.HasAddress(t.Interface(t.InIndex), t.Dst.Addr()) {
		return true
	}
	return !t.resolvable()
}

// leaveAloneOutput is leaveAlone after routing: packets that a session has already translated, in
// whatever direction, are left alone.
func (t *Transit) leaveAloneOutput() bool {
	n := t.nat
	if n.flows[t.key(n.fibOf(t.out))] != nil {
		return true
	}
	s := n.flows[t.reverse(t.rxFIB)]
	if s == nil || s.Has(sessionBypass) {
		return t.Proto == vnet.ProtoUDP && t.Dst.Port() == 67 && t.Dst.Addr() == netip.AddrFrom4([4]byte{255, 255, 255, 255})
	}
	i, _ := find(&n.Output, t.InIndex)
	return i == nil || !i.Inside
}

// resolvable reports whether the destination is reached through an outside interface.
func (t *Transit) resolvable() bool {
	n := t.nat
	for _, o := range n.outside {
		swIf := t.Forward(o.fib, t.Dst.Addr()).SwIf
		if i, _ := find(&n.InOut, swIf); i != nil && i.Outside {
			return true
		}
	}
	return false
}

// outsideOf returns the FIB that a translated packet to dst is looked up in.
func (t *Transit) outsideOf(dst netip.Addr) uint32 {
	n := t.nat
	for _, o := range n.outside {
		if t.Forward(o.fib, dst).SwIf != vnet.None {
			return o.fib
		}
	}
	return n.outsideFIB
}

// dynamicSession makes the session of a packet from inside. Without a session it reports whether
// the packet passes untranslated.
func (t *Transit) dynamicSession() (*Session, bool) {
	n := t.nat
	if n.full(t.rxFIB) && !n.freeOldest() {
		return nil, t.Drop("maximum sessions exceeded")
	}
	mp, outside := t.matchInternal(t.Src)
	if mp != nil && mp.Flags.Has(MapIdentity) {
		return nil, true
	}
	if !t.initial() {
		return nil, t.Drop("non-SYN packet try to create session")
	}
	s := n.newSession(t.Proto)
	s.Inside, s.InsideFIB = t.Src, t.rxFIB
	s.outsideFIB = t.outsideOf(t.Dst.Addr())
	s.Ext = t.Dst
	peer, hairpin := t.hairpinPeer()
	if hairpin {
		s.flags |= sessionHairpin
	}
	s.o2i = flow{
		match: FlowKey{Src: peer, FIB: s.outsideFIB, Proto: t.Proto},
		src:   t.Dst, dst: t.Src, fib: t.rxFIB,
	}
	if mp != nil {
		s.flags |= SessionStatic
		s.Outside = outside
		s.o2i.match.Dst = outside
		if t.Proto == vnet.ProtoICMP {
			s.o2i.match.Src = netip.AddrPortFrom(peer.Addr(), outside.Port())
		}
		if !n.addO2I(s, true) {
			n.dropSession(s)
			return nil, t.Drop("out2in key add failed")
		}
	} else if !t.allocate(s) {
		n.dropSession(s)
		return nil, t.Drop("out of ports")
	}
	s.i2o = flow{match: t.key(t.rxFIB), src: s.Outside, dst: peer, fib: s.outsideFIB}
	if t.Proto == vnet.ProtoICMP {
		s.i2o.dst = netip.AddrPortFrom(peer.Addr(), s.Outside.Port())
		s.o2i.src = netip.AddrPortFrom(t.Dst.Addr(), t.Src.Port())
	}
	n.addI2O(s)
	n.register(s)
	return s, true
}

// hairpinPeer returns where packets to the destination really go: to the local side of a mapping
// that owns it. A load-balancing mapping has none, so its clients are sent to 0.0.0.0:0.
func (t *Transit) hairpinPeer() (netip.AddrPort, bool) {
	mp, _ := t.nat.External(t.Dst, t.Proto)
	if mp == nil {
		mp, _ = t.nat.External(netip.AddrPortFrom(t.Dst.Addr(), 0), 0)
	}
	if mp == nil {
		return t.Dst, false
	}
	if mp.Flags.Has(MapAddrOnly) {
		return netip.AddrPortFrom(mp.Local.Addr(), t.Dst.Port()), true
	}
	return mp.Local, true
}

// portAttempts is how many ports are tried before a flow is given up.
const portAttempts = 10

// allocate gives a dynamic session an outside address and port: its own port if that is free,
// random ones otherwise.
func (t *Transit) allocate(s *Session) bool {
	n := t.nat
	a := t.poolAddress(s.InsideFIB)
	if a == nil {
		return false
	}
	port := t.Src.Port()
	if port < minPort {
		port = minPort + n.random.port(portCount-1)
	}
	peer := s.o2i.match.Src
	for range portAttempts {
		s.o2i.match.Dst = netip.AddrPortFrom(a.Addr, port)
		if t.Proto == vnet.ProtoICMP {
			s.o2i.match.Src = netip.AddrPortFrom(peer.Addr(), port)
		}
		if n.addO2I(s, true) {
			s.Outside = s.o2i.match.Dst
			return true
		}
		port = minPort + n.random.port(portCount-1)
	}
	s.o2i.match = FlowKey{}
	return false
}

// poolAddress chooses a pool address for a session: one of its VRF on the way to the destination if
// there is one, any of its VRF, or one for all VRFs. The source address decides where the search
// begins.
func (t *Transit) poolAddress(fib uint32) *Address {
	n := t.nat
	if len(n.Pool) == 0 {
		return nil
	}
	word := asWord(t.Src.Addr())
	start := int((word + word>>8 + word>>16 + word>>24) % uint32(len(n.Pool)))
	var onInterface, sameVRF, anyVRF *Address
	for i := range n.Pool {
		a := n.Pool[(start+i)%len(n.Pool)]
		if a.FIB != fib {
			if a.FIB == vnet.None {
				anyVRF = a
			}
			continue
		}
		fits := t.out == vnet.None || a.swIf == t.out
		if fits && a.net.IsValid() && a.net.Contains(t.Dst.Addr()) {
			return a
		}
		if t.out != vnet.None && fits {
			onInterface = a
		}
		sameVRF = a
	}
	for _, a := range []*Address{onInterface, sameVRF, anyVRF} {
		if a != nil {
			return a
		}
	}
	return nil
}

// in2outUnknown handles protocols without ports: one flow per protocol and pair of addresses.
func (t *Transit) in2outUnknown() bool {
	n := t.nat
	if n.full(t.rxFIB) {
		return t.Drop("maximum sessions exceeded")
	}
	outsideFIB := t.outsideOf(t.Dst.Addr())
	bare := netip.AddrPortFrom(t.Src.Addr(), 0)
	peer := netip.AddrPortFrom(t.Dst.Addr(), 0)
	mp := n.internal(bare, t.rxFIB, t.Proto)
	var addr netip.Addr
	if mp != nil {
		addr = mp.External.Addr()
	} else {
		addr = n.freeAddress(peer, outsideFIB, t.Proto)
	}
	if !addr.IsValid() {
		return t.Drop("no translation")
	}
	s := n.newSession(t.Proto)
	if mp != nil {
		s.flags |= SessionStatic
	}
	real, hairpin := peer, false
	if target, _ := n.External(peer, t.Proto); target != nil {
		real, hairpin = netip.AddrPortFrom(target.Local.Addr(), 0), true
	}
	if hairpin {
		s.flags |= sessionHairpin
	}
	s.Ext = peer
	s.Inside, s.InsideFIB = netip.AddrPortFrom(t.Src.Addr(), uint16(t.Proto)), t.rxFIB
	s.Outside, s.outsideFIB = netip.AddrPortFrom(addr, uint16(t.Proto)), outsideFIB
	outside := netip.AddrPortFrom(addr, 0)
	s.i2o = flow{match: t.key(t.rxFIB), src: outside, dst: real, fib: outsideFIB}
	s.o2i = flow{
		match: FlowKey{Src: real, Dst: outside, FIB: outsideFIB, Proto: t.Proto},
		src:   peer, dst: bare, fib: t.rxFIB,
	}
	n.addI2O(s)
	n.addO2I(s, false)
	n.register(s)
	t.translate(s, &s.i2o, dirI2O)
	t.Fresh = true
	return true
}

// freeAddress returns the last pool address that has no flow of the protocol with the peer yet.
func (n *Plugin) freeAddress(peer netip.AddrPort, fib uint32, proto uint8) netip.Addr {
	var addr netip.Addr
	for _, a := range n.Pool {
		if n.flows[FlowKey{Src: netip.AddrPortFrom(a.Addr, 0), Dst: peer, FIB: fib, Proto: proto}] == nil {
			addr = a.Addr
		}
	}
	return addr
}

package nat

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// out2in is the node for packets from outside. It reports whether the packet goes on to the lookup.
func (t *Transit) out2in() bool {
	key := t.key(t.rxFIB)
	s := t.live(key)
	if s == nil {
		return t.out2inSlow()
	}
	switch {
	case s.o2i.match == key:
		t.translate(s, &s.o2i, dirO2I)
	case s.i2o.match == key && (s.Has(SessionTwice) || t.nat.Forwarding):
		t.translate(s, &s.i2o, dirO2I)
	case !t.nat.Forwarding:
		return t.Drop("no translation")
	default:
		t.nat.freeSession(s)
		return t.Drop("flow mismatch")
	}
	return true
}

// out2inSlow handles the first packet of a flow from outside.
func (t *Transit) out2inSlow() bool {
	if !vnet.KnownProto(t.Proto) {
		return t.out2inUnknown()
	}
	client := t.Src.Addr()
	if t.Proto == vnet.ProtoICMP {
		client = netip.Addr{} // VPP does not name it here
	}
	found, ok := t.matchExternal(t.Dst, client)
	if t.Cause != "" {
		return false
	}
	if !ok {
		return t.out2inUnmatched()
	}
	if t.Proto == vnet.ProtoICMP && !t.EchoReply && !found.mp.Flags.Has(MapAddrOnly) {
		return t.Drop("bad ICMP type")
	}
	if found.mp.Flags.Has(MapIdentity) {
		return true
	}
	if !t.initial() {
		return t.Drop("non-SYN packet try to create session")
	}
	s := t.serviceSession(found)
	if s == nil {
		return false
	}
	t.translate(s, &s.o2i, dirO2I)
	t.Fresh = true
	if t.Proto == vnet.ProtoTCP {
		t.nat.Counters.NewTCP++
	}
	return true
}

// out2inUnmatched handles a packet that no mapping claims: without forwarding it is dropped unless
// it is for the interface itself; with forwarding it passes, and a bypass session remembers it.
func (t *Transit) out2inUnmatched() bool {
	switch {
	case t.nat.Forwarding:
		if t.nat.flows[t.key(t.rxFIB)] != nil {
			return t.in2out()
		}
		t.bypass()
		return true
	case t.Proto == vnet.ProtoICMP && t.HasAddress(t.Interface(t.InIndex), t.Dst.Addr()):
		return true
	case t.Proto == vnet.ProtoUDP && t.Dst.Port() == 68:
		return true
	}
	return t.Drop("no translation")
}

// bypass makes or refreshes the session of a forwarded flow. It never stops the packet.
func (t *Transit) bypass() {
	n := t.nat
	s := n.flows[t.reverse(t.rxFIB)]
	if s == nil {
		if n.full(t.rxFIB) {
			return
		}
		s = n.newSession(t.Proto)
		s.flags = sessionBypass
		s.Ext = t.Src
		s.Inside, s.InsideFIB = t.Dst, t.rxFIB
		s.Outside, s.outsideFIB = t.Dst, t.rxFIB
		s.i2o = flow{match: t.reverse(t.rxFIB), src: t.Dst, dst: t.Src, fib: t.rxFIB}
		n.addI2O(s)
		n.register(s)
		t.Fresh = true
	}
	if t.Proto == vnet.ProtoTCP {
		n.track(s, t.Flags, dirO2I)
	}
	n.touch(s, 0)
	t.Used = s
}

// serviceSession makes the session of a mapping. Unlike dynamic sessions it never pushes out an
// expired one when the table is full.
func (t *Transit) serviceSession(found match) *Session {
	n := t.nat
	if n.full(t.rxFIB) {
		t.Drop("maximum sessions exceeded")
		return nil
	}
	s := n.newSession(t.Proto)
	s.flags = SessionStatic
	if found.mp.Flags.Has(MapLB) && t.Proto != vnet.ProtoICMP {
		s.flags |= sessionLB
		if found.sticky {
			s.flags |= sessionAffinity
		}
	}
	s.Ext = t.Src
	s.Outside, s.outsideFIB = t.Dst, t.rxFIB
	s.Inside, s.InsideFIB = found.at, found.fib
	s.o2i = flow{match: t.key(t.rxFIB), src: t.Src, dst: found.at, fib: found.fib}
	if t.Proto == vnet.ProtoICMP {
		s.Ext = netip.AddrPortFrom(t.Src.Addr(), 0)
		s.o2i.src = netip.AddrPortFrom(t.Src.Addr(), found.at.Port())
	}
	n.addO2I(s, false)
	if t.wantsTwice(found) {
		if !t.twiceNAT(s) {
			n.dropSession(s)
			t.Drop("out of ports")
			return nil
		}
	} else {
		peer := t.Src
		if t.Proto == vnet.ProtoICMP {
			peer = s.o2i.src
		}
		s.i2o = flow{
			match: FlowKey{Src: s.Inside, Dst: peer, FIB: s.InsideFIB, Proto: t.Proto},
			src:   s.Outside, dst: t.Src, fib: vnet.None,
		}
		n.addI2O(s)
	}
	n.register(s)
	return s
}

// wantsTwice reports whether the client's address is to be translated too: always, or when the
// client is the chosen backend itself.
func (t *Transit) wantsTwice(found match) bool {
	if t.Proto == vnet.ProtoICMP {
		return false
	}
	flags := found.mp.Flags
	return flags.Has(MapTwice) || (flags.Has(MapSelfTwice) && t.Src.Addr() == found.at.Addr())
}

// twiceNAT gives the client an address of the twice-nat pool.
func (t *Transit) twiceNAT(s *Session) bool {
	n := t.nat
	addr, ok := n.twiceAddress(s)
	if !ok {
		return false
	}
	port := minPort + n.random.port(portCount-1)
	s.ExtNAT = netip.AddrPortFrom(addr, port)
	s.flags |= SessionTwice
	s.o2i.src = s.ExtNAT
	s.i2o = flow{
		match: FlowKey{Src: s.Inside, Dst: s.ExtNAT, FIB: s.InsideFIB, Proto: s.Proto},
		src:   s.Outside, dst: s.Ext, fib: vnet.None,
	}
	n.addI2O(s)
	return true
}

// Ports that NAT gives out.
const (
	minPort   uint16 = 1024
	portCount uint16 = 65535 - minPort + 1
)

// twiceAddress chooses an address of the twice-nat pool for a session: the backend decides where
// the search begins; an address of the session's VRF is taken at once, one for all VRFs only if
// there is none.
func (n *Plugin) twiceAddress(s *Session) (netip.Addr, bool) {
	if len(n.Twice) == 0 {
		return netip.Addr{}, false
	}
	start := int(asWord(s.Inside.Addr()) % uint32(len(n.Twice)))
	var spare netip.Addr
	for i := range n.Twice {
		a := n.Twice[(start+i)%len(n.Twice)]
		switch a.FIB {
		case s.InsideFIB:
			return a.Addr, true
		case vnet.None:
			spare = a.Addr
		}
	}
	return spare, spare.IsValid()
}

// out2inUnknown handles protocols without ports: only a mapping for the protocol with port 0
// matches.
func (t *Transit) out2inUnknown() bool {
	n := t.nat
	if n.full(t.rxFIB) {
		return n.Forwarding || t.Drop("maximum sessions exceeded")
	}
	bare := netip.AddrPortFrom(t.Dst.Addr(), 0)
	mp, _ := n.External(bare, t.Proto)
	if mp == nil {
		return n.Forwarding || t.Drop("no translation")
	}
	s := n.newSession(t.Proto)
	s.flags = SessionStatic
	s.Ext = netip.AddrPortFrom(t.Src.Addr(), 0)
	s.Outside, s.outsideFIB = netip.AddrPortFrom(t.Dst.Addr(), uint16(t.Proto)), t.rxFIB
	s.Inside, s.InsideFIB = netip.AddrPortFrom(mp.Local.Addr(), uint16(t.Proto)), mp.fib
	s.i2o = flow{
		match: FlowKey{Src: netip.AddrPortFrom(mp.Local.Addr(), 0), Dst: s.Ext, FIB: mp.fib, Proto: t.Proto},
		src:   bare, dst: s.Ext, fib: vnet.None,
	}
	s.o2i = flow{match: t.key(t.rxFIB), src: t.Src, dst: netip.AddrPortFrom(mp.Local.Addr(), 0), fib: mp.fib}
	n.addI2O(s)
	n.addO2I(s, false)
	n.register(s)
	t.translate(s, &s.o2i, dirO2I)
	t.Fresh = true
	return true
}

package simulator

import (
	"fmt"
	"net/netip"
	"strings"
)

// IP protocol numbers that the packet oracle understands.
const (
	ProtoICMP uint8 = 1
	ProtoTCP  uint8 = 6
	ProtoUDP  uint8 = 17
	ProtoSCTP uint8 = 132
)

// TCPFlags are TCP header flags.
type TCPFlags uint8

// The TCP flags that NAT looks at.
const (
	FIN TCPFlags = 0x01
	SYN TCPFlags = 0x02
	RST TCPFlags = 0x04
	ACK TCPFlags = 0x10
)

// Packet is one ip4 packet that enters VPP through an interface.
type Packet struct {
	// In is the name of the interface through which the packet comes. If it is
	// empty, InIndex counts.
	In string

	// InIndex is the sw_if_index of the interface; used when In is empty.
	InIndex uint32

	// Src and Dst are the endpoints. For ICMP echo both ports are the
	// identifier; for protocols without ports they are 0.
	Src, Dst netip.AddrPort

	// Proto is the IP protocol number.
	Proto uint8

	// Flags are the TCP flags. A TCP packet without flags is a SYN.
	Flags TCPFlags

	// EchoReply makes an ICMP packet an echo reply instead of a request.
	EchoReply bool

	// ID is carried through unchanged, for the caller's bookkeeping.
	ID uint64

	// Length counts for the byte counters of the session only.
	Length int
}

// Action is what became of a packet.
type Action uint8

// The fates of a packet.
const (
	// Delivered: it left through an interface.
	Delivered Action = iota
	// Local: its destination is VPP itself. UDP would be answered with port
	// unreachable, TCP with silence.
	Local
	// Dropped: it vanished.
	Dropped
	// Rejected: it was answered with an ICMP error.
	Rejected
	// Died: it killed VPP.
	Died
)

// String returns the name of the action.
func (a Action) String() string {
	names := [...]string{"delivered", "local", "dropped", "rejected", "died"}
	if int(a) < len(names) {
		return names[a]
	}
	return fmt.Sprintf("Action(%d)", a)
}

// Verdict is the answer of the packet oracle.
type Verdict struct {
	// Action is what became of the packet.
	Action Action

	// Reason tells why, for every action but Delivered.
	Reason string

	// Out and OutIndex are the interface through which the packet left.
	Out      string
	OutIndex uint32

	// NextHop is the neighbour on that interface that it was sent to.
	NextHop netip.Addr

	// Src and Dst are the endpoints as the packet left.
	Src, Dst netip.AddrPort

	// Session is the id of the NAT session that translated the packet last; 0
	// if none did. Ids are never reused within an incarnation.
	Session uint64

	// NewSession tells that the packet created that session.
	NewSession bool

	// Packet is what was sent.
	Packet Packet
}

// To returns the address that the packet reached, invalid unless delivered.
func (v Verdict) To() netip.Addr {
	if v.Action != Delivered {
		return netip.Addr{}
	}
	return v.Dst.Addr()
}

// String describes the verdict in one line.
func (v Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s > %s/%d ", v.Packet.Src, v.Packet.Dst, v.Packet.Proto)
	if v.Action == Delivered {
		fmt.Fprintf(&b, "delivered on %s as %s > %s", v.Out, v.Src, v.Dst)
	} else {
		fmt.Fprintf(&b, "%s (%s)", v.Action, v.Reason)
	}
	switch {
	case v.NewSession:
		fmt.Fprintf(&b, ", new session %d", v.Session)
	case v.Session != 0:
		fmt.Fprintf(&b, ", session %d", v.Session)
	}
	return b.String()
}

// Send pushes a packet through VPP and tells what becomes of it. Sessions that
// it creates stay until they are ended or time out. Neighbours count as
// resolved, and the TTL is large. A crashed VPP drops everything.
func (v *VPP) Send(p Packet) Verdict {
	if p.Proto == ProtoTCP && p.Flags == 0 {
		p.Flags = SYN
	}
	verdict := Verdict{Packet: p, Src: p.Src, Dst: p.Dst, OutIndex: none, Action: Dropped}
	err := v.with(func(m *model) error {
		m.send(p, &verdict)
		return nil
	})
	if err != nil {
		verdict.Reason = err.Error()
	}
	return verdict
}

// Reply sends the answer to a delivered packet: it enters where the packet
// left, with the endpoints swapped, and shows how the translation is undone.
// The answer to a SYN is SYN+ACK, to any other TCP packet ACK, to an echo
// request an echo reply.
func (v *VPP) Reply(to Verdict) Verdict {
	p := Packet{
		InIndex: to.OutIndex,
		Src:     to.Dst,
		Dst:     to.Src,
		Proto:   to.Packet.Proto,
		ID:      to.Packet.ID,
	}
	switch {
	case p.Proto == ProtoTCP && to.Packet.Flags&SYN != 0 && to.Packet.Flags&ACK == 0:
		p.Flags = SYN | ACK
	case p.Proto == ProtoTCP:
		p.Flags = ACK
	case p.Proto == ProtoICMP:
		p.EchoReply = !to.Packet.EchoReply
	}
	if to.Action != Delivered {
		return Verdict{
			Action: Dropped, Reason: "nothing to reply to: the packet was " + to.Action.String(),
			Packet: p, Src: p.Src, Dst: p.Dst, OutIndex: none,
		}
	}
	return v.Send(p)
}

// transit is a packet on its way through the graph.
type transit struct {
	*model
	Packet
	rxFIB uint32
	txFIB uint32 // lookup table chosen by a translation, none otherwise
	out   uint32 // output interface while in the output feature, none before
	used  *session
	fresh bool
	lost  string // reason of the drop
}

// send runs a packet through the graph.
func (m *model) send(p Packet, v *Verdict) {
	in := m.iface(p.InIndex)
	if p.In != "" {
		in = nil
		if index, ok := m.byName[p.In]; ok {
			in = m.iface(index)
		}
	}
	switch {
	case in == nil:
		v.Reason = ErrNoInterface.Error()
		return
	case !in.adminUp:
		v.Reason = "input interface down"
		return
	case !p.Src.Addr().Is4() || !p.Dst.Addr().Is4():
		v.Reason = "not an ip4 packet"
		return
	}
	p.InIndex = in.index
	t := &transit{model: m, Packet: p, rxFIB: in.fib[0], txFIB: none, out: none}
	if !knownProto(p.Proto) {
		// NAT reads no ports from these protocols.
		t.Src, t.Dst = netip.AddrPortFrom(p.Src.Addr(), 0), netip.AddrPortFrom(p.Dst.Addr(), 0)
	}
	t.run(v)
	v.Src, v.Dst = t.Src, t.Dst
	if !knownProto(p.Proto) {
		v.Src = netip.AddrPortFrom(t.Src.Addr(), p.Src.Port())
		v.Dst = netip.AddrPortFrom(t.Dst.Addr(), p.Dst.Port())
	}
	if t.used != nil {
		v.Session, v.NewSession = t.used.id, t.fresh
	}
	switch {
	case m.cause != "":
		v.Action, v.Reason = Died, m.cause
	case t.lost != "":
		v.Action, v.Reason = Dropped, t.lost
	}
}

// run is the graph: input feature, lookup, output feature, transmission.
func (t *transit) run(v *Verdict) {
	if !t.permits(t.InIndex, t.acls.of(t.InIndex).in) {
		t.drop("denied by input ACL")
		return
	}
	if !t.input() {
		return
	}
	fib := t.rxFIB
	if t.txFIB != none {
		fib = t.txFIB
	}
	h := t.forward(fib, t.Dst.Addr(), t.Src.Addr())
	switch h.kind {
	case pathLocal:
		v.Action, v.Reason = Local, h.reason
		return
	case pathUnreach, pathProhibit:
		v.Action, v.Reason = Rejected, h.reason
		return
	case pathNextHop:
	default:
		t.lost = h.reason
		return
	}
	if t.has(h.swIf, arcOutput, nodeOutput) {
		t.out = h.swIf
		if !t.in2out() {
			return
		}
	}
	if !t.permits(h.swIf, t.acls.of(h.swIf).out) {
		t.drop("denied by output ACL")
		return
	}
	v.Action, v.OutIndex, v.NextHop = Delivered, h.swIf, h.nextHop
	v.Out = t.iface(h.swIf).name
}

// input runs the NAT nodes on the input arc and reports whether the packet
// goes on.
func (t *transit) input() bool {
	switch {
	case t.has(t.InIndex, arcInput, nodeClassify):
		if t.classify() {
			return t.out2in()
		}
		return t.in2out()
	case t.has(t.InIndex, arcInput, nodeOut2in):
		return t.out2in()
	case t.has(t.InIndex, arcInput, nodeIn2out):
		return t.in2out()
	}
	return true
}

// drop loses the packet.
func (t *transit) drop(reason string) bool {
	t.lost = reason
	return false
}

// key is the packet's key in the flow table, with the given FIB.
func (t *transit) key(fib uint32) flowKey {
	return flowKey{src: t.Src, dst: t.Dst, fib: fib, proto: t.Proto}
}

// reverse is the key of the opposite direction.
func (t *transit) reverse(fib uint32) flowKey {
	return flowKey{src: t.Dst, dst: t.Src, fib: fib, proto: t.Proto}
}

// initial reports whether a packet may open a session.
func (t *transit) initial() bool {
	return t.Proto != ProtoTCP || (t.Flags&SYN != 0 && t.Flags&ACK == 0)
}

// knownProto reports whether NAT tells the sessions of a protocol apart by
// port.
func knownProto(proto uint8) bool {
	return proto == ProtoTCP || proto == ProtoUDP || proto == ProtoICMP
}

// translate applies one direction of a session to the packet.
func (t *transit) translate(s *session, f *flow, dir int) {
	if t.out == none && f.fib != none {
		t.txFIB = f.fib
	}
	t.Src, t.Dst = f.src, f.dst
	if t.Proto == ProtoTCP {
		t.nat.track(s, t.Flags, dir)
	}
	t.nat.touch(s, t.Length)
	t.used = s
}

// live returns the session of a flow key. A session that timed out, or whose
// VRF was lost, is ended instead.
func (t *transit) live(key flowKey) *session {
	s := t.nat.flows[key]
	if s == nil {
		return nil
	}
	if (s.group != nil && s.group.expired) || t.nat.timedOut(s) {
		t.nat.freeSession(s)
		return nil
	}
	return s
}

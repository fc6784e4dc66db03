package nat

import (
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Transit is a packet on its way through the NAT nodes of the graph.
type Transit struct {
	*vnet.Network
	vnet.Packet
	nat   *Plugin
	rxFIB uint32
	txFIB uint32 // lookup table chosen by a translation, none otherwise
	out   uint32 // output interface while in the output feature, none before
	Used  *Session
	Fresh bool
	Lost  string // reason of the drop
}

// Begin lets a packet enter through an interface. NAT has no nodes on the arcs of ip6.
func (n *Plugin) Begin(p vnet.Packet, in *vnet.Interface) *Transit {
	return &Transit{Network: n.net, Packet: p, nat: n, rxFIB: in.FIB[vnet.Family(p.Src.Addr())], txFIB: vnet.None, out: vnet.None}
}

// Table is the FIB in which the packet is looked up.
func (t *Transit) Table() uint32 {
	if t.txFIB != vnet.None {
		return t.txFIB
	}
	return t.rxFIB
}

// Input runs the NAT nodes on the input arc and reports whether the packet goes on.
func (t *Transit) Input() bool {
	switch {
	case !t.Src.Addr().Is4():
		return true
	case t.Has(t.InIndex, ArcInput, NodeClassify):
		if t.classify() {
			return t.out2in()
		}
		return t.in2out()
	case t.Has(t.InIndex, ArcInput, NodeOut2in):
		return t.out2in()
	case t.Has(t.InIndex, ArcInput, NodeIn2out):
		return t.in2out()
	}
	return true
}

// Output runs the NAT node on the output arc of an interface and reports whether the packet goes
// on.
func (t *Transit) Output(swIf uint32) bool {
	if !t.Src.Addr().Is4() || !t.Has(swIf, ArcOutput, NodeOutput) {
		return true
	}
	t.out = swIf
	return t.in2out()
}

// Drop loses the packet.
func (t *Transit) Drop(reason string) bool {
	t.Lost = reason
	return false
}

// key is the packet's key in the flow table, with the given FIB.
func (t *Transit) key(fib uint32) FlowKey {
	return FlowKey{Src: t.Src, Dst: t.Dst, FIB: fib, Proto: t.Proto}
}

// reverse is the key of the opposite direction.
func (t *Transit) reverse(fib uint32) FlowKey {
	return FlowKey{Src: t.Dst, Dst: t.Src, FIB: fib, Proto: t.Proto}
}

// initial reports whether a packet may open a session.
func (t *Transit) initial() bool {
	return t.Proto != vnet.ProtoTCP || (t.Flags&vnet.SYN != 0 && t.Flags&vnet.ACK == 0)
}

// translate applies one direction of a session to the packet.
func (t *Transit) translate(s *Session, f *flow, dir int) {
	if t.out == vnet.None && f.fib != vnet.None {
		t.txFIB = f.fib
	}
	t.Src, t.Dst = f.src, f.dst
	if t.Proto == vnet.ProtoTCP {
		t.nat.track(s, t.Flags, dir)
	}
	t.nat.touch(s, t.Size())
	t.Used = s
}

// live returns the session of a flow key. A session that timed out, or whose VRF was lost, is ended
// instead.
func (t *Transit) live(key FlowKey) *Session {
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

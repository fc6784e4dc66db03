package model

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/fib"
	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Send runs a packet through the graph.
func (m *Model) Send(p vnet.Packet, v *vnet.Verdict) {
	in := m.Interface(p.InIndex)
	if p.In != "" {
		in = nil
		if index, ok := m.ByName[p.In]; ok {
			in = m.Interface(index)
		}
	}
	switch {
	case in == nil:
		v.Reason = vnet.ErrNoInterface.Error()
		return
	case !in.AdminUp:
		v.Reason = "input interface down"
		return
	case !p.Src.IsValid() || !p.Dst.IsValid() || p.Src.Addr().Is4() != p.Dst.Addr().Is4():
		v.Reason = "not a packet of one address family"
		return
	}
	p.InIndex = in.Index
	t := m.NAT.Begin(p, in)
	unknown := p.Src.Addr().Is4() && !vnet.KnownProto(p.Proto)
	if unknown {
		// NAT reads no ports from these protocols.
		t.Src, t.Dst = netip.AddrPortFrom(p.Src.Addr(), 0), netip.AddrPortFrom(p.Dst.Addr(), 0)
	}
	m.run(t, v)
	v.Src, v.Dst = t.Src, t.Dst
	if unknown {
		v.Src = netip.AddrPortFrom(t.Src.Addr(), p.Src.Port())
		v.Dst = netip.AddrPortFrom(t.Dst.Addr(), p.Dst.Port())
	}
	if t.Used != nil {
		v.Session, v.NewSession = t.Used.ID, t.Fresh
	}
	switch {
	case m.Cause != "":
		v.Action, v.Reason = vnet.Died, m.Cause
	case t.Lost != "":
		v.Action, v.Reason = vnet.Dropped, t.Lost
	}
}

// run is the graph: input features, lookup, output features, transmission.
func (m *Model) run(t *nat.Transit, v *vnet.Verdict) {
	m.CNAT.Input(&t.Packet)
	if !m.ACLs.Permits(m.ACLs.Of(t.InIndex).In, &t.Packet) {
		t.Drop("denied by input ACL")
		return
	}
	if !t.Input() {
		return
	}
	h := m.Forward(t.Table(), t.Dst.Addr())
	switch h.Kind {
	case fib.Local:
		v.Action, v.Reason = vnet.Local, h.Reason
		if m.SessionLayer && (t.Proto == vnet.ProtoTCP || t.Proto == vnet.ProtoUDP) {
			m.refuse(t, v, h.Table)
		}
		return
	case fib.Unreach, fib.Prohibit:
		v.Action, v.Reason = vnet.Rejected, h.Reason
		return
	case fib.NextHop:
	default:
		t.Drop(h.Reason)
		return
	}
	if !t.Output(h.SwIf) {
		return
	}
	if !m.ACLs.Permits(m.ACLs.Of(h.SwIf).Out, &t.Packet) {
		t.Drop("denied by output ACL")
		return
	}
	if !m.CNAT.Output(&t.Packet, h.SwIf) {
		t.Drop("cnat is out of ports")
		return
	}
	v.Action, v.OutIndex = vnet.Delivered, h.SwIf
	v.Out = m.Interface(h.SwIf).Name
}

// refuse answers a packet to VPP itself, which was found in a table: a TCP reset, or port
// unreachable. The answer is looked up in the table of the interface; a reset of IPv6 by the number
// of that interface's IPv4 table.
func (m *Model) refuse(t *nat.Transit, v *vnet.Verdict, table uint32) {
	src := t.Src.Addr()
	back := m.Interface(t.InIndex).FIB[vnet.Family(src)]
	if t.Proto == vnet.ProtoTCP {
		back = m.Interface(t.InIndex).FIB[0]
	}
	switch {
	case !m.Known(table, src):
		t.Drop("source lookup miss")
	case m.Forward(back, src).Kind != fib.NextHop:
		t.Drop("no route for the answer")
	default:
		v.Action, v.Reason = vnet.Rejected, "nothing listens there"
	}
}

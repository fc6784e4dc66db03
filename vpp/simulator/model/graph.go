package model

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/simulator/cnat"
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
	case vnet.Receive:
		v.Action, v.Reason = vnet.Local, h.Reason
		if m.SessionLayer && (t.Proto == vnet.ProtoTCP || t.Proto == vnet.ProtoUDP) {
			m.refuse(t, v, h.Table)
		}
		return
	case vnet.Unreach, vnet.Prohibit:
		v.Action, v.Reason = vnet.Rejected, h.Reason
		return
	case vnet.NextHop:
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
	case m.Forward(back, src).Kind != vnet.NextHop:
		t.Drop("no route for the answer")
	default:
		v.Action, v.Reason = vnet.Rejected, "nothing listens there"
	}
}

// Sizes of the main heap, in bytes: the whole as documented for VPP, and what VPP needs without
// rows.
const (
	heapSize = 1 << 30
	heapBase = 66 << 20
)

// mainHeap is the memory of VPP, which dies when it is used up.
type mainHeap struct {
	size  int
	used  int // when the rows were last walked over
	grown int // at most, since then
}

// Grow notes that VPP needs bytes for a row. VPP dies when there are none left.
func (m *Model) Grow(bytes int) {
	m.heap.grown += bytes
	if m.heap.used+m.heap.grown <= m.heap.size {
		return
	}
	if m.heap.used, m.heap.grown = m.rowBytes(), 0; m.heap.used > m.heap.size {
		m.Die("main heap exhausted")
	}
}

// rowBytes is what VPP needs now.
func (m *Model) rowBytes() int {
	bytes := heapBase
	for _, mp := range m.NAT.Mappings.All {
		// Cost counts four entries for a backend
		bytes += heap.NAT44().Of((mp.Locals.Len()+3)/4, false)
	}
	addresses := map[netip.Addr]bool{}
	for _, t := range m.CNAT.Translations.All {
		bytes += heap.CNAT().Of(len(t.Paths), t.LBType != 0)
		addresses[t.VIP.Addr] = true
		for _, p := range t.Paths {
			addresses[p.Dst.Addr] = true
		}
	}
	return bytes + len(addresses)*heap.CNAT().Address
}

// TranslationBytes is what VPP needs for a translation at most.
func TranslationBytes(t *cnat.Translation) int {
	return heap.CNAT().Of(len(t.Paths), t.LBType != 0) + (1+len(t.Paths))*heap.CNAT().Address
}

// HeapUsage is the size of the main heap, and how much of it is in use, in bytes.
func (m *Model) HeapUsage() (total, used int) {
	m.heap.used, m.heap.grown = m.rowBytes(), 0
	return m.heap.size, min(m.heap.used, m.heap.size)
}

// DescribeHeap is the output of "show memory main-heap".
func (m *Model) DescribeHeap() string {
	total, used := m.HeapUsage()
	mib := func(n int) string { return fmt.Sprintf("%.2fM", float64(n)/(1<<20)) }
	return fmt.Sprintf("Thread 0 vpp_main\n    total: %s, used: %s, free: %s, trimmable: 0\n",
		mib(total), mib(used), mib(total-used))
}

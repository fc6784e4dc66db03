package simulator

import (
	"github.com/troupe-vpp/troupe/vpp/simulator/model"
	"github.com/troupe-vpp/troupe/vpp/simulator/packet"
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
)

// The vocabulary of the packet oracle.
type (
	// Packet is one packet that enters VPP through an interface.
	Packet = packet.Packet
	// Verdict is the answer of the packet oracle.
	Verdict = packet.Verdict
	// Action is the fate of a packet.
	Action = packet.Action
	// TCPFlags are TCP header flags.
	TCPFlags = packet.TCPFlags
)

// IP protocol numbers that the packet oracle understands.
const (
	ProtoICMP  = packet.ProtoICMP
	ProtoTCP   = packet.ProtoTCP
	ProtoUDP   = packet.ProtoUDP
	ProtoICMP6 = packet.ProtoICMP6
	ProtoSCTP  = packet.ProtoSCTP
)

// The TCP flags that NAT looks at.
const (
	FIN = packet.FIN
	SYN = packet.SYN
	RST = packet.RST
	ACK = packet.ACK
)

// The fates of a packet.
const (
	Delivered = packet.Delivered
	Local     = packet.Local
	Dropped   = packet.Dropped
	Rejected  = packet.Rejected
	Died      = packet.Died
)

// Send passes a packet through VPP and returns its fate. Sessions that it creates stay until they
// are ended or time out. Neighbours count as resolved, and the TTL is large. A crashed VPP drops
// everything, and so does a lost one without workers.
func (v *VPP) Send(p Packet) Verdict {
	if p.Proto == ProtoTCP && p.Flags == 0 {
		p.Flags = SYN
	}
	verdict := Verdict{Packet: p, Src: p.Src, Dst: p.Dst, OutIndex: pool.None, Action: Dropped}
	err := v.with(func(m *model.Model) error {
		if v.lost && m.Workers == 0 {
			return ErrLost
		}
		m.Send(p, &verdict)
		return nil
	})
	if err != nil {
		verdict.Reason = err.Error()
	}
	return verdict
}

// Reply sends the answer to a delivered packet: it enters where the packet left, with the endpoints
// swapped, and shows how the translation is undone. The answer to a SYN is SYN+ACK, to any other
// TCP packet ACK, to an echo request an echo reply.
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
	case p.Proto == ProtoICMP, p.Proto == ProtoICMP6:
		p.EchoReply = !to.Packet.EchoReply
	}
	if to.Action != Delivered {
		return Verdict{
			Action: Dropped, Reason: "nothing to reply to: the packet was " + to.Action.String(),
			Packet: p, Src: p.Src, Dst: p.Dst, OutIndex: pool.None,
		}
	}
	return v.Send(p)
}

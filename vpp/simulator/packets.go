package simulator

import (
	"fmt"

	"github.com/troupe-vpp/troupe/vpp/simulator/model"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// The vocabulary of the packet oracle.
type (
	// Packet is one packet that enters VPP through an interface.
	Packet = vnet.Packet
	// Verdict is the answer of the packet oracle.
	Verdict = vnet.Verdict
	// Action is the fate of a packet.
	Action = vnet.Action
	// TCPFlags are TCP header flags.
	TCPFlags = vnet.TCPFlags
)

// IP protocol numbers that the packet oracle understands.
const (
	ProtoICMP  = vnet.ProtoICMP
	ProtoTCP   = vnet.ProtoTCP
	ProtoUDP   = vnet.ProtoUDP
	ProtoICMP6 = vnet.ProtoICMP6
	ProtoSCTP  = vnet.ProtoSCTP
)

// The TCP flags that NAT looks at.
const (
	FIN = vnet.FIN
	SYN = vnet.SYN
	RST = vnet.RST
	ACK = vnet.ACK
)

// The fates of a packet.
const (
	Delivered = vnet.Delivered
	Local     = vnet.Local
	Dropped   = vnet.Dropped
	Rejected  = vnet.Rejected
	Died      = vnet.Died
)

// Send passes a packet through VPP and returns its fate. Sessions that it creates stay until they
// are ended or time out. Neighbours count as resolved, and the TTL is large. A crashed VPP drops
// everything, and so does a lost one without workers.
func (v *VPP) Send(p Packet) Verdict {
	if p.Proto == ProtoTCP && p.Flags == 0 {
		p.Flags = SYN
	}
	verdict := Verdict{Packet: p, Src: p.Src, Dst: p.Dst, OutIndex: vnet.None, Action: Dropped}
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
			Packet: p, Src: p.Src, Dst: p.Dst, OutIndex: vnet.None,
		}
	}
	return v.Send(p)
}

// Connection is a client's connection through the simulated VPP: a TCP connection after its
// handshake, or an exchange of UDP packets. It holds the endpoints on both sides and sends a packet
// and its answer whenever it is asked, so that a test can keep it open over a change of the
// configuration.
type Connection struct {
	vpp    *VPP
	packet Packet
	opened Verdict
}

// Dial opens a connection with the given first packet: request, answer and, for TCP, the final ACK
// of the handshake. It fails when any of them does not arrive.
func (v *VPP) Dial(first Packet) (*Connection, error) {
	if first.Proto == ProtoTCP {
		first.Flags = SYN
	}
	verdict := v.Send(first)
	c := &Connection{vpp: v, packet: first, opened: verdict}
	if err := c.answered(verdict); err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if first.Proto == ProtoTCP {
		if err := c.Exchange(); err != nil {
			return nil, fmt.Errorf("dial: %w", err)
		}
	}
	return c, nil
}

// Opened returns the verdict on the first packet: where the connection leads.
func (c *Connection) Opened() Verdict { return c.opened }

// Exchange sends one more packet and its answer over the connection. The error says which of the
// two was lost or reached another endpoint.
func (c *Connection) Exchange() error {
	return c.ExchangeFlags(ACK)
}

// ExchangeFlags is Exchange with other TCP flags, for example FIN|ACK.
func (c *Connection) ExchangeFlags(flags TCPFlags) error {
	p := c.packet
	if p.Proto == ProtoTCP {
		p.Flags = flags
	}
	return c.answered(c.vpp.Send(p))
}

// answered sends the answer to a packet and checks that both arrived where they did before.
func (c *Connection) answered(v Verdict) error {
	if v.Action != Delivered {
		return fmt.Errorf("request: %s", v)
	}
	if v.Dst != c.opened.Dst {
		return fmt.Errorf("request: %s, but the connection is with %s", v, c.opened.Dst)
	}
	back := c.vpp.Reply(v)
	if back.Action != Delivered {
		return fmt.Errorf("answer: %s", back)
	}
	if back.Src != c.packet.Dst || back.Dst != c.packet.Src {
		return fmt.Errorf("answer: %s, but the client expects %s > %s", back, c.packet.Dst, c.packet.Src)
	}
	return nil
}

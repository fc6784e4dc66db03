package simulator

import "fmt"

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

package vnet

import (
	"fmt"
	"net/netip"
	"strings"
)

// IP protocol numbers that the packet oracle understands.
const (
	ProtoICMP  uint8 = 1
	ProtoTCP   uint8 = 6
	ProtoUDP   uint8 = 17
	ProtoICMP6 uint8 = 58
	ProtoSCTP  uint8 = 132
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

// Packet is one packet that enters VPP through an interface.
type Packet struct {
	// In is the name of the interface through which the packet comes. If it is empty, InIndex
	// counts.
	In string

	// InIndex is the sw_if_index of the interface; used when In is empty.
	InIndex uint32

	// Src and Dst are the endpoints. For ICMP echo both ports are the identifier; for protocols
	// without ports they are 0.
	Src, Dst netip.AddrPort

	// Proto is the IP protocol number.
	Proto uint8

	// Flags are the TCP flags. A TCP packet without flags is a SYN.
	Flags TCPFlags

	// Fragment says that the packet is a later fragment, which has no ports. Src and Dst have
	// the ports of the first fragment, for NAT, which reassembles.
	Fragment bool

	// EchoReply makes an ICMP packet an echo reply instead of a request.
	EchoReply bool

	// ID is carried through unchanged, for the use of the caller.
	ID uint64

	// Length counts for the byte counters of the session only; 0 = Size.
	Length int
}

// Sizes of TCP packets without data as Linux sends them, with the header of IP. The endpoints do
// without window scaling, so that the average of a half-open connection is no size of a SYN: real
// endpoints send their SYN again, simulated ones do not.
const (
	sizeSYN    = 60
	sizeSYNACK = 56
	sizeRST    = 40
	sizeACK    = 52
)

// Size is the length of the packet, of TCP without data where Length is 0.
func (p *Packet) Size() int {
	switch {
	case p.Length != 0 || p.Proto != ProtoTCP:
		return p.Length
	case p.Flags == 0 || p.Flags&(SYN|ACK) == SYN:
		return sizeSYN
	case p.Flags&SYN != 0:
		return sizeSYNACK
	case p.Flags&RST != 0:
		return sizeRST
	default:
		return sizeACK
	}
}

// Action is the fate of a packet.
type Action uint8

// The fates of a packet.
const (
	// Delivered: it left through an interface.
	Delivered Action = iota
	// Local: its destination is VPP itself. UDP would be answered with port unreachable, TCP
	// with silence. With the session layer both are Rejected.
	Local
	// Dropped: it vanished.
	Dropped
	// Rejected: it was answered with an ICMP error or, by the session layer, with a TCP reset.
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
	// Action is the fate of the packet.
	Action Action

	// Reason is the cause of every action except Delivered.
	Reason string

	// Out and OutIndex are the interface through which the packet left.
	Out      string
	OutIndex uint32

	// Src and Dst are the endpoints as the packet left.
	Src, Dst netip.AddrPort

	// Session is the id of the NAT session that translated the packet last; 0 if none did. Ids
	// are never reused within an incarnation.
	Session uint64

	// NewSession says that the packet created that session.
	NewSession bool

	// Packet is what was sent.
	Packet Packet
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

// KnownProto reports whether NAT distinguishes the sessions of a protocol by port.
func KnownProto(proto uint8) bool {
	return proto == ProtoTCP || proto == ProtoUDP || proto == ProtoICMP
}

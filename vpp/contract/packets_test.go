package contract

import (
	"fmt"
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TCP flags of a packet, as on the wire.
const (
	syn = 0x02
	ack = 0x10
)

// packet is an IP packet. Protocols other than TCP and UDP have the ports 0.
type packet struct {
	// port is the interface through which it enters VPP, or leaves it.
	port interface_types.InterfaceIndex
	// id is its payload, by which it is known again.
	id       uint64
	src, dst netip.AddrPort
	proto    uint8
	flags    byte
	// fragment is 0 for a whole packet, 1 for the first fragment of one, 2 for the second,
	// which has no ports on the wire.
	fragment uint8
}

func (p packet) String() string {
	return fmt.Sprintf("%s > %s/%d flags %#x", p.src, p.dst, p.proto, p.flags)
}

// traffic are interfaces of VPP without a neighbour on the link, and the hosts behind them.
type traffic interface {
	// port creates an interface for packets of IPv4, or of IPv6, not yet up.
	port(t testing.TB, ip6 bool) interface_types.InterfaceIndex
	// exchange sends packets into VPP and returns those that left it through any of the
	// interfaces, by their ids, when all are through. ICMP errors of VPP itself are not among
	// them.
	exchange(t testing.TB, packets []packet) map[uint64]packet
}

// simulatedTraffic uses the packet oracle of the simulator.
type simulatedTraffic struct {
	v   *rig
	vpp *simulator.VPP
}

func (s *simulated) Traffic(_ testing.TB, v *rig) traffic { return &simulatedTraffic{v: v, vpp: s.vpp} }

func (w *simulatedTraffic) port(t testing.TB, _ bool) interface_types.InterfaceIndex {
	t.Helper()
	return loopback(t, w.v)
}

func (w *simulatedTraffic) exchange(t testing.TB, packets []packet) map[uint64]packet {
	t.Helper()
	out := map[uint64]packet{}
	for _, p := range packets {
		sent := simulator.Packet{InIndex: uint32(p.port), Src: p.src, Dst: p.dst, Proto: p.proto, ID: p.id, Length: 48, Fragment: p.fragment == 2}
		sent.Flags = simulator.TCPFlags(p.flags) & (simulator.FIN | simulator.SYN | simulator.RST | simulator.ACK)
		verdict := w.vpp.Send(sent)
		switch verdict.Action {
		case simulator.Delivered:
			p.port, p.src, p.dst = interface_types.InterfaceIndex(verdict.OutIndex), verdict.Src, verdict.Dst
			out[p.id] = p
		case simulator.Died:
			t.Fatalf("the simulator died: %s", verdict)
		}
	}
	return out
}

// protoFlags are the flags of a packet of an open flow.
func protoFlags(proto, flags byte) byte {
	if proto == rule.TCP {
		return flags
	}
	return 0
}

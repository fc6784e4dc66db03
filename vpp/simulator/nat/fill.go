package nat

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/packet"
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
)

// FillSessions puts up to count idle UDP sessions of a foreign service into the session table and
// returns how many there was room for.
func (n *Plugin) FillSessions(count int) (added int) {
	vip := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, 0, 1}), 9)
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, 0, 2}), 9)
	for i := range count {
		client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 19, byte(i >> 16), byte(i >> 8)}), uint16(1024+i&0xff))
		if n.full(0) {
			break
		}
		t := &Transit{Network: n.net, nat: n, Packet: packet.Packet{Src: client, Dst: vip, Proto: packet.ProtoUDP}, txFIB: pool.None, out: pool.None}
		s := t.serviceSession(match{mp: &Mapping{Flags: MapOut2inOnly | MapLB, External: vip}, at: to})
		if s == nil {
			break
		}
		n.touch(s, 0)
		added++
	}
	return added
}

package chaos

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// attempts is how many connections a client makes to one frontend.
const attempts = 3

// wrongPackets sends packets to every frontend that there may be, from both kinds of clients, and compares where they arrive with the model (I1).
// It asks VPP's packets alone: neither a row nor an access list or a route is looked at.
func (w *world) wrongPackets() (wrong []string) {
	want := model(w.cluster, w.foreign)
	for _, at := range slices.SortedFunc(maps.Keys(want), netip.AddrPort.Compare) {
		e := want[at]
		for _, client := range []struct {
			from, in string
			src      netip.Addr
			to       []netip.Addr
		}{
			{"outside", "uplink0", netip.MustParseAddr("198.51.100.9"), e.remote},
			{"a pod", "pod1", podIP(1, 1), e.local},
		} {
			for range attempts {
				w.probes++
				src := netip.AddrPortFrom(client.src, uint16(20000+w.probes%20000))
				got := w.vpp.VPP.Send(simulator.Packet{In: client.in, Src: src, Dst: at, Proto: protoTCP})
				if served := got.Action == simulator.Delivered && got.Dst != at; served && slices.Contains(client.to, got.Dst.Addr()) || !served && len(client.to) == 0 {
					continue
				}
				wrong = append(wrong, fmt.Sprintf("I1: from %s: %v, want one of %v", client.from, got, client.to))
			}
		}
	}
	return wrong
}

package chaos

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// attempts is the number of connections of a client to one frontend.
const attempts = 3

// client is an origin of packets.
type client struct {
	from, in string
	src      netip.Addr
}

func outsider() client { return client{"outside", uplink, netip.MustParseAddr("198.51.100.9")} }
func insider() client  { return client{"a pod", "pod1", podIP(1, 1)} }

// wrongPackets sends packets from both kinds of clients to every possible frontend, and compares
// their destinations with the model (I1). It reads no row, access list or route.
func (w *world) wrongPackets() (wrong []string) {
	want := model(w.cluster, w.externalWanted(), w.foreign)
	for _, at := range slices.SortedFunc(maps.Keys(want), netip.AddrPort.Compare) {
		e := want[at]
		for _, c := range []client{outsider(), insider()} {
			to := e.remote
			if c == insider() {
				to = e.local
			}
			for range attempts {
				got := w.probe(c, at)
				served := got.Action == simulator.Delivered && got.Dst != at
				if served && got.Src.Addr() == netip.MustParseAddr(nodeIP) {
					wrong = append(wrong, fmt.Sprintf("I1: from %s: %v, although SNAT is not for services", c.from, got))
				}
				if served && slices.Contains(to, got.Dst.Addr()) || !served && len(to) == 0 {
					continue
				}
				wrong = append(wrong, fmt.Sprintf("I1: from %s: %v, want one of %v", c.from, got, to))
			}
		}
	}
	for _, at := range refused(w.cluster, want, w.foreign) {
		for _, c := range []client{outsider(), insider()} {
			if got := w.probe(c, at); got.Action != simulator.Rejected {
				wrong = append(wrong, fmt.Sprintf("I1: from %s: %v, want a refusal", c.from, got))
			}
		}
	}
	return append(wrong, w.wrongEgress()...)
}

// probe sends the first packet of a new connection.
func (w *world) probe(c client, to frontend) simulator.Verdict {
	w.probes++
	return w.vpp.VPP.Send(simulator.Packet{In: c.in, Src: netip.AddrPortFrom(c.src, uint16(20000+w.probes%20000)), Dst: to, Proto: protoTCP})
}

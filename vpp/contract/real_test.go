package contract

import (
	"testing"

	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/vpp/realvpp"
)

// real is a process of VPP as a target.
type real struct{ *realvpp.Process }

func (r real) Traffic(t testing.TB, _ *rig) traffic {
	return realTraffic{realvpp.NewGenerator(t, r.Process)}
}

// realTraffic uses the packet generator of VPP.
type realTraffic struct{ generator *realvpp.Generator }

func (w realTraffic) port(t testing.TB, ip6 bool) interface_types.InterfaceIndex {
	t.Helper()
	return interface_types.InterfaceIndex(w.generator.Port(t, ip6))
}

func (w realTraffic) exchange(t testing.TB, packets []packet) map[uint64]packet {
	t.Helper()
	sent := make([]realvpp.Packet, len(packets))
	for i, p := range packets {
		sent[i] = realvpp.Packet{Port: uint32(p.port), ID: p.id, Src: p.src, Dst: p.dst, Proto: p.proto, Flags: p.flags, Fragment: p.fragment}
	}
	out := map[uint64]packet{}
	for id, p := range w.generator.Exchange(t, sent) {
		out[id] = packet{port: interface_types.InterfaceIndex(p.Port), id: p.ID, src: p.Src, dst: p.Dst, proto: p.Proto, flags: p.Flags}
	}
	return out
}

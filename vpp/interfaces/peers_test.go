package interfaces

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
)

func TestPeers(t *testing.T) {
	nodes := map[string]*messages.Node{
		"n1": {Name: "n1", PodCidrs: []string{"10.1.1.0/24"}},
		"n3": {Name: "n3", PodCidrs: []string{"fd00::/64", "10.1.3.9/24", "10.1.31.0/24"}},
		"n2": {Name: "n2", PodCidrs: []string{"10.1.2.0/24"}},
		"n4": {Name: "n4", PodCidrs: []string{"fd00::/64", "x"}},
		"n5": {Name: "n5", PodCidrs: []string{"10.1.5.7/32"}},
	}
	peers := Peers("n1", nodes)
	in := Input{Peers: peers}
	probes := map[netip.Addr]bool{}
	for _, a := range in.addresses() {
		probes[a] = true
	}
	raw := Raw{
		Interfaces: []RawInterface{{Index: 0, Name: "local0"}, up(1, "uplink0", "dpdk", "192.168.16.1/24"), up(2, "vxlan_tunnel0", "VXLAN")},
		Targets:    map[netip.Addr]Target{},
	}
	for text, target := range map[string]Target{
		// by default
		"10.1.2.1": {Prefix: netip.MustParsePrefix("0.0.0.0/0"), Interfaces: []uint32{1}},
		"10.1.3.1": {Prefix: netip.MustParsePrefix("10.1.0.0/16"), Interfaces: []uint32{1, 2}},
		// 9 went meanwhile
		"10.1.31.1": {Prefix: netip.MustParsePrefix("10.1.31.0/24"), Interfaces: []uint32{2, 9}},
		"10.1.5.7":  {},
	} {
		a := netip.MustParseAddr(text)
		if raw.Targets[a] = target; !probes[a] {
			t.Errorf("%s is not looked up", a)
		}
	}
	if len(probes) != len(raw.Targets) {
		t.Errorf("looked up is %v", probes)
	}
	want := []*messages.PeerNetwork{
		{Node: "n2", Network: "10.1.2.0/24", Interfaces: []string{"uplink0"}},
		{Node: "n3", Network: "10.1.3.0/24", Interfaces: []string{"uplink0", "vxlan_tunnel0"}},
		{Node: "n3", Network: "10.1.31.0/24", Interfaces: []string{"vxlan_tunnel0"}},
		{Node: "n4"},
		{Node: "n5", Network: "10.1.5.7/32"},
	}
	if d := cmp.Diff(want, Derive(raw, in).GetPeers(), protocmp.Transform()); d != "" {
		t.Error(d)
	}
}

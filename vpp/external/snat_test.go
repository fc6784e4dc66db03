package external

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
)

// place is a node with an uplink, another network card, a tunnel and a pod; its only peer is
// reached through the tunnel.
func place() *messages.InterfaceSet {
	return &messages.InterfaceSet{
		Complete: true, Uplink: proto.Uint32(1), NodeAddresses: []string{"192.168.16.1/24"},
		Interfaces: []*messages.Interface{
			{SwIfIndex: 0, Name: "local0", Kind: messages.InterfaceKind_INTERFACE_INTERNAL},
			{SwIfIndex: 1, Name: "uplink0", Kind: messages.InterfaceKind_INTERFACE_UPLINK, Addresses: []string{"192.168.16.1/24"}},
			{SwIfIndex: 2, Name: "nic1", Addresses: []string{"fd00::1/64", "10.9.0.1/24", "10.9.0.2/24"}},
			{SwIfIndex: 3, Name: "vxlan_tunnel0"},
			{SwIfIndex: 4, Name: "pod2", Kind: messages.InterfaceKind_INTERFACE_POD, Pods: []string{"ns/p2"}},
		},
		Peers: []*messages.PeerNetwork{{Node: "n2", Network: "10.1.2.0/24", Interfaces: []string{"vxlan_tunnel0"}}},
	}
}

// snatDocument is the relevant part of a Document of SNAT.
type snatDocument struct{ address, out, identities string }

func TestSNATDocument(t *testing.T) {
	hairpin := netip.MustParseAddr("10.1.1.254")
	on := SNAT{Enabled: true, OverlayPorts: []string{"4789/UDP"}}
	tests := []struct {
		name    string
		snat    func(*SNAT)
		place   func(*messages.InterfaceSet)
		hairpin netip.Addr
		want    snatDocument
		why     string
	}{
		{"the uplink", nil, nil, hairpin, snatDocument{"192.168.16.1", "uplink0", "192.168.16.1 192.168.16.1:4789/UDP 10.1.1.254"}, ""},
		{"no hairpin address", nil, nil, netip.Addr{}, snatDocument{"192.168.16.1", "uplink0", "192.168.16.1 192.168.16.1:4789/UDP"}, ""},
		{"another overlay", func(s *SNAT) { s.OverlayPorts = []string{"6081/UDP", "8472/UDP"} }, nil, hairpin, snatDocument{"192.168.16.1", "uplink0", "192.168.16.1 192.168.16.1:6081/UDP 192.168.16.1:8472/UDP 10.1.1.254"}, ""},
		{"no overlay ports", func(s *SNAT) { s.OverlayPorts = nil }, nil, hairpin, snatDocument{"192.168.16.1", "uplink0", "192.168.16.1 10.1.1.254"}, ""},
		{
			"another address", func(s *SNAT) { s.Interface, s.Address, s.OverlayPorts = "nic1", netip.MustParseAddr("10.9.0.2"), nil }, nil, hairpin,
			snatDocument{"10.9.0.2", "nic1", "10.9.0.1 10.9.0.2 10.1.1.254"},
			"",
		},
		{
			"another interface, every address", func(s *SNAT) { s.Interface = "nic1" }, nil, hairpin,
			snatDocument{"10.9.0.1", "nic1", "10.9.0.1 10.9.0.1:4789/UDP 10.9.0.2 10.9.0.2:4789/UDP 10.1.1.254"},
			"",
		},
		{"another interface needs no uplink", func(s *SNAT) { s.Interface = "nic1"; s.OverlayPorts = nil }, func(p *messages.InterfaceSet) { p.Uplink = nil }, hairpin, snatDocument{"10.9.0.1", "nic1", "10.9.0.1 10.9.0.2 10.1.1.254"}, ""},
		{"borrowed address", nil, func(p *messages.InterfaceSet) { p.Interfaces[1].Addresses = nil }, hairpin, snatDocument{"192.168.16.1", "uplink0", "192.168.16.1 192.168.16.1:4789/UDP 10.1.1.254"}, ""},
		{"no peers", nil, func(p *messages.InterfaceSet) { p.Peers = nil }, hairpin, snatDocument{"192.168.16.1", "uplink0", "192.168.16.1 192.168.16.1:4789/UDP 10.1.1.254"}, ""},
		{"peer without a route", nil, func(p *messages.InterfaceSet) { p.Peers[0].Interfaces = nil }, hairpin, snatDocument{"192.168.16.1", "uplink0", "192.168.16.1 192.168.16.1:4789/UDP 10.1.1.254"}, ""},
		{
			"un-encapsulated, but elsewhere", func(s *SNAT) { s.Interface, s.OverlayPorts = "nic1", nil }, func(p *messages.InterfaceSet) { p.Peers[0].Interfaces = []string{"uplink0"} }, hairpin,
			snatDocument{"10.9.0.1", "nic1", "10.9.0.1 10.9.0.2 10.1.1.254"},
			"",
		},
		{"off", func(s *SNAT) { s.Enabled = false }, func(p *messages.InterfaceSet) { p.Uplink = nil }, hairpin, snatDocument{}, ""},

		{"no uplink", nil, func(p *messages.InterfaceSet) { p.Uplink = nil }, hairpin, snatDocument{}, "there is no uplink"},
		{"no address", nil, func(p *messages.InterfaceSet) { p.NodeAddresses = []string{"fd00::1/64"} }, hairpin, snatDocument{}, "interface uplink0 has no IPv4 address"},
		{"no such interface", func(s *SNAT) { s.Interface = "nic7" }, nil, hairpin, snatDocument{}, "VPP has no interface nic7"},
		{"interface of a pod", func(s *SNAT) { s.Interface = "pod2" }, nil, hairpin, snatDocument{}, "interface pod2 leads to pods"},
		{"internal interface", func(s *SNAT) { s.Interface = "local0" }, nil, hairpin, snatDocument{}, "interface local0 leads nowhere"},
		{"pods behind the uplink", nil, func(p *messages.InterfaceSet) { p.Interfaces[1].Pods = []string{"ns/p"} }, hairpin, snatDocument{}, "pods of this node are behind uplink0, for example ns/p"},
		{"unknown address", func(s *SNAT) { s.Address = netip.MustParseAddr("203.0.113.9") }, nil, hairpin, snatDocument{}, "203.0.113.9 is no address of interface uplink0"},
		{"hairpin address", nil, nil, netip.MustParseAddr("192.168.16.1"), snatDocument{}, "192.168.16.1 is the NAT loopback address"},
		{
			"configured hairpin address", func(s *SNAT) { s.Interface, s.Address = "nic1", netip.MustParseAddr("10.9.0.2") }, nil, netip.MustParseAddr("10.9.0.2"),
			snatDocument{},
			"10.9.0.2 is the NAT loopback address",
		},
		{"un-encapsulated", nil, func(p *messages.InterfaceSet) { p.Peers[0].Interfaces = []string{"uplink0"} }, hairpin, snatDocument{}, "leave through uplink0 without an overlay, and would be translated: 10.1.2.0/24 of n2"},
		{"one of two paths", nil, func(p *messages.InterfaceSet) { p.Peers[0].Interfaces = []string{"uplink0", "vxlan_tunnel0"} }, hairpin, snatDocument{}, "without an overlay"},
		{"many of them", nil, func(p *messages.InterfaceSet) {
			for _, n := range []string{"a", "b", "c", "d"} {
				p.Peers = append(p.Peers, &messages.PeerNetwork{Node: n, Network: "10.1.3.0/24", Interfaces: []string{"uplink0"}})
			}
		}, hairpin, snatDocument{}, "10.1.3.0/24 of a, 10.1.3.0/24 of b, 10.1.3.0/24 of c and 1 more"},
		{"unknown networks", nil, func(p *messages.InterfaceSet) { p.Peers = append(p.Peers, &messages.PeerNetwork{Node: "n3"}) }, hairpin, snatDocument{}, "the pod networks of node n3 are not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, p := on, place()
			if tt.snat != nil {
				tt.snat(&s)
			}
			if tt.place != nil {
				tt.place(p)
			}
			before := proto.Clone(p)
			doc, err := s.Document(p, tt.hairpin)
			if !proto.Equal(before, p) {
				t.Error("its argument was changed")
			}
			if (tt.why == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.why) {
				t.Fatalf("refused: %v, want %q", err, tt.why)
			}
			if d := cmp.Diff(tt.want, taken(t, doc), cmp.AllowUnexported(snatDocument{})); d != "" {
				t.Error(d)
			}
		})
	}
}

// taken is a document that makes a layer beneath all others, in short.
func taken(t *testing.T, doc *Document) snatDocument {
	t.Helper()
	if doc == nil {
		return snatDocument{}
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := Decode(data, SourceSNAT)
	if err != nil || layer.Priority >= 0 {
		t.Fatalf("%s: %+v, %v", data, layer, err)
	}
	return snatDocument{strings.Join(doc.NATAddresses, " "), doc.Interfaces[0].Name, strings.Join(doc.IdentityMappings, " ")}
}

package agent

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// endpoint is a backend at port 8080.
func endpoint(address string) *messages.Backend {
	return &messages.Backend{Address: address, Port: 8080}
}

// frontend is a row of TCP that forwards; change may alter it.
func frontend(address string, port uint32, change func(f *messages.Frontend)) *messages.Frontend {
	f := &messages.Frontend{
		Address: address, Port: port, Protocol: messages.Protocol_TCP, Backends: []*messages.Backend{endpoint("10.1.1.3"), endpoint("10.1.1.4")},
		MasqueradeFrom: []string{service.ClassNode, service.ClassRemote},
	}
	if change != nil {
		change(f)
	}
	return f
}

// packetNode is a node with three services: web with all kinds of frontends, and two that claim one
// address.
func packetNode() *packetWorld {
	row := api.Row{Renderer: "nat44", VIP: "10.96.0.10:80/TCP", Locals: []api.Local{{Address: "10.1.1.3:8080", Weight: 3}, {Address: "10.1.1.9:8080", Weight: 1}, {Address: "0.0.0.1:1"}}}
	wanted := row
	wanted.Locals = []api.Local{{Address: "10.1.1.3:8080", Weight: 7}, {Address: "10.1.1.4:8080", Weight: 7}}
	external := func(f *messages.Frontend) { f.Kind = messages.FrontendKind_KIND_EXTERNAL_IP }
	return &packetWorld{
		views: []*messages.ServiceView{
			{Key: "shop/web", Created: 1, Frontends: []*messages.Frontend{
				frontend("10.96.0.10", 80, nil),
				frontend("10.96.0.10", 81, func(f *messages.Frontend) { f.Action, f.Backends = messages.Action_ACTION_REJECT, nil }),
				frontend("203.0.113.1", 80, func(f *messages.Frontend) { f.From = messages.ClientClass_FROM_LOCAL; external(f) }),
				frontend("203.0.113.1", 80, func(f *messages.Frontend) {
					f.From, f.Action, f.Backends = messages.ClientClass_FROM_REMOTE, messages.Action_ACTION_DROP, nil
					external(f)
				}),
				frontend("203.0.113.2", 80, func(f *messages.Frontend) { f.AllowSources = []string{"192.0.2.0/24"}; external(f) }),
			}},
			{Key: "shop/late", Created: 2, Frontends: []*messages.Frontend{frontend("203.0.113.1", 80, external)}},
		},
		node: &messages.NodeContext{Addresses: []string{"192.168.16.1"}},
		config: service.Config{
			ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		},
		details: map[string]*api.ServiceDetail{"shop/web": {Rendered: []api.Row{wanted}, InVPP: []api.Row{row}}},
	}
}

// TestExplainPacket: the source, the destination and the explanation of a packet.
func TestExplainPacket(t *testing.T) {
	for _, tt := range []struct{ source, destination, class, action, owner, because, vpp string }{
		{"10.1.1.9", "10.96.0.10:80/TCP", "pod", "forward", "shop/web", "it is a frontend of shop/web for clients: any", "other than wanted"},
		{"10.1.1.9", "10.96.0.10:81/TCP", "pod", "reject", "shop/web", "the service has no usable endpoint", "no row"},
		{"10.1.1.9", "10.96.0.10:80/UDP", "pod", "reject", "shop/web", "10.96.0.10 is the cluster IP of shop/web, which has no port 80/UDP there: 80/TCP, 81/TCP", "no row"},
		{"10.1.1.9", "10.96.0.99:80/TCP", "pod", "drop", "", "no service has 10.96.0.99, which is in the service CIDRs", "no row"},
		{"10.1.1.9", "198.51.100.1:80/TCP", "pod", "none", "", "no service has 198.51.100.1, and it is not in the service CIDRs: VPP routes the packet like any other", "no row"},
		{"192.168.16.1", "203.0.113.1:80/TCP", "node", "forward", "shop/web", "it is a frontend of shop/web for clients: local", "no row"},
		{"192.0.2.9", "203.0.113.1:80/TCP", "remote", "drop", "shop/web", "the traffic policy is Local and no endpoint is on this node", "no row"},
		{"198.51.100.9", "203.0.113.2:80/TCP", "remote", "drop", "shop/web", "the source is outside of the allowed networks 192.0.2.0/24", "no row"},
		{"192.0.2.9", "203.0.113.2:80/TCP", "remote", "forward", "shop/web", "it is a frontend of shop/web for clients: any", "no row"},
	} {
		p, err := parsePacket(tt.source, tt.destination)
		if err != nil {
			t.Fatal(err)
		}
		got := explainPacket(p, packetNode())
		if got.Class != tt.class || got.Action != tt.action || got.Service != tt.owner || strings.Join(got.Because, "; ") != tt.because || got.VPP != tt.vpp {
			t.Errorf("%s -> %s: %+v", tt.source, tt.destination, got)
		}
	}
}

// TestBackendsOfPacket: shares as Kubernetes asks and as VPP has them by weight. Pads get nothing,
// and the source of a hairpin is replaced.
func TestBackendsOfPacket(t *testing.T) {
	p, err := parsePacket("10.1.1.3", "10.96.0.10:80/TCP")
	if err != nil {
		t.Fatal(err)
	}
	want := []api.PacketBackend{
		{Address: "10.1.1.3:8080", Share: 0.5, ShareInVPP: 0.75, SourceReplaced: true},
		{Address: "10.1.1.4:8080", Share: 0.5},
		{Address: "10.1.1.9:8080", ShareInVPP: 0.25},
	}
	if diff := cmp.Diff(want, explainPacket(p, packetNode()).Backends); diff != "" {
		t.Error(diff)
	}
}

// TestOthersOfPacket: why a frontend with the same destination does not decide.
func TestOthersOfPacket(t *testing.T) {
	p, err := parsePacket("192.0.2.9", "203.0.113.1:80/TCP")
	if err != nil {
		t.Fatal(err)
	}
	want := []api.PacketOther{
		{Service: "shop/web", From: "local", Action: "forward", Why: "for clients: local; this one is remote"},
		{Service: "shop/late", From: "any", Action: "forward", Why: "shop/web has the address: its claim comes first"},
	}
	if diff := cmp.Diff(want, explainPacket(p, packetNode()).Others); diff != "" {
		t.Error(diff)
	}
	w := packetNode()
	w.config.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("fd00::/64")}
	want[0].Why = "for clients: local; this one is pod or remote"
	got := explainPacket(p, w)
	if diff := cmp.Diff(want, got.Others); diff != "" || got.Class != api.ClassUnknown || !strings.HasPrefix(got.Because[1], "no cluster CIDR is known") {
		t.Errorf("without a cluster CIDR: class %s because %q, others %s", got.Class, got.Because, diff)
	}
}

// TestParsePacket refuses a text that is not a packet, and names the expected form.
func TestParsePacket(t *testing.T) {
	for _, tt := range [][3]string{
		{"web", "10.96.0.1:80/TCP", `source "web" is not an address`},
		{"10.1.1.1", "10.96.0.1", `destination "10.96.0.1": expected ADDRESS:PORT/TCP, /UDP or /SCTP`},
		{"10.1.1.1", "10.96.0.1:80/ICMP", `destination "10.96.0.1:80/ICMP": expected ADDRESS:PORT/TCP, /UDP or /SCTP`},
		{"fd00::1", "10.96.0.1:80/TCP", "source fd00::1 and destination 10.96.0.1:80/TCP are of different address families"},
	} {
		if _, err := parsePacket(tt[0], tt[1]); err == nil || err.Error() != tt[2] {
			t.Errorf("%s %s: %v", tt[0], tt[1], err)
		}
	}
	if p, err := parsePacket("::ffff:10.1.1.1", "10.96.0.1:80/TCP"); err != nil || p.Source.String() != "10.1.1.1" {
		t.Errorf("%v, %v", p, err)
	}
}

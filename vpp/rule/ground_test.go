package rule

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// TestGround: the state of the cluster decides which claims are refused, and which addresses may be
// made unreachable.
func TestGround(t *testing.T) {
	begin := &messages.Begin{
		NodeAddresses: []string{"192.168.16.1", "192.168.16.2", "nonsense"}, PodNetworks: []string{"10.1.1.0/24", "10.1.2.0/24", "0.0.0.0/0"},
		Node: &messages.NodeContext{Addresses: []string{"172.30.1.1"}, Node: &messages.Node{PodCidrs: []string{"10.1.1.0/24"}}},
	}
	set := &messages.InterfaceSet{Listening: []string{"9100/TCP", "nonsense"}, Interfaces: []*messages.Interface{{Addresses: []string{"192.168.50.1/24"}}}}
	g := NewGround(begin, set, Ports{{22, TCP}: true})
	for _, c := range []struct {
		at       string
		rank     Rank
		refused  string
		routable bool
	}{
		{"203.0.113.7:80/TCP", OfExternalIP, "", true},
		{"203.0.113.7:22/TCP", OfExternalIP, "", true},
		{"10.1.2.9:80/TCP", OfExternalIP, "10.1.2.9 is in a pod network", false},
		{"10.1.2.9:80/TCP", OfLoadBalancer, "10.1.2.9 is in a pod network", false},
		{"10.1.2.9:80/TCP", OfClusterIP, "", false},
		{"192.168.16.2:80/TCP", OfExternalIP, "", false},
		{"192.168.16.2:22/TCP", OfExternalIP, "port 22/TCP of the nodes is reserved", false},
		{"192.168.16.2:22/UDP", OfExternalIP, "", false},
		{"192.168.50.1:22/TCP", OfLoadBalancer, "port 22/TCP of the nodes is reserved", false},
		{"192.168.16.1:9100/TCP", OfExternalIP, "a process of this node listens on port 9100/TCP", false},
		{"192.168.16.1:9100/UDP", OfExternalIP, "", false},
		{"192.168.16.1:9100/TCP", OfNodePort, "", false},
		{"203.0.113.7:9100/TCP", OfExternalIP, "", true},
		{"192.168.50.9:22/TCP", OfLoadBalancer, "", false}, // of a neighbour
		{"172.30.1.1:22/TCP", OfNodePort, "", false},
		{"10.1.3.9:80/TCP", OfExternalIP, "", true},
	} {
		key, err := ParseKey(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Refuses(key, c.rank); got != c.refused || g.Routable(key.Addr) != c.routable {
			t.Errorf("%s of rank %d: refused %q, routable %t; want %q, %t", c.at, c.rank, got, g.Routable(key.Addr), c.refused, c.routable)
		}
	}
	if !g.Equal(NewGround(begin, set, Ports{{22, TCP}: true})) || g.Equal(NewGround(begin, nil, Ports{{22, TCP}: true})) {
		t.Error("not compared by what they hold")
	}
	if why := (Ground{}).Refuses(Key{netip.MustParseAddr("10.1.2.9"), 80, TCP}, OfExternalIP); why != "" {
		t.Errorf("nothing is known, and yet %s", why)
	}
}

// TestDroppable: UDP is not dropped at addresses that others use, because of its fragments.
func TestDroppable(t *testing.T) {
	const clusterIP, nodePort = messages.FrontendKind_KIND_CLUSTER_IP, messages.FrontendKind_KIND_NODE_PORT
	const loadBalancer, externalIP = messages.FrontendKind_KIND_LOAD_BALANCER_IP, messages.FrontendKind_KIND_EXTERNAL_IP
	g := Ground{Hosts: map[netip.Addr]bool{netip.MustParseAddr("192.168.16.2"): true}}
	for _, c := range []struct {
		at      string
		kind    messages.FrontendKind
		sources []string
		want    bool
	}{
		{"10.96.0.1:53/UDP", clusterIP, nil, true},
		{"203.0.113.7:53/UDP", loadBalancer, nil, true},
		{"203.0.113.7:53/UDP", externalIP, nil, false},
		{"203.0.113.7:53/UDP", externalIP, []string{"10.0.0.0/8"}, true},
		{"192.168.16.2:53/UDP", externalIP, []string{"10.0.0.0/8"}, false},
		{"192.168.16.2:53/UDP", loadBalancer, nil, false},
		{"192.168.16.2:30053/UDP", nodePort, nil, false},
		{"172.30.1.1:30053/UDP", nodePort, nil, false},
		{"203.0.113.7:53/TCP", externalIP, nil, true},
		{"192.168.16.2:30053/TCP", nodePort, nil, true},
	} {
		key, err := ParseKey(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Droppable(key, &messages.Frontend{Kind: c.kind, AllowSources: c.sources}); got != c.want {
			t.Errorf("%s, %s: %t", c.at, c.kind, got)
		}
	}
}

func TestParsePort(t *testing.T) {
	for _, text := range []string{"22/TCP", "4789/UDP", "65535/TCP"} {
		if p, err := ParsePort(text); err != nil || p.String() != text {
			t.Errorf("%q is %s, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "22", "0/TCP", "65536/TCP", "22/SCTP", "22/tcp", "1.2.3.4:22/TCP"} {
		if p, err := ParsePort(text); err == nil {
			t.Errorf("%q is %s", text, p)
		}
	}
}

func TestRankOf(t *testing.T) {
	for kind, want := range map[messages.FrontendKind]Rank{
		messages.FrontendKind_KIND_CLUSTER_IP: OfClusterIP, messages.FrontendKind_KIND_NODE_PORT: OfNodePort,
		messages.FrontendKind_KIND_LOAD_BALANCER_IP: OfLoadBalancer, messages.FrontendKind_KIND_EXTERNAL_IP: OfExternalIP,
	} {
		if got := RankOf(&messages.Frontend{Kind: kind}); got != want {
			t.Errorf("%s has rank %d, want %d", kind, got, want)
		}
	}
	idle := &messages.Frontend{Kind: messages.FrontendKind_KIND_LOAD_BALANCER_IP, Action: messages.Action_ACTION_REJECT}
	if got := RankOf(idle); got != OfIdleLoadBalancer {
		t.Errorf("a load-balancer address without endpoints has rank %d", got)
	}
}

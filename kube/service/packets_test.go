package service_test

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// send returns the verdict of a table on a packet "src -> ip:port/PROTO" as text: the action, the
// backends and the owner. A "*" at a backend means that the source is masqueraded.
func send(t *testing.T, table *service.Table, source, destination string) string {
	t.Helper()
	where, protocol, err := service.ParseFrontendText(destination)
	if err != nil {
		t.Fatal(err)
	}
	v := table.Verdict(service.Packet{Source: netip.MustParseAddr(source), Destination: where, Protocol: protocol})
	text := v.Word()
	for _, b := range v.Backends {
		text += " " + service.BackendText(b)
		if v.Masquerades(b) {
			text += "*"
		}
	}
	if v.Owner != "" {
		text += " " + v.Owner
	}
	return text
}

func TestPackets(t *testing.T) {
	s := webService(nodePort(30080), loadBalancer("1.2.3.4"), externalLocal, ranges("203.0.113.0/24", "10.0.0.0/8"))
	view := service.Resolve(input(s, sliceOf("a", "10.0.0.1@n1", "10.0.0.2@n2")), nodeN1(), detect())
	table := service.NewTable([]*messages.ServiceView{view}, nodeN1(), detect())
	const (
		pod, host, remote = "10.0.0.9", "192.168.0.2", "203.0.113.9"
		vip               = "10.96.0.10:80/TCP"
		owner             = " default/web"
	)
	for _, test := range []struct{ name, source, destination, want string }{
		{"pod to cluster IP", pod, vip, "forward 10.0.0.1:8080 10.0.0.2:8080" + owner},
		{"process to cluster IP is masqueraded", host, vip, "forward 10.0.0.1:8080* 10.0.0.2:8080*" + owner},
		{"remote to cluster IP is masqueraded", remote, vip, "forward 10.0.0.1:8080* 10.0.0.2:8080*" + owner},
		{"an endpoint that reaches itself is masqueraded, to itself only", "10.0.0.1", vip, "forward 10.0.0.1:8080* 10.0.0.2:8080" + owner},
		{"remote to node port stays here, address kept", remote, "192.168.0.2:30080/TCP", "forward 10.0.0.1:8080" + owner},
		{"process to node port is short-circuited and masqueraded", host, "192.168.0.2:30080/TCP", "forward 10.0.0.1:8080* 10.0.0.2:8080*" + owner},
		{"pod to node port is short-circuited, address kept", pod, "192.168.0.2:30080/TCP", "forward 10.0.0.1:8080 10.0.0.2:8080" + owner},
		{"remote inside the source ranges", remote, "1.2.3.4:80/TCP", "forward 10.0.0.1:8080" + owner},
		{"remote outside the source ranges", "198.51.100.1", "1.2.3.4:80/TCP", "drop" + owner},
		{"process outside the source ranges", host, "1.2.3.4:80/TCP", "drop" + owner},
		{"other port of a cluster IP", pod, "10.96.0.10:81/TCP", "reject" + owner},
		{"other protocol of a cluster IP", pod, "10.96.0.10:80/UDP", "reject" + owner},
		{"service address that no service has", pod, "10.96.0.99:80/TCP", "drop"},
		{"other port of a node", pod, "192.168.0.2:22/TCP", "none"},
		{"other port of a load-balancer IP", pod, "1.2.3.4:81/TCP", "none"},
		{"somewhere else", pod, "9.9.9.9:53/UDP", "none"},
		{"IPv4 in IPv6 clothes", "::ffff:10.0.0.9", "[::ffff:10.96.0.10]:80/TCP", "forward 10.0.0.1:8080 10.0.0.2:8080" + owner},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := send(t, table, test.source, test.destination); got != test.want {
				t.Errorf("%s -> %s: %q, want %q", test.source, test.destination, got, test.want)
			}
		})
	}
}

func TestSourceRangesComeBeforeReject(t *testing.T) {
	view := service.Resolve(input(webService(loadBalancer("1.2.3.4"), ranges("203.0.113.0/24"))), nodeN1(), detect())
	table := service.NewTable([]*messages.ServiceView{view}, nodeN1(), detect())
	if got := send(t, table, "203.0.113.1", "1.2.3.4:80/TCP"); got != "reject default/web" {
		t.Errorf("inside: %s", got)
	}
	if got := send(t, table, "198.51.100.1", "1.2.3.4:80/TCP"); got != "drop default/web" {
		t.Errorf("outside: %s", got)
	}
}

// TestContestedFrontends: the claim of the better kind wins, then a claim with endpoints, then the
// older service, then the smaller key.
func TestContestedFrontends(t *testing.T) {
	const (
		clusterIP = messages.FrontendKind_KIND_CLUSTER_IP
		external  = messages.FrontendKind_KIND_EXTERNAL_IP
		balancer  = messages.FrontendKind_KIND_LOAD_BALANCER_IP
		node      = messages.FrontendKind_KIND_NODE_PORT
	)
	claim := func(key string, created int64, kind messages.FrontendKind, action messages.Action) *messages.ServiceView {
		return &messages.ServiceView{Key: key, Created: created, Frontends: []*messages.Frontend{{
			Address: "1.2.3.4", Port: 80, Protocol: tcp, Kind: kind, Action: action,
		}}}
	}
	const forward, reject, drop = messages.Action_ACTION_FORWARD, messages.Action_ACTION_REJECT, messages.Action_ACTION_DROP
	for _, test := range []struct {
		name string
		a, b *messages.ServiceView
		want string
	}{
		{"the older", claim("ns/z", 100, external, forward), claim("ns/a", 200, external, forward), "forward ns/z"},
		{"the smaller key", claim("ns/a", 200, external, forward), claim("ns/b", 200, external, forward), "forward ns/a"},
		{"cluster IP before node port", claim("ns/a", 200, clusterIP, forward), claim("ns/b", 100, node, forward), "forward ns/a"},
		{"node port before load-balancer address", claim("ns/a", 200, node, forward), claim("ns/b", 100, balancer, forward), "forward ns/a"},
		{"load-balancer address before external IP", claim("ns/a", 200, balancer, forward), claim("ns/b", 100, external, forward), "forward ns/a"},
		{"a cluster IP without endpoints stays its owner's", claim("ns/a", 200, clusterIP, reject), claim("ns/b", 100, external, forward), "reject ns/a"},
		{"a node port without endpoints too", claim("ns/a", 200, node, reject), claim("ns/b", 100, external, forward), "reject ns/a"},
		{"an external IP without endpoints gives way", claim("ns/a", 100, external, reject), claim("ns/b", 200, external, forward), "forward ns/b"},
		{"a load-balancer address without endpoints does not give way to one", claim("ns/a", 200, balancer, reject), claim("ns/b", 100, external, forward), "reject ns/a"},
		{"but to a load-balancer address with endpoints", claim("ns/a", 100, balancer, reject), claim("ns/b", 200, balancer, forward), "forward ns/b"},
		{"one that drops has endpoints", claim("ns/a", 100, external, drop), claim("ns/b", 200, external, forward), "drop ns/a"},
		{"but not to another one without", claim("ns/a", 100, external, reject), claim("ns/b", 200, external, reject), "reject ns/a"},
	} {
		for _, views := range [][]*messages.ServiceView{{test.a, test.b}, {test.b, test.a}} {
			if got := send(t, service.NewTable(views, nil, service.Config{}), "10.0.0.1", "1.2.3.4:80/TCP"); got != test.want {
				t.Errorf("%s: %s, want %s", test.name, got, test.want)
			}
		}
	}
}

// TestSourceRangesCountWhoeverOwnsTheFrontend: the source ranges of every service that claims the
// frontend count.
func TestSourceRangesCountWhoeverOwnsTheFrontend(t *testing.T) {
	claim := func(key string, kind messages.FrontendKind, allow ...string) *messages.ServiceView {
		return &messages.ServiceView{Key: key, Frontends: []*messages.Frontend{{
			Address: "1.2.3.4", Port: 80, Protocol: tcp, Kind: kind, Action: messages.Action_ACTION_FORWARD, AllowSources: allow,
		}}}
	}
	table := service.NewTable([]*messages.ServiceView{
		claim("ns/a", messages.FrontendKind_KIND_LOAD_BALANCER_IP),
		claim("ns/b", messages.FrontendKind_KIND_LOAD_BALANCER_IP, "203.0.113.0/24"),
		claim("ns/c", messages.FrontendKind_KIND_LOAD_BALANCER_IP, "203.0.113.0/25", "10.0.0.0/8"),
	}, nil, service.Config{})
	for source, want := range map[string]string{"203.0.113.1": "forward ns/a", "203.0.113.200": "drop ns/a", "10.0.0.1": "drop ns/a", "1.1.1.1": "drop ns/a"} {
		if got := send(t, table, source, "1.2.3.4:80/TCP"); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}

func TestClientClasses(t *testing.T) {
	table := service.NewTable(nil, nodeN1("192.168.0.2", "10.0.0.7"), detect())
	for source, want := range map[string]string{
		"10.0.0.9": service.ClassPod, "192.168.0.2": service.ClassNode, "192.168.0.3": service.ClassRemote,
		"fd00:10::1": service.ClassPod, "2001:db8::1": service.ClassRemote,
		// The detector decides before the addresses of the node, as in kube-proxy.
		"10.0.0.7": service.ClassPod,
	} {
		if got := table.Class(netip.MustParseAddr(source)); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}

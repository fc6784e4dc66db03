package cnat

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// onNode is the configuration of a node that serves IPv6.
var onNode = Config{
	Node: "n1", SNAT: []netip.Addr{netip.MustParseAddr("fd00:1::ffff:ffff:ffff:fffe")},
	Ground: rule.Ground{
		Hosts: map[netip.Addr]bool{netip.MustParseAddr("2001:db8::1"): true}, Pods: []netip.Prefix{netip.MustParsePrefix("fd00:1::/64")},
		Reserved: rule.Ports{{Number: 22, Proto: rule.TCP}: true},
	},
}

// serving makes a frontend that forwards to backends "address#port"; "*" marks a local one.
func serving(addr string, port uint32, proto messages.Protocol, backends ...string) *messages.Frontend {
	f := &messages.Frontend{Address: addr, Port: port, Protocol: proto, PortName: "http"}
	for _, text := range backends {
		b := &messages.Backend{}
		text, b.Local = strings.CutSuffix(text, "*")
		addr, port, _ := strings.Cut(text, "#")
		b.Address = addr
		_, _ = fmt.Sscan(port, &b.Port)
		f.Backends = append(f.Backends, b)
	}
	return f
}

// with changes a frontend.
func with(f *messages.Frontend, changes ...func(*messages.Frontend)) *messages.Frontend {
	for _, change := range changes {
		change(f)
	}
	return f
}

func nodePort(f *messages.Frontend) {
	f.Scope, f.Kind = messages.Scope_SCOPE_NODEPORT, messages.FrontendKind_KIND_NODE_PORT
}

func loadBalancer(f *messages.Frontend) {
	f.Scope, f.Kind = messages.Scope_SCOPE_EXTERNAL, messages.FrontendKind_KIND_LOAD_BALANCER_IP
}

func externalIP(f *messages.Frontend) {
	f.Scope, f.Kind = messages.Scope_SCOPE_EXTERNAL, messages.FrontendKind_KIND_EXTERNAL_IP
}

func consistent(f *messages.Frontend) { f.Maglev = true }

func sticky(f *messages.Frontend) { f.AffinitySeconds = 60 }

func rejecting(f *messages.Frontend) { f.Action = messages.Action_ACTION_REJECT }

func dropping(f *messages.Frontend) { f.Action = messages.Action_ACTION_DROP }

func masqueraded(f *messages.Frontend) { f.MasqueradeFrom = []string{"node", "pod", "remote"} }

func from(class messages.ClientClass) func(*messages.Frontend) {
	return func(f *messages.Frontend) { f.From = class }
}

func allowing(sources ...string) func(*messages.Frontend) {
	return func(f *messages.Frontend) { f.AllowSources = sources }
}

// planText writes a plan: rows, then "refuse" refused frontends, "~" approximations, "!" parts
// without a row.
func planText(p *ServicePlan) string {
	var b strings.Builder
	for _, row := range p.Rows {
		state := row.State(true)
		fmt.Fprintf(&b, "%s", strings.Join(append([]string{row.String()}, state.GetFlags()...), " "))
		for _, l := range state.GetLocals() {
			b.WriteString(" " + l.GetAddress())
		}
		b.WriteString("\n")
	}
	for _, r := range p.Refused {
		fmt.Fprintf(&b, "refuse %s\n", r.Key)
	}
	for _, a := range p.Approximations {
		fmt.Fprintf(&b, "~ %s: %s -> %s\n", a.GetFrontend(), a.GetWanted(), a.GetRendered())
	}
	for _, e := range p.Unrendered {
		fmt.Fprintf(&b, "! %s: %s\n", e.GetField(), e.GetMessage())
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	const tcp, udp, sctp = messages.Protocol_TCP, messages.Protocol_UDP, messages.Protocol_SCTP
	const local, remote = messages.ClientClass_FROM_LOCAL, messages.ClientClass_FROM_REMOTE
	for name, c := range map[string]struct {
		config    Config
		frontends []*messages.Frontend
		want      string
	}{
		"cluster IP": {onNode, []*messages.Frontend{serving("fd00:96::1", 80, tcp, "fd00:2::1#8080", "fd00:1::1#8080*", "fd00:2::1#8080")}, `
[fd00:96::1]:80/TCP [fd00:1::1]:8080 [fd00:2::1]:8080
`},
		"IPv4 is another renderer's": {onNode, []*messages.Frontend{serving("10.96.0.1", 80, tcp, "10.1.1.1#8080")}, "\n"},
		"both families": {Config{IPv4: true, SNAT: []netip.Addr{netip.MustParseAddr("10.1.1.254")}}, []*messages.Frontend{
			serving("10.96.0.1", 80, tcp, "10.1.1.1#8080"), serving("fd00:96::1", 53, udp, "fd00:1::1#53"),
		}, `
10.96.0.1:80/TCP 10.1.1.1:8080
[fd00:96::1]:53/UDP [fd00:1::1]:53
~ [fd00:96::1]:53/UDP: all fragments of a datagram reach one endpoint -> datagrams in fragments are lost
~ [fd00:96::1]:53/UDP: the source replaced where answers would go astray -> the source of no client replaced
`},
		"affinity": {onNode, []*messages.Frontend{with(serving("fd00:96::1", 80, tcp, "fd00:1::1#80"), sticky)}, `
[fd00:96::1]:80/TCP maglev-by-source [fd00:1::1]:80
~ [fd00:96::1]:80/TCP: a client stays with its endpoint for 60 s, for all frontends of the port -> a client stays with its endpoint per frontend, as long as that is there
`},
		"maglev": {onNode, []*messages.Frontend{
			with(serving("fd00:96::1", 80, tcp, "fd00:1::1#80"), consistent), with(serving("fd00:96::2", 80, tcp, "fd00:1::1#80"), sticky, consistent),
		}, `
[fd00:96::1]:80/TCP maglev [fd00:1::1]:80
[fd00:96::2]:80/TCP maglev-by-source [fd00:1::1]:80
~ [fd00:96::2]:80/TCP: a client stays with its endpoint for 60 s, for all frontends of the port -> a client stays with its endpoint per frontend, as long as that is there
`},
		"node port": {onNode, []*messages.Frontend{with(serving("2001:db8::1", 30080, tcp, "fd00:1::1#80"), nodePort, masqueraded)}, `
[2001:db8::1]:30080/TCP real-ip [fd00:1::1]:80
~ [2001:db8::1]:30080/TCP: the source of every client replaced -> replaced for clients outside before endpoints on other nodes
`},
		"a load balancer with the address of the node, and with one of its own ports": {onNode, []*messages.Frontend{
			with(serving("2001:db8::1", 22, tcp, "fd00:1::1#80"), loadBalancer), with(serving("2001:db8::1", 80, tcp, "fd00:1::1#80"), loadBalancer),
			with(serving("2001:db8::9", 80, tcp, "fd00:1::1#80"), loadBalancer), with(serving("fd00:1::9", 80, tcp, "fd00:1::1#80"), loadBalancer),
		}, `
[2001:db8::1]:80/TCP real-ip [fd00:1::1]:80
[2001:db8::9]:80/TCP real-ip [fd00:1::1]:80
! ports[http].address: frontend [2001:db8::1]:22/TCP is not served: port 22/TCP of the nodes is reserved
! ports[http].address: frontend [fd00:1::9]:80/TCP is not served: fd00:1::9 is in a pod network
`},
		"an external IP with a cluster IP of the service, and with an address of the networks of cluster IPs": {Config{Services: []netip.Prefix{netip.MustParsePrefix("fd00:97::/112")}}, []*messages.Frontend{
			serving("fd00:96::1", 80, tcp, "fd00:1::1#80"), with(serving("fd00:96::1", 81, tcp, "fd00:1::1#80"), externalIP),
			with(serving("fd00:97::5", 80, tcp, "fd00:1::1#80"), externalIP), with(serving("2001:db8::53", 9, tcp, "fd00:1::1#80"), externalIP),
		}, `
[fd00:96::1]:80/TCP [fd00:1::1]:80
[fd00:96::1]:81/TCP [fd00:1::1]:80
[fd00:97::5]:80/TCP [fd00:1::1]:80
[2001:db8::53]:9/TCP real-ip [fd00:1::1]:80
~ [fd00:96::1]:80/TCP: the source replaced where answers would go astray -> the source of no client replaced
~ [fd00:96::1]:81/TCP: the source replaced where answers would go astray -> the source of no client replaced
~ [fd00:97::5]:80/TCP: the source replaced where answers would go astray -> the source of no client replaced
~ [2001:db8::53]:9/TCP: the source replaced where answers would go astray -> the source of no client replaced
`},
		"source ranges": {onNode, []*messages.Frontend{
			with(serving("2001:db8::9", 80, tcp, "fd00:1::1#80"), loadBalancer, allowing("2001:db8:1::/48")),
			with(serving("2001:db8::9", 81, tcp, "fd00:1::1#80"), loadBalancer, allowing("::/0")),
			with(serving("2001:db8::9", 82, tcp, "fd00:1::1#80"), loadBalancer, allowing("nonsense")),
		}, `
[2001:db8::9]:81/TCP real-ip [fd00:1::1]:80
! ports[http].allowSources: frontend [2001:db8::9]:80/TCP is not served: ` + whyRanges + `
! ports[http].allowSources: frontend [2001:db8::9]:82/TCP is not served: ` + whyRanges + `
`},
		"local policy: the rule for clients outside decides": {onNode, []*messages.Frontend{
			with(serving("2001:db8::9", 80, tcp, "fd00:1::1#80", "fd00:2::1#80"), loadBalancer, from(local)),
			with(serving("2001:db8::9", 80, tcp, "fd00:1::1#80"), loadBalancer, from(remote)),
		}, `
[2001:db8::9]:80/TCP real-ip [fd00:1::1]:80
~ [2001:db8::9]:80/TCP: from local: 2 endpoints -> as for all clients: 1 endpoints
`},
		"no endpoints": {onNode, []*messages.Frontend{
			with(serving("fd00:96::1", 80, tcp), rejecting), with(serving("fd00:96::2", 80, tcp), dropping),
		}, `
refuse [fd00:96::1]:80/TCP
refuse [fd00:96::2]:80/TCP
~ [fd00:96::1]:80/TCP: reject: connection refused -> no row: the packet follows the routes of VPP
~ [fd00:96::2]:80/TCP: drop -> no row: the packet follows the routes of VPP
`},
		"what cannot be served": {onNode, []*messages.Frontend{
			serving("fd00:96::1", 80, sctp, "fd00:1::1#80"), serving("fd00:96::1", 0, tcp, "fd00:1::1#80"), serving("::ffff:10.96.0.1", 80, tcp, "fd00:1::1#80"),
			serving("fe80::1%eth0", 80, tcp, "fd00:1::1#80"),
			serving("fd00:96::1", 81, tcp, "10.1.1.1#80", "::ffff:10.1.1.1#80", "fe80::1#80", "ff02::1#80", "::1#80", "fe80::1%eth0#80", "fd00:1::1#0", "fd00:1::1#70000", "x#1"),
		}, `
! ports[http].protocol: frontend [fd00:96::1]:80/SCTP is not served: CNAT translates TCP and UDP only
! ports[http].address: frontend [fd00:96::1]:0/TCP is not an address and a port
! ports[http].address: frontend [::ffff:10.96.0.1]:80/TCP is not an address and a port
! ports[http].address: frontend [fe80::1%eth0]:80/TCP is not an address and a port
! ports[http].endpoints: endpoint 10.1.1.1 port 80 of [fd00:96::1]:81/TCP: of another address family than the frontend
! ports[http].endpoints: endpoint ::ffff:10.1.1.1 port 80 of [fd00:96::1]:81/TCP: not an address of an endpoint
! ports[http].endpoints: endpoint fe80::1 port 80 of [fd00:96::1]:81/TCP: not an address of an endpoint
! ports[http].endpoints: endpoint ff02::1 port 80 of [fd00:96::1]:81/TCP: not an address of an endpoint
! ports[http].endpoints: endpoint ::1 port 80 of [fd00:96::1]:81/TCP: not an address of an endpoint
! ports[http].endpoints: endpoint fe80::1%eth0 port 80 of [fd00:96::1]:81/TCP: not an address of an endpoint
! ports[http].endpoints: endpoint fd00:1::1 port 0 of [fd00:96::1]:81/TCP: not a port
! ports[http].endpoints: endpoint fd00:1::1 port 70000 of [fd00:96::1]:81/TCP: not a port
! ports[http].endpoints: endpoint x port 1 of [fd00:96::1]:81/TCP: not an address of an endpoint
`},
	} {
		t.Run(name, func(t *testing.T) {
			got := planText(Plan(&messages.ServiceView{Key: "default/web", Frontends: c.frontends}, c.config))
			if d := cmp.Diff(c.want[1:], got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestMoreBackendsThanFit: local ones come first, and one added or deleted backend changes one.
func TestMoreBackendsThanFit(t *testing.T) {
	view := func(from, to int) *messages.ServiceView {
		f := serving("fd00:96::1", 80, messages.Protocol_TCP)
		for i := from; i < to; i++ {
			f.Backends = append(f.Backends, &messages.Backend{Address: fmt.Sprintf("fd00:1::%x", i+1), Port: 80, Local: i%10 == 0})
		}
		return &messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{f}}
	}
	in := func(from, to int) map[netip.AddrPort]bool {
		rows := Plan(view(from, to), onNode).Rows
		if len(rows) != 1 || len(rows[0].Backends) != MaxBackends {
			t.Fatalf("%d to %d: %d rows", from, to, len(rows))
		}
		found := map[netip.AddrPort]bool{}
		for _, b := range rows[0].Backends {
			found[b] = true
		}
		return found
	}
	all, fewer := in(0, 5000), in(1, 5000)
	changed := 0
	for b := range all {
		if !fewer[b] {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("without one local endpoint %d others were chosen", changed)
	}
	for i := 0; i < 5000; i += 10 {
		if b := netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("fd00:1::%x", i+1)), 80); !all[b] {
			t.Errorf("the local endpoint %s has no place", b)
		}
	}
}

func TestForNode(t *testing.T) {
	node := &messages.Node{PodCidrs: []string{"nonsense", "10.1.1.0/24", "10.1.9.0/24", "fd00:1::/120", "::ffff:10.0.0.0/112", "10.0.0.0/31"}}
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, "[10.1.1.254 fd00:1::fe]"},
		{Config{IPv4: true}, "[10.1.1.254 fd00:1::fe]"},
		{onNode, "[fd00:1::ffff:ffff:ffff:fffe]"},
	} {
		got := c.config.ForNode(node)
		if text := fmt.Sprint(got.SNAT); text != c.want {
			t.Errorf("%s, want %s", text, c.want)
		}
		if !got.ForNode(nil).Equal(got) {
			t.Error("not stable")
		}
	}
	if got := (Config{}).ForNode(nil).Want().SNAT; got != NoSNAT() {
		t.Errorf("without a pod network: %v", got)
	}
}

// TestPlanProperties: every frontend ends in exactly one way, and VPP could take every row.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addr := rapid.SampledFrom([]string{"fd00:96::1", "fd00:96::2", "2001:db8::1", "10.96.0.1", "fe80::1%x", "::ffff:1.2.3.4", "", "fd00:1::5"})
		view := &messages.ServiceView{Key: "a/b"}
		for port := range uint32(rapid.IntRange(0, 5).Draw(t, "ports")) {
			f := serving(addr.Draw(t, "address"), port*20000, rapid.SampledFrom([]messages.Protocol{6, 17, 132}).Draw(t, "protocol"))
			f.Action = rapid.SampledFrom([]messages.Action{0, 0, 1, 2}).Draw(t, "action")
			f.Kind = rapid.SampledFrom([]messages.FrontendKind{0, 1, 2, 3}).Draw(t, "kind")
			if f.Action == messages.Action_ACTION_FORWARD {
				for range rapid.IntRange(0, 4).Draw(t, "backends") {
					f.Backends = append(f.Backends, &messages.Backend{Address: addr.Draw(t, "endpoint"), Port: rapid.Uint32Range(0, 70000).Draw(t, "port")})
				}
			}
			view.Frontends = append(view.Frontends, f)
		}
		plan := Plan(view, onNode)
		for _, r := range plan.Rows {
			if !r.Addr.Is6() || r.Addr.Is4In6() || r.Addr.Zone() != "" || r.Port == 0 || len(r.Backends) == 0 {
				t.Fatalf("row %+v", r)
			}
			for i, b := range r.Backends {
				if !b.IsValid() || b.Addr().Is4() || b.Port() == 0 || i > 0 && r.Backends[i-1].Compare(b) >= 0 {
					t.Fatalf("backends %v", r.Backends)
				}
			}
		}
		if d := cmp.Diff(planText(plan), planText(Plan(view, onNode))); d != "" {
			t.Fatal(d)
		}
	})
}

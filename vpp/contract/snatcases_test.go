package contract

import (
	"encoding/json"
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// egress is a node whose pods leave with its address: pods, the host with the address of the node,
// and all other hosts behind the uplink.
type egress struct {
	*holder
	host interface_types.InterfaceIndex
	id   uint64
}

// pass sends one packet and returns how it left; port is where it should leave.
func (e *egress) pass(in, out interface_types.InterfaceIndex, proto, flags uint8, src, dst string) packet {
	e.Helper()
	e.id++
	p := packet{
		port: in, id: 1<<40 + e.id, src: netip.MustParseAddrPort(src), dst: netip.MustParseAddrPort(dst), proto: proto, flags: protoFlags(proto, flags),
	}
	got, found := e.traffic.exchange(e.T, []packet{p})[p.id]
	if !found || got.port != out {
		e.Fatalf("%s left %v through %d, want %d: %s", p, found, got.port, out, got)
	}
	return got
}

// unchanged sends a packet that NAT leaves alone.
func (e *egress) unchanged(in, out interface_types.InterfaceIndex, proto, flags uint8, src, dst string) {
	e.Helper()
	if got := e.pass(in, out, proto, flags, src, dst); got.src.String() != src || got.dst.String() != dst {
		e.Errorf("%s > %s became %s", src, dst, got)
	}
}

// newEgress makes such a node, with what dynamic SNAT wants there.
func newEgress(t *testing.T, v *rig) *egress {
	t.Helper()
	e := &egress{holder: newHolder(t, v, 1)}
	e.host = e.traffic.port(t, false)
	v.expect(t, ok, up(e.host))
	v.expect(t, ok, address(t, e.host, "172.16.9.1/32"))
	v.expect(t, ok, route(t, "192.0.2.1/32", via(e.host, [4]byte{})))
	e.want.Interfaces[uint32(e.host)] = true
	for _, r := range []nat44.Row{
		e.row("10.96.0.1:80/TCP", nat44.SelfTwiceNAT, 0, 8080, []int{8}),    // 10.1.0.9
		e.row("192.0.2.1:30080/TCP", nat44.SelfTwiceNAT, 0, 8080, []int{8}), // node port, Local
		// node port, of a process of another node
		e.row("192.0.2.1:30090/TCP", nat44.TwiceNAT, 0, 9000, []int{8}),
		// of processes of this node
		e.row("10.96.0.2:443/TCP", nat44.SelfTwiceNAT, 0, 6443, []int{8}),
		e.row("192.0.2.1:30443/TCP", nat44.SelfTwiceNAT, 0, 6443, []int{8}),
	} {
		switch r.Locals[0].Port {
		case 9000:
			r.Locals[0].Addr = netip.MustParseAddr("198.18.0.20")
		case 6443:
			r.Locals[0].Addr = netip.MustParseAddr("192.0.2.1")
		}
		e.want.Rows[r.Key] = r
	}
	v.settle(t, e.want)
	return e
}

// enable adds what dynamic SNAT wants; pool is the address that pods leave with.
func (e *egress) enable(pool string) {
	e.Helper()
	snat := external.SNAT{Enabled: true, Address: netip.MustParseAddr(pool), OverlayPorts: []string{"4789/UDP"}}
	doc, err := snat.Document(&messages.InterfaceSet{
		Uplink: proto.Uint32(uint32(e.clients)), NodeAddresses: []string{"192.0.2.1/24", "192.0.2.2/24"},
		Interfaces: []*messages.Interface{{SwIfIndex: uint32(e.clients), Name: "uplink", Kind: messages.InterfaceKind_INTERFACE_UPLINK}},
	}, e.want.TwiceNAT)
	if err != nil {
		e.Fatal(err)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		e.Fatal(err)
	}
	l, err := external.Decode(data, external.SourceSNAT)
	if err != nil {
		e.Fatal(err)
	}
	externalRows(e.want, l)
	e.want.Outputs = map[uint32]bool{uint32(e.clients): true}
	e.settle(e.T, e.want)
}

// plain are the packets that a node with SNAT forwards like one without.
func (e *egress) plain() {
	e.Helper()
	up, pods, host := e.clients, e.backends, e.host
	for _, port := range []string{"30080", "30090"} { // node ports from outside
		client, local := "198.18.0.7:40000", port == "30080"
		to, backend := pods, "10.1.0.9:8080"
		if !local {
			to, backend = up, "198.18.0.20:9000"
		}
		got := e.pass(up, to, rule.TCP, syn, client, "192.0.2.1:"+port)
		if got.dst.String() != backend || local != (got.src.String() == client) || !local && got.src.Addr() != e.want.TwiceNAT {
			e.Errorf("node port %s: %s", port, got)
		}
		if back := e.pass(to, up, rule.TCP, syn|ack, backend, got.src.String()); back.src.String() != "192.0.2.1:"+port || back.dst.String() != client {
			e.Errorf("answer of node port %s: %s", port, back)
		}
	}
	if got := e.pass(pods, pods, rule.TCP, syn, "10.1.0.5:41000", "10.96.0.1:80"); got.src.String() != "10.1.0.5:41000" || got.dst.String() != "10.1.0.9:8080" {
		e.Errorf("service: %s", got)
	}
	if got := e.pass(pods, pods, rule.TCP, syn|ack, "10.1.0.9:8080", "10.1.0.5:41000"); got.src.String() != "10.96.0.1:80" {
		e.Errorf("answer of a service: %s", got)
	}
	if got := e.pass(pods, pods, rule.TCP, syn, "10.1.0.6:41001", "192.0.2.1:30080"); got.dst.String() != "10.1.0.9:8080" {
		e.Errorf("node port from a pod: %s", got)
	}
	for _, way := range []struct {
		in          interface_types.InterfaceIndex
		client, vip string
	}{{pods, "10.1.0.5:41002", "10.96.0.2:443"}, {up, "198.18.0.7:41003", "192.0.2.1:30443"}, {pods, "10.1.0.5:41004", "192.0.2.1:30443"}} {
		if got := e.pass(way.in, host, rule.TCP, syn, way.client, way.vip); got.src.String() != way.client || got.dst.String() != "192.0.2.1:6443" {
			e.Errorf("%s > %s, a process of the node: %s", way.client, way.vip, got)
		}
		if got := e.pass(host, way.in, rule.TCP, syn|ack, "192.0.2.1:6443", way.client); got.src.String() != way.vip || got.dst.String() != way.client {
			e.Errorf("answer of a process of the node from %s: %s", way.vip, got)
		}
	}
	for range 2 { // the overlay: any source port, and the answers
		e.unchanged(host, up, rule.UDP, 0, "192.0.2.1:50123", "198.18.0.20:4789")
		e.unchanged(up, host, rule.UDP, 0, "198.18.0.20:50321", "192.0.2.1:4789")
	}
	// the node itself, both ways
	e.unchanged(up, host, rule.TCP, syn, "198.18.0.9:40022", "192.0.2.1:22")
	e.unchanged(host, up, rule.TCP, syn|ack, "192.0.2.1:22", "198.18.0.9:40022")
	e.unchanged(host, up, rule.TCP, syn, "192.0.2.1:40443", "198.18.0.9:443")
	e.unchanged(up, host, rule.TCP, syn|ack, "198.18.0.9:443", "192.0.2.1:40443")
	// a pod and the node
	e.unchanged(pods, host, rule.TCP, syn, "10.1.0.5:40443", "192.0.2.1:6443")
	e.unchanged(host, pods, rule.TCP, syn|ack, "192.0.2.1:6443", "10.1.0.5:40443")
}

// snatCases are the packets through a node with dynamic SNAT.
var snatCases = []contractCase{
	{"snat/packets without it", func(t *testing.T, v *rig) {
		e := newEgress(t, v)
		e.plain()
		e.unchanged(e.backends, e.clients, rule.TCP, syn, "10.1.0.5:42000", "198.18.0.9:443")
	}},
	{"snat/packets with it", func(t *testing.T, v *rig) {
		e := newEgress(t, v)
		e.enable("192.0.2.1")
		e.plain()
		for _, proto := range []uint8{rule.TCP, rule.UDP} {
			for _, pod := range []string{"10.1.0.5:42000", "10.1.0.6:42000", "10.1.0.5:4789", "10.1.0.5:30080"} {
				got := e.pass(e.backends, e.clients, proto, syn, pod, "198.18.0.9:443")
				if got.src.Addr().String() != "192.0.2.1" || got.src.Port() == 30080 && proto == rule.TCP {
					t.Errorf("%s leaves as %s", pod, got)
				}
				if back := e.pass(e.clients, e.backends, proto, syn|ack, "198.18.0.9:443", got.src.String()); back.dst.String() != pod {
					t.Errorf("the answer to %s arrives at %s", pod, back)
				}
			}
		}
		e.plain()
	}},
	{"snat/another address of the interface", func(t *testing.T, v *rig) {
		e := newEgress(t, v)
		e.enable("192.0.2.2")
		got := e.pass(e.backends, e.clients, rule.TCP, syn, "10.1.0.5:42000", "198.18.0.9:443")
		if got.src.String() != "192.0.2.2:42000" {
			t.Errorf("leaves as %s", got)
		}
		// The price: from a pod, VPP does not look for node ports at an address that is
		// exempted and not in the pool.
		lost := packet{port: e.backends, id: 1, src: netip.MustParseAddrPort("10.1.0.6:41001"), dst: netip.MustParseAddrPort("192.0.2.1:30080"), proto: rule.TCP, flags: syn}
		if got, found := e.traffic.exchange(t, []packet{lost})[lost.id]; found {
			t.Errorf("node port from a pod: %s", got)
		}
		if got := e.pass(e.clients, e.backends, rule.TCP, syn, "198.18.0.7:40000", "192.0.2.1:30080"); got.dst.String() != "10.1.0.9:8080" {
			t.Errorf("node port from outside: %s", got)
		}
		e.unchanged(e.host, e.clients, rule.UDP, 0, "192.0.2.1:50123", "198.18.0.20:4789")
		e.unchanged(e.clients, e.host, rule.UDP, 0, "198.18.0.20:50321", "192.0.2.1:4789")
	}},
	{"snat/packets after it", func(t *testing.T, v *rig) {
		e := newEgress(t, v)
		before := map[rule.Key]nat44.Row{}
		for k, r := range e.want.Rows {
			before[k] = r
		}
		e.enable("192.0.2.1")
		e.pass(e.backends, e.clients, rule.TCP, syn, "10.1.0.5:42000", "198.18.0.9:443")
		e.want.RetiredPool, e.want.Pool, e.want.Rows = e.want.Pool, nil, before
		e.want.Outputs[uint32(e.clients)] = false
		e.settle(t, e.want)
		e.plain()
		e.unchanged(e.backends, e.clients, rule.TCP, syn, "10.1.0.5:42001", "198.18.0.9:443")
	}},
}

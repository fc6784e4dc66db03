package contract

import (
	"fmt"
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/messages"
	discovery "github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// table creates an IPv4 table.
func table(t testing.TB, v *rig, id uint32) {
	t.Helper()
	v.expect(t, ok, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: id}})
}

// routeIn is route in another table.
func routeIn(t testing.TB, id uint32, text string, path fib_types.FibPath) *ip.IPRouteAddDel {
	t.Helper()
	r := route(t, text, path)
	r.Route.TableID = id
	return r
}

// lookIn is the path "look up in table N".
func lookIn(id uint32) fib_types.FibPath {
	return fib_types.FibPath{SwIfIndex: uint32(none), TableID: id, Proto: fib_types.FIB_API_PATH_NH_PROTO_IP4, Weight: 1}
}

// tabled is a VPP whose pods are in a table of their own, which leads to the main table by its
// default route; the main table leads to it by the network of the pods. The node's uplink is in a
// third table, to which the default route of the main table leads.
type tabled struct {
	*rig
	*testing.T
	traffic             traffic
	client, pod, uplink interface_types.InterfaceIndex
	next                uint64
}

const (
	podTable, uplinkTable   = 2, 5
	clientAddr, podAddr     = "10.1.1.2", "10.1.2.2"
	remoteAddr, outsideAddr = "10.1.129.2", "203.0.113.9"
	tabledVIP               = "10.96.0.1:80"
)

func newTabled(t *testing.T, v *rig) *tabled {
	t.Helper()
	l := &tabled{rig: v, T: t, traffic: v.Traffic(t, v)}
	table(t, v, podTable)
	table(t, v, uplinkTable)
	l.client, l.pod, l.uplink = l.in(podTable, "10.1.1.1/24"), l.in(podTable, "10.1.2.1/24"), l.in(uplinkTable, "192.168.50.1/24")
	for _, r := range []*ip.IPRouteAddDel{
		route(t, "10.1.0.0/16", lookIn(podTable)), route(t, "0.0.0.0/0", lookIn(uplinkTable)), routeIn(t, podTable, "0.0.0.0/0", lookIn(0)),
		routeIn(t, podTable, clientAddr+"/32", via(l.client, [4]byte{})), routeIn(t, podTable, podAddr+"/32", via(l.pod, [4]byte{})),
		routeIn(t, uplinkTable, "10.1.0.0/17", lookIn(0)), routeIn(t, podTable, "10.1.128.0/17", lookIn(uplinkTable)),
		routeIn(t, uplinkTable, "10.1.128.0/17", via(l.uplink, [4]byte{})), routeIn(t, uplinkTable, "0.0.0.0/0", via(l.uplink, [4]byte{})),
	} {
		v.expect(t, ok, r)
	}
	return l
}

// in creates an interface in a table.
func (l *tabled) in(id uint32, prefix string) interface_types.InterfaceIndex {
	l.Helper()
	index := l.traffic.port(l.T, false)
	l.rig.expect(l.T, ok, &interfaces.SwInterfaceSetTable{SwIfIndex: index, VrfID: id})
	l.rig.expect(l.T, ok, up(index))
	l.rig.expect(l.T, ok, address(l.T, index, prefix))
	return index
}

// discovered is the interface set that the agent derives.
func (l *tabled) discovered() *messages.InterfaceSet {
	l.Helper()
	set, err := new(discovery.Reader).Discover(l.Context(), l.link, discovery.Input{
		Boot: l.boot, LocalEndpoints: []string{podAddr}, NodeAddresses: []string{"192.168.50.1"},
		Pods: []*messages.Pod{
			{Namespace: "n", Name: "client", Addresses: []string{clientAddr}}, {Namespace: "n", Name: "pod", Addresses: []string{podAddr}},
		},
		PodNetworks: discovery.IPv4Networks([]string{"10.1.0.0/17"}), Remote: discovery.IPv4Networks([]string{"10.1.128.0/17", "192.168.50.3"}),
	})
	if err != nil {
		l.Fatal(err)
	}
	return set
}

// serve makes a row with one backend in a table.
func (l *tabled) serve(backend string, in uint32) *nat44.Want {
	l.Helper()
	key, err := rule.ParseKey(tabledVIP + "/TCP")
	if err != nil {
		l.Fatal(err)
	}
	want := &nat44.Want{Rows: map[rule.Key]nat44.Row{}, Interfaces: map[uint32]bool{}}
	want.TwiceNAT, want.SessionLimit = netip.MustParseAddr("10.255.255.254"), 1000
	for _, index := range []interface_types.InterfaceIndex{l.client, l.pod, l.uplink} {
		want.Interfaces[uint32(index)] = true
	}
	want.Rows[key] = nat44.Row{
		Key: key, Flags: nat44.Out2InOnly | nat44.SelfTwiceNAT, Pads: true, Tag: nat44.Tag{Hash: nat44.ServiceHash("default/web")}.String(),
		Locals: []nat44.Local{{Addr: netip.MustParseAddr(backend), Port: 8080, Table: in, Weight: 7}},
	}
	l.settle(l.T, want)
	return want
}

// send sends one packet and returns where it comes out; "" = nowhere.
func (l *tabled) send(in interface_types.InterfaceIndex, src, dst netip.AddrPort, flags byte) (out packet, arrived bool) {
	l.Helper()
	l.next++
	p := packet{port: in, id: l.next, src: src, dst: dst, proto: rule.TCP, flags: flags}
	out, arrived = l.traffic.exchange(l.T, []packet{p})[p.id]
	return out, arrived
}

// connect opens a connection and reports whether the request reaches the backend behind the exit,
// and the answer the client as an answer of the VIP.
func (l *tabled) connect(in, exit interface_types.InterfaceIndex, client, backend netip.AddrPort) (request, answer bool) {
	l.Helper()
	vip := netip.MustParseAddrPort(tabledVIP)
	got, arrived := l.send(in, client, vip, syn)
	if !arrived || got.port != exit || got.dst != backend {
		return false, false
	}
	back, arrived := l.send(exit, got.dst, got.src, syn|ack)
	return true, arrived && back.port == in && back.src == vip && back.dst == client
}

// tableCases are about interfaces in several tables (VRFs).
var tableCases = []contractCase{
	{"tables/the agent finds where answers come in", func(t *testing.T, v *rig) {
		l := newTabled(t, v)
		set := l.discovered()
		var got []string
		for _, n := range set.GetTables() {
			got = append(got, fmt.Sprintf("%s=%d", n.GetNetwork(), n.GetTable()))
		}
		check(t, "tables", []string{"0.0.0.0/0=5", "10.1.0.0/17=2"}, got)
		check(t, "addresses of the node", []string{"192.168.50.1/24"}, set.GetNodeAddresses())
		if set.Uplink == nil || set.GetUplink() != uint32(l.uplink) {
			t.Errorf("uplink %v, want %d", set.Uplink, l.uplink)
		}
	}},
	{"tables/answers are recognised in the table of the backend only", func(t *testing.T, v *rig) {
		l := newTabled(t, v)
		at := func(addr string, port uint16) netip.AddrPort {
			return netip.AddrPortFrom(netip.MustParseAddr(addr), port)
		}
		port := uint16(20000)
		for _, c := range []struct {
			what, client, backend string
			in, exit              interface_types.InterfaceIndex
			table                 uint32
			request, answer       bool
		}{
			{"pod to pod, table 0", clientAddr, podAddr, l.client, l.pod, 0, true, false},
			{"pod to pod, their table", clientAddr, podAddr, l.client, l.pod, podTable, true, true},
			{"pod to pod, the table of the uplink", clientAddr, podAddr, l.client, l.pod, uplinkTable, true, false},
			{"pod to itself, their table", podAddr, podAddr, l.pod, l.pod, podTable, true, true},
			{"outside to pod, table 0", outsideAddr, podAddr, l.uplink, l.pod, 0, true, false},
			{"outside to pod, its table", outsideAddr, podAddr, l.uplink, l.pod, podTable, true, true},
			{"pod to another node, table 0", clientAddr, remoteAddr, l.client, l.uplink, 0, true, false},
			{"pod to another node, the table of the pods", clientAddr, remoteAddr, l.client, l.uplink, podTable, true, false},
			{"pod to another node, the table of the uplink", clientAddr, remoteAddr, l.client, l.uplink, uplinkTable, true, true},
			{"outside to another node, the table of the uplink", outsideAddr, remoteAddr, l.uplink, l.uplink, uplinkTable, true, true},
		} {
			l.serve(c.backend, c.table)
			port++
			request, answer := l.connect(c.in, c.exit, at(c.client, port), at(c.backend, 8080))
			if request != c.request || answer != c.answer {
				t.Errorf("%s: request arrives %v, answer %v; want %v, %v", c.what, request, answer, c.request, c.answer)
			}
		}
	}},
	{"tables/what becomes of an answer that is not recognised", func(t *testing.T, v *rig) {
		l := newTabled(t, v)
		l.serve(podAddr, 0)
		client, vip, pod := netip.MustParseAddrPort(clientAddr+":20000"), netip.MustParseAddrPort(tabledVIP), netip.MustParseAddrPort(podAddr+":8080")
		if got, arrived := l.send(l.client, client, vip, syn); !arrived || got.dst != pod {
			t.Fatalf("the request arrived %v: %v", arrived, got)
		}
		// The answer passes as a packet of no service, and the client resets what it has not
		// asked for.
		if got, arrived := l.send(l.pod, pod, client, syn|ack); !arrived || got.src != pod {
			t.Errorf("the answer arrived %v: %v", arrived, got)
		}
		if got, arrived := l.send(l.client, client, pod, ack); arrived {
			t.Errorf("what the client says to it arrived: %v", got)
		}
	}},
	{"tables/a backend changes its table", func(t *testing.T, v *rig) {
		l := newTabled(t, v)
		want := l.serve(podAddr, 0)
		l.serve(podAddr, podTable)
		for _, row := range v.read(t).Rows {
			check(t, "backend", podAddr+":8080 (table 2)", row.Locals[0].Text())
		}
		two := want.Rows[firstKey(want)]
		two.Locals = []nat44.Local{{Addr: netip.MustParseAddr(podAddr), Port: 8080, Table: podTable, Weight: 7}, {Addr: netip.MustParseAddr(remoteAddr), Port: 8080, Weight: 7}}
		want.Rows[two.Key] = two
		v.settle(t, want)
		moved := two
		moved.Locals = []nat44.Local{two.Locals[0], {Addr: netip.MustParseAddr(remoteAddr), Port: 8080, Table: uplinkTable, Weight: 7}}
		want.Rows[two.Key] = moved
		if sent := v.apply(t, nat44.Diff(v.read(t), want, true)); sent != 2 {
			t.Errorf("%d messages, want 2", sent)
		}
		if ops := nat44.Diff(v.read(t), want, true); len(ops) > 0 {
			t.Errorf("left to do: %v", ops)
		}
		entry := func(vrf uint32, add bool) *nat44_ed.Nat44LbStaticMappingAddDelLocal {
			return &nat44_ed.Nat44LbStaticMappingAddDelLocal{
				IsAdd: add, ExternalAddr: two.Addr.As4(), ExternalPort: two.Port, Protocol: two.Proto,
				Local: nat44_ed.Nat44LbAddrPort{Addr: netip.MustParseAddr(podAddr).As4(), Port: 8080, Probability: 1, VrfID: vrf},
			}
		}
		v.expect(t, noSuchEntry, entry(uplinkTable, false)) // entries of other tables are other entries
		v.expect(t, ok, entry(uplinkTable, true))
		v.expect(t, valueExist, entry(uplinkTable, true))
		v.expect(t, ok, entry(uplinkTable, false))
	}},
	{"tables/sessions of one address in two tables", func(t *testing.T, v *rig) {
		l := newTabled(t, v)
		l.serve(podAddr, podTable)
		client, pod := netip.MustParseAddrPort(outsideAddr+":20000"), netip.MustParseAddrPort(podAddr+":8080")
		if request, answer := l.connect(l.uplink, l.pod, client, pod); !request || !answer {
			t.Fatal("no connection")
		}
		l.serve(podAddr, uplinkTable) // ends it: the other session is that of another table
		for port := range uint16(3) {
			if got, arrived := l.send(l.uplink, netip.AddrPortFrom(client.Addr(), 20001+port), netip.MustParseAddrPort(tabledVIP), syn); !arrived || got.dst != pod {
				t.Fatalf("arrived %v: %v", arrived, got)
			}
		}
		// a row for another port, whose sessions are in the table of the pods
		want := l.serve(podAddr, uplinkTable)
		other := want.Rows[firstKey(want)]
		other.Key.Port, other.Locals = 81, []nat44.Local{{Addr: pod.Addr(), Port: 8081, Table: podTable, Weight: 7}}
		want.Rows[other.Key] = other
		v.settle(t, want)
		for port := range uint16(2) {
			if _, arrived := l.send(l.uplink, netip.AddrPortFrom(client.Addr(), 20001+port), netip.MustParseAddrPort("10.96.0.1:81"), syn); !arrived {
				t.Fatal("the other row does not serve")
			}
		}
		// a SYN counts as open
		v.expect(t, ok, &nat44_ed.NatSetTimeouts{UDP: 300, TCPEstablished: 240, TCPTransitory: 240, ICMP: 60})
		swept := sessions.Sweep(t.Context(), v.link, sessions.Wish{Draining: []netip.AddrPort{pod}}, netip.Addr{}, sessions.Slice{Dumps: 10})
		if swept.Err != nil {
			t.Fatal(swept.Err)
		}
		key := firstKey(want)
		check(t, "live sessions", 3, swept.Live[pod][rule.Key{Addr: key.Addr, Port: 80, Proto: rule.TCP}])
		v.expect(t, ok, &nat44_ed.NatSetTimeouts{UDP: 1, TCPEstablished: 1, TCPTransitory: 1, ICMP: 1})
		waitFor(t, "sessions to expire", func() bool {
			flows, _, err := sessions.List(t.Context(), v.link, []netip.Addr{pod.Addr()}, func(f *sessions.Flow) bool { return f.Expired && f.Idle >= 2*1e9 }, 100)
			return err == nil && len(flows) == 5
		})
		deleted, left := 0, []sessions.User(nil)
		for range 20 { // small slices: the sessions of the other table must not be in the way
			freed := sessions.Free(t.Context(), v.link, left, sessions.Slice{Deletions: 1, Dumps: 3})
			if freed.Err != nil || freed.Errors > 0 {
				t.Fatalf("freed %+v", freed)
			}
			deleted, left = deleted+freed.Deleted, freed.Left
		}
		check(t, "freed", 5, deleted)
	}},
	{"tables/a route to an interface that is gone", func(t *testing.T, v *rig) {
		gone := loopback(t, v)
		v.expect(t, ok, up(gone))
		v.expect(t, ok, address(t, gone, "192.168.50.1/24"))
		v.expect(t, ok, route(t, "0.0.0.0/0", via(gone, [4]byte{192, 168, 50, 2})))
		deleteLoopback(t, v, gone)
		if index := loopback(t, v); index != gone {
			t.Fatalf("the index %d is not used again: %d", gone, index)
		}
		v.expect(t, ok, up(gone))
		reply := ask[*ip.IPRouteLookupReply](t, v, &ip.IPRouteLookup{Exact: 1, Prefix: route(t, "0.0.0.0/0", fib_types.FibPath{}).Route.Prefix})
		t.Logf("paths %+v", reply.Route.Paths)
		set, err := new(discovery.Reader).Discover(t.Context(), v.link, discovery.Input{Boot: v.boot})
		if err != nil || set.Uplink != nil {
			t.Errorf("uplink %v, error %v", set.Uplink, err)
		}
	}},
}

// firstKey returns the smallest key of the wanted rows.
func firstKey(want *nat44.Want) (first rule.Key) {
	for key := range want.Rows {
		if !first.Addr.IsValid() || key.Compare(first) < 0 {
			first = key
		}
	}
	return first
}

package interfaces

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.fd.io/govpp/binapi/fib_types"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
)

// at puts an interface, or a route, into a table.
func at(table uint32, i RawInterface) RawInterface {
	i.Table = table
	return i
}

func routeIn(table uint32, prefix string, paths ...fib_types.FibPath) fakeRoute {
	r := route(prefix, paths...)
	r.table = table
	return r
}

// lookIn is the path "look up in table N".
func lookIn(table uint32) fib_types.FibPath {
	return fib_types.FibPath{SwIfIndex: noInterface, TableID: table}
}

// toVia is a path to a next hop on an interface.
func toVia(index uint32, address string) fib_types.FibPath {
	p := via(address)
	p.SwIfIndex = index
	return p
}

// borrows makes an interface unnumbered.
func borrows(i RawInterface, lender uint32) RawInterface {
	i.Unnumbered, i.Lender = true, lender
	return i
}

// own is a path to VPP itself.
func own(index uint32) fib_types.FibPath {
	return fib_types.FibPath{SwIfIndex: index, Type: fib_types.FIB_API_PATH_TYPE_LOCAL}
}

// layoutInput is the node 192.168.50.1 with the pods 10.1.1.2 and 10.1.2.2, the second one an
// endpoint; pods of another node are in 10.1.128.0/17.
func layoutInput() Input {
	return Input{
		Pods: []*messages.Pod{
			{Namespace: "n", Name: "c1", Addresses: []string{"10.1.1.2"}}, {Namespace: "n", Name: "b1", Addresses: []string{"10.1.2.2"}},
		},
		LocalEndpoints: []string{"10.1.2.2"}, NodeAddresses: []string{"192.168.50.1"}, PodNetworks: IPv4Networks([]string{"10.1.0.0/17"}),
		Remote: Remote("n1", map[string]*messages.Node{
			"n1": {PodCidrs: []string{"10.1.0.0/17"}, Addresses: []string{"192.168.50.1"}},
			"n2": {PodCidrs: []string{"10.1.128.0/17", "fd00:2::/64"}, Addresses: []string{"192.168.50.3", "n2"}},
		}),
	}
}

// layouts of VPP, as people have them.
var layouts = []struct {
	name       string
	interfaces []RawInterface
	routes     []fakeRoute
	// tables are "network=table", uplink and addresses as in the interface set.
	tables, uplink, addresses string
}{
	{
		"plain",
		[]RawInterface{up(1, "up", "dpdk", "192.168.50.1/24"), up(2, "pc1", "virtio", "10.1.1.1/24"), up(3, "pb1", "virtio", "10.1.2.1/24")},
		[]fakeRoute{
			route("0.0.0.0/0", toVia(1, "192.168.50.2")), route("192.168.50.0/24", to(1)), route("10.1.1.0/24", to(2)), route("10.1.2.0/24", to(3)),
		},
		"", "up", "192.168.50.1/24",
	},
	{
		"pods and mesh in a table of their own",
		[]RawInterface{
			up(1, "up", "dpdk", "192.168.50.1/24"), at(2, up(2, "loop0", "Loopback", "10.1.0.1/32")), at(2, borrows(up(3, "pc1", "virtio"), 2)),
			at(2, borrows(up(4, "pb1", "virtio"), 2)), at(2, up(5, "loop1", "BVI", "192.168.30.1/24")),
		},
		[]fakeRoute{
			route("0.0.0.0/0", toVia(1, "192.168.50.2")), route("192.168.50.0/24", to(1)), route("10.1.0.0/16", lookIn(2)),
			routeIn(2, "0.0.0.0/0", lookIn(0)), routeIn(2, "10.1.1.2/32", toVia(3, "10.1.1.2")), routeIn(2, "10.1.2.2/32", toVia(4, "10.1.2.2")),
			routeIn(2, "10.1.128.0/17", toVia(5, "192.168.30.2")),
		},
		"10.1.0.0/17=2 10.1.128.0/17=2", "up", "192.168.50.1/24",
	},
	{
		"one pod is not connected yet",
		[]RawInterface{up(1, "up", "dpdk", "192.168.50.1/24"), at(2, up(3, "pc1", "virtio"))},
		[]fakeRoute{
			route("0.0.0.0/0", toVia(1, "192.168.50.2")), route("10.1.0.0/17", lookIn(2)), routeIn(2, "10.1.1.2/32", toVia(3, "10.1.1.2")),
		},
		"10.1.0.0/17=2", "up", "192.168.50.1/24",
	},
	{
		"host in a table of its own, VPP punts to it",
		[]RawInterface{
			up(1, "up", "dpdk", "192.168.50.1/24"), up(2, "pc1", "virtio", "10.1.1.1/24"), up(3, "pb1", "virtio", "10.1.2.1/24"),
			at(10, up(4, "tap0", "virtio", "169.254.0.1/32")),
		},
		[]fakeRoute{
			route("0.0.0.0/0", toVia(1, "192.168.50.2")), route("192.168.50.1/32", own(1)), route("10.1.1.0/24", to(2)), route("10.1.2.0/24", to(3)),
			routeIn(10, "0.0.0.0/0", lookIn(0)), routeIn(10, "192.168.50.1/32", toVia(4, "192.168.50.1")),
		},
		"192.168.50.1/32=10", "up", "192.168.50.1/24",
	},
	{
		"uplink in a table of its own",
		[]RawInterface{at(5, up(1, "up", "dpdk", "192.168.50.1/24")), up(2, "pc1", "virtio", "10.1.1.1/24"), up(3, "pb1", "virtio", "10.1.2.1/24")},
		[]fakeRoute{
			route("0.0.0.0/0", lookIn(5)), route("10.1.1.0/24", to(2)), route("10.1.2.0/24", to(3)), routeIn(5, "0.0.0.0/0", toVia(1, "192.168.50.2")),
			routeIn(5, "192.168.50.0/24", to(1)), routeIn(5, "10.1.0.0/17", lookIn(0)), routeIn(5, "10.1.128.0/17", toVia(1, "192.168.50.3")),
		},
		"0.0.0.0/0=5 10.1.0.0/17=0", "up", "192.168.50.1/24",
	},
	{
		"a table for each pod",
		[]RawInterface{up(1, "up", "dpdk", "192.168.50.1/24"), at(11, up(2, "pc1", "virtio")), at(12, up(3, "pb1", "virtio"))},
		[]fakeRoute{
			route("0.0.0.0/0", toVia(1, "192.168.50.2")), route("10.1.1.2/32", toVia(2, "10.1.1.2")), route("10.1.2.2/32", toVia(3, "10.1.2.2")),
			routeIn(11, "0.0.0.0/0", lookIn(0)), routeIn(12, "0.0.0.0/0", lookIn(0)),
		},
		"10.1.0.0/17=12 10.1.1.2/32=11", "up", "192.168.50.1/24",
	},
	{
		"a second network with an uplink in table 20",
		[]RawInterface{
			up(1, "up", "dpdk", "192.168.50.1/24"), up(2, "pc1", "virtio", "10.1.1.1/24"), up(3, "pb1", "virtio", "10.1.2.1/24"),
			at(20, up(4, "up9", "dpdk", "10.77.9.1/24")),
		},
		[]fakeRoute{
			route("0.0.0.0/0", toVia(1, "192.168.50.2")), route("192.168.50.1/32", own(1)), route("10.1.1.0/24", to(2)), route("10.1.2.0/24", to(3)),
			routeIn(20, "0.0.0.0/0", toVia(4, "10.77.9.2")),
		},
		"", "up", "192.168.50.1/24",
	},
	{
		"uplink, routes and pods in table 7, nothing in table 0",
		[]RawInterface{
			at(7, up(1, "up", "dpdk", "192.168.50.1/24")), at(7, up(2, "pc1", "virtio", "10.1.1.1/24")), at(7, up(3, "pb1", "virtio", "10.1.2.1/24")),
		},
		[]fakeRoute{
			route("0.0.0.0/0", special(fib_types.FIB_API_PATH_TYPE_DROP)), routeIn(7, "0.0.0.0/0", toVia(1, "192.168.50.2")),
			routeIn(7, "192.168.50.0/24", to(1)), routeIn(7, "10.1.1.0/24", to(2)), routeIn(7, "10.1.2.0/24", to(3)),
			routeIn(7, "10.1.128.0/17", toVia(1, "192.168.50.3")),
		},
		"0.0.0.0/0=7", "up", "192.168.50.1/24",
	},
	{
		"routes to other nodes in table 7, no default route, table 0 drops them",
		[]RawInterface{at(7, up(1, "up", "dpdk", "192.168.50.1/24")), up(2, "pc1", "virtio", "10.1.1.1/24"), up(3, "pb1", "virtio", "10.1.2.1/24")},
		[]fakeRoute{
			route("10.1.0.0/16", special(fib_types.FIB_API_PATH_TYPE_DROP)), route("10.1.1.0/24", to(2)), route("10.1.2.0/24", to(3)),
			routeIn(5, "10.1.0.0/16", special(fib_types.FIB_API_PATH_TYPE_DROP)),
			routeIn(7, "192.168.50.0/24", to(1)), routeIn(7, "10.1.128.0/17", toVia(1, "192.168.50.3")),
		},
		"10.1.128.0/17=7 192.168.50.3/32=7", "", "192.168.50.1/24",
	},
	{
		"default routes in tables 5 and 7: the smallest table that leads out",
		[]RawInterface{at(7, up(1, "upb", "dpdk", "192.168.50.1/24")), at(5, up(2, "upa", "dpdk", "10.77.9.1/24"))},
		[]fakeRoute{
			routeIn(3, "0.0.0.0/0", lookIn(0)), routeIn(5, "0.0.0.0/0", toVia(2, "10.77.9.2")), routeIn(7, "0.0.0.0/0", toVia(1, "192.168.50.2")),
			routeIn(7, "192.168.50.0/24", to(1)),
		},
		"0.0.0.0/0=5 192.168.50.3/32=7", "upa", "192.168.50.1/24",
	},
	{
		"a default route in table 0 is enough for other nodes",
		[]RawInterface{up(1, "up", "dpdk", "192.168.50.1/24"), up(2, "pods", "virtio", "10.1.0.1/17"), at(20, up(3, "up9", "dpdk", "10.77.9.1/24"))},
		[]fakeRoute{
			route("0.0.0.0/0", toVia(1, "192.168.50.2")), route("10.1.0.0/17", to(2)), routeIn(20, "10.0.0.0/8", toVia(3, "10.77.9.2")),
		},
		"", "up", "192.168.50.1/24",
	},
	{
		"other nodes behind an interface in a table",
		[]RawInterface{up(1, "up", "dpdk", "192.168.60.1/24"), at(7, up(2, "vlan", "dpdk", "192.168.50.1/24"))},
		[]fakeRoute{
			route("0.0.0.0/0", toVia(1, "192.168.60.2")), route("192.168.50.0/24", lookIn(7)), routeIn(7, "192.168.50.0/24", to(2)),
		},
		"192.168.50.3/32=7", "up", "192.168.50.1/24",
	},
	{
		"two uplinks, the node's address on a loopback",
		[]RawInterface{up(1, "upa", "dpdk", "10.9.1.3/31"), up(2, "upb", "dpdk", "10.9.2.3/31"), up(3, "loop6", "Loopback", "192.168.50.1/32", "fe80::1/10")},
		[]fakeRoute{route("0.0.0.0/0", toVia(1, "10.9.1.2"), toVia(2, "10.9.2.2"))},
		"", "upa", "192.168.50.1/32",
	},
	{
		"unnumbered uplinks",
		[]RawInterface{borrows(up(1, "upa", "dpdk"), 3), borrows(up(2, "upb", "dpdk"), 4), up(3, "loop6", "Loopback", "10.8.0.1/32"), up(4, "loop7", "Loopback", "192.168.50.1/32")},
		[]fakeRoute{route("0.0.0.0/0", to(1), to(2))},
		"", "upa", "192.168.50.1/32",
	},
	{
		"an uplink that borrows",
		[]RawInterface{borrows(up(1, "up", "dpdk"), 2), up(2, "loop6", "Loopback", "192.168.50.1/32")},
		[]fakeRoute{route("0.0.0.0/0", to(1))},
		"", "up", "192.168.50.1/32",
	},
	{
		"a stale route to an index that a loopback has taken over",
		[]RawInterface{up(1, "loop78", "Loopback"), up(2, "up", "dpdk", "192.168.50.1/24")},
		[]fakeRoute{route("0.0.0.0/0", toVia(1, "192.168.50.2"), toVia(2, "192.168.50.2"))},
		"", "up", "192.168.50.1/24",
	},
	{
		"the same, with an address",
		[]RawInterface{up(1, "loop78", "Loopback", "10.8.0.1/32"), up(2, "up", "dpdk", "192.168.50.1/24")},
		[]fakeRoute{route("0.0.0.0/0", toVia(1, "192.168.50.2"), toVia(2, "192.168.50.2"))},
		"", "up", "192.168.50.1/24",
	},
	{
		"only a stale route",
		[]RawInterface{up(1, "loop78", "Loopback"), up(2, "up", "dpdk", "192.168.50.1/24")},
		[]fakeRoute{route("0.0.0.0/0", toVia(1, "192.168.50.2"))},
		"", "", "192.168.50.1/24",
	},
	{
		"a bridge domain's loopback",
		[]RawInterface{up(1, "loop0", "BVI", "192.168.50.1/24")},
		[]fakeRoute{route("0.0.0.0/0", toVia(1, "192.168.50.2"))},
		"", "loop0", "192.168.50.1/24",
	},
	{"tables that lead to each other", nil, []fakeRoute{route("0.0.0.0/0", lookIn(5)), routeIn(5, "0.0.0.0/0", lookIn(0))}, "", "", ""},
}

// tablesText writes the tables of a set as "network=table".
func tablesText(set *messages.InterfaceSet) string {
	var all []string
	for _, n := range set.GetTables() {
		all = append(all, fmt.Sprintf("%s=%d", n.GetNetwork(), n.GetTable()))
	}
	return strings.Join(all, " ")
}

// TestLayouts: interfaces and routes => tables, uplink and addresses of the node. Later rounds find
// the same, and are quiet.
func TestLayouts(t *testing.T) {
	for _, tt := range layouts {
		t.Run(tt.name, func(t *testing.T) {
			vpp := &fakeVPP{interfaces: tt.interfaces, routes: tt.routes}
			set := complete(t, vpp, layoutInput())
			var r Reader
			for round := range 2 * settling {
				diff := cmp.Diff(set, discovered(t, &r, vpp, layoutInput()), protocmp.Transform())
				if diff != "" || round >= settling && r.complete != 0 {
					t.Errorf("round %d, %d complete ones are due: %s", round, r.complete, diff)
				}
			}
			if got := tablesText(set); got != tt.tables {
				t.Errorf("tables %q, want %q", got, tt.tables)
			}
			uplink := ""
			for _, i := range set.GetInterfaces() {
				if set.Uplink != nil && i.GetSwIfIndex() == set.GetUplink() {
					uplink = i.GetName()
				}
			}
			if got := strings.Join(set.GetNodeAddresses(), " "); uplink != tt.uplink || got != tt.addresses {
				t.Errorf("uplink %q, want %q; addresses %q, want %q", uplink, tt.uplink, got, tt.addresses)
			}
		})
	}
}

// TestUnanswered: tables => why VPP may not answer packets to itself, of both families and of IPv6.
func TestUnanswered(t *testing.T) {
	one := []RawInterface{up(1, "pc1", "virtio", "10.1.1.1/24"), up(2, "pb1", "virtio", "10.1.2.1/24")}
	for name, tt := range map[string]struct {
		interfaces []RawInterface
		routes     []fakeRoute
		want       [2]string
	}{
		"table 0":       {one, []fakeRoute{route("10.1.1.0/24", to(1))}, [2]string{}},
		"unused tables": {one, []fakeRoute{routeIn(7, "10.9.0.0/24", to(1))}, [2]string{}},
		"a pod in one": {
			[]RawInterface{one[0], at(2, one[1])},
			[]fakeRoute{routeIn(2, "0.0.0.0/0", lookIn(0))},
			[2]string{"interface pb1 is in table 2, and VPP may leave clients of other tables than 0 without an answer"},
		},
		"one of IPv6": {
			one,
			[]fakeRoute{routeIn(3, "::/0", lookIn(0))},
			[2]string{1: "VPP has the IPv6 table 3, and may leave IPv6 clients of other tables than 0 without an answer"},
		},
	} {
		set := complete(t, &fakeVPP{interfaces: tt.interfaces, routes: tt.routes}, layoutInput())
		if got := [2]string{set.GetUnanswered(), set.GetUnanswered6()}; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestTablesFollowTheCNI: the table of a pod is that of the interface that the CNI reports, also
// before a route leads there.
func TestTablesFollowTheCNI(t *testing.T) {
	in := layoutInput()
	in.Attached = map[string][]string{"pb1": {"n/b1"}}
	set := complete(t, &fakeVPP{
		interfaces: []RawInterface{up(1, "pc1", "virtio", "10.1.1.1/24"), at(2, up(2, "pb1", "virtio"))},
		routes:     []fakeRoute{route("10.1.1.0/24", to(1)), routeIn(2, "0.0.0.0/0", lookIn(0))},
	}, in)
	if got, want := tablesText(set), "10.1.2.2/32=2"; got != want {
		t.Errorf("tables %q, want %q", got, want)
	}
}

// meshed is a node with n pods in table 2 and as many other nodes, whose pods are behind a tunnel
// in table 2.
func meshed(n int) (*fakeVPP, Input) {
	vpp, in := crowd(n)
	vpp.routes = append(vpp.routes, route("10.1.0.0/16", lookIn(2)), route("10.2.0.0/16", lookIn(2)), routeIn(2, "0.0.0.0/0", lookIn(0)), routeIn(2, "10.2.0.0/16", to(uint32(n+2))))
	vpp.interfaces = append(vpp.interfaces, at(2, up(uint32(n+2), "vxlan", "VXLAN", "10.3.0.1/24")))
	for k := range n {
		vpp.interfaces[k+2].Table, vpp.routes[k+2].table = 2, 2
		in.Remote = append(in.Remote, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 2, byte(k), 0}), 24))
	}
	return vpp, in
}

// TestCostOfTables: without tables nothing is asked for them; with tables a complete round costs a
// few requests for each interface, pod and node, a quiet round does not depend on their numbers.
func TestCostOfTables(t *testing.T) {
	plain, in := crowd(20)
	in.Remote = IPv4Networks([]string{"10.2.0.0/24", "10.2.1.0/24"})
	if complete(t, plain, in); plain.asked > 0 || plain.lookups != 2+20+1+1 {
		t.Errorf("without tables %d requests for tables, %d lookups", plain.asked, plain.lookups)
	}
	for _, n := range []int{4, 40, 200} {
		vpp, in := meshed(n)
		var r Reader
		if set := discovered(t, &r, vpp, in); tablesText(set) == "" || vpp.asked != n+2 || vpp.lookups > 4*n+8 {
			t.Errorf("%d pods: tables %q, %d requests for tables, %d lookups", n, tablesText(set), vpp.asked, vpp.lookups)
		}
		for range settling {
			discovered(t, &r, vpp, in)
		}
		for round := range n {
			vpp.asked = 0
			dumps, lookups := vpp.requests(func() { discovered(t, &r, vpp, in) })
			if dumps > 4+2+2*defaultShare || vpp.asked > 1+defaultShare || lookups > 3+4*defaultShare {
				t.Fatalf("%d pods, round %d: %d dumps, %d lookups, %d requests for tables", n, round, dumps, lookups, vpp.asked)
			}
		}
	}
}

// TestReaderSeesTables: a change of tables is seen when its turn comes, a new table at once.
func TestReaderSeesTables(t *testing.T) {
	const pods = 40
	for name, change := range map[string]func(*fakeVPP, *Input){
		"a pod moves":               func(v *fakeVPP, _ *Input) { v.interfaces[20].Table, v.routes[20].table = 0, 0 },
		"the uplink moves":          func(v *fakeVPP, _ *Input) { v.interfaces[1].Table = 5 },
		"a node comes":              func(_ *fakeVPP, in *Input) { in.Remote = append(in.Remote, netip.MustParsePrefix("10.4.0.0/24")) },
		"the route of a node":       func(v *fakeVPP, _ *Input) { v.routes = append(v.routes, route("10.2.7.0/24", to(1))) },
		"pods are in another table": func(v *fakeVPP, _ *Input) { v.routes[len(v.routes)-4].paths[0] = lookIn(7) },
		"no table but 0 is left": func(v *fakeVPP, _ *Input) {
			v.routes = slices.DeleteFunc(v.routes, func(r fakeRoute) bool { return r.table != 0 })
		},
		"interfaces leave the table": func(v *fakeVPP, _ *Input) { v.interfaces[len(v.interfaces)-1].Table = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			vpp, in := meshed(pods)
			var r Reader
			for range settling + 1 {
				discovered(t, &r, vpp, in)
			}
			change(vpp, &in)
			want := complete(t, vpp, in)
			for range (pods + 3 + defaultShare - 1) / defaultShare {
				discovered(t, &r, vpp, in)
			}
			if diff := cmp.Diff(want, discovered(t, &r, vpp, in), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

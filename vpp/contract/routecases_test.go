package contract

import (
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// lookup returns the route of an address.
func lookup(t testing.TB, v *rig, table uint32, exact uint8, text string) *ip.IPRouteLookupReply {
	t.Helper()
	prefix, err := ip_types.ParsePrefix(text)
	if err != nil {
		t.Fatal(err)
	}
	return ask[*ip.IPRouteLookupReply](t, v, &ip.IPRouteLookup{TableID: table, Exact: exact, Prefix: prefix})
}

// leads fails the test unless the longest match of an address is the prefix, with one path of the
// type through the interface.
func leads(t testing.TB, v *rig, addr, prefix string, kind fib_types.FibPathType, index interface_types.InterfaceIndex) {
	t.Helper()
	got := lookup(t, v, 0, 0, addr).Route
	if got.Prefix.String() != prefix || len(got.Paths) != 1 || got.Paths[0].Type != kind || got.Paths[0].SwIfIndex != uint32(index) {
		t.Errorf("%s leads to %s %+v, want %s by %s on interface %d", addr, got.Prefix, got.Paths, prefix, kind, index)
	}
}

// route makes the message that adds a route with one path.
func route(t testing.TB, text string, path fib_types.FibPath) *ip.IPRouteAddDel {
	t.Helper()
	prefix, err := ip_types.ParsePrefix(text)
	if err != nil {
		t.Fatal(err)
	}
	return &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: prefix, NPaths: 1, Paths: []fib_types.FibPath{path}}}
}

// via makes a path to a next hop; index none makes it recursive.
func via(index interface_types.InterfaceIndex, hop [4]byte) fib_types.FibPath {
	path := fib_types.FibPath{SwIfIndex: uint32(index), Proto: fib_types.FIB_API_PATH_NH_PROTO_IP4, Weight: 1}
	path.Nh.Address.SetIP4(hop)
	return path
}

const (
	normal      = fib_types.FIB_API_PATH_TYPE_NORMAL
	toLocal     = fib_types.FIB_API_PATH_TYPE_LOCAL
	dropped     = fib_types.FIB_API_PATH_TYPE_DROP
	unreachable = fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH
)

// pod creates an interface with the address 10.0.0.1/24.
func pod(t testing.TB, v *rig) interface_types.InterfaceIndex {
	t.Helper()
	index := loopback(t, v)
	v.expect(t, ok, up(index))
	v.expect(t, ok, address(t, index, "10.0.0.1/24"))
	return index
}

var routeCases = []contractCase{
	{"route/nothing leads nowhere", func(t *testing.T, v *rig) {
		leads(t, v, "10.9.9.9/32", "0.0.0.0/0", dropped, none)
		leads(t, v, "0.0.0.0/0", "0.0.0.0/0", dropped, none)
	}},
	{"route/connected, own and neighbour", func(t *testing.T, v *rig) {
		index := pod(t, v)
		leads(t, v, "10.0.0.1/32", "10.0.0.1/32", toLocal, index)
		leads(t, v, "10.0.0.2/32", "10.0.0.1/24", normal, index)
		v.expect(t, ok, neighbour(t, index, "10.0.0.2"))
		leads(t, v, "10.0.0.2/32", "10.0.0.2/32", normal, index)
		leads(t, v, "10.0.0.3/32", "10.0.0.1/24", normal, index)
	}},
	{"route/exact", func(t *testing.T, v *rig) {
		pod(t, v)
		for text, want := range map[string]int32{"10.0.0.1/32": ok, "10.0.0.0/24": ok, "10.0.0.9/32": noSuchEntry, "0.0.0.0/0": ok} {
			prefix, err := ip_types.ParsePrefix(text)
			if err != nil {
				t.Fatal(err)
			}
			v.expect(t, want, &ip.IPRouteLookup{Exact: 1, Prefix: prefix})
		}
	}},
	{"route/no such table", func(t *testing.T, v *rig) {
		prefix, err := ip_types.ParsePrefix("10.0.0.1/32")
		if err != nil {
			t.Fatal(err)
		}
		if got := v.retval(t, &ip.IPRouteLookup{TableID: 99, Prefix: prefix}); got == ok {
			t.Error("a lookup in a table that does not exist succeeds")
		}
	}},
	{"route/host route to an interface", func(t *testing.T, v *rig) {
		pod(t, v)
		index := loopback(t, v)
		v.expect(t, ok, up(index))
		v.expect(t, ok, route(t, "10.1.1.2/32", via(index, [4]byte{10, 1, 1, 2})))
		leads(t, v, "10.1.1.2/32", "10.1.1.2/32", normal, index)
		leads(t, v, "10.1.1.3/32", "0.0.0.0/0", dropped, none)
	}},
	{"route/default by a next hop", func(t *testing.T, v *rig) {
		index := pod(t, v)
		v.expect(t, ok, route(t, "0.0.0.0/0", via(index, [4]byte{10, 0, 0, 254})))
		leads(t, v, "8.8.8.8/32", "0.0.0.0/0", normal, index)
		got := lookup(t, v, 0, 1, "0.0.0.0/0").Route.Paths[0].Nh.Address.GetIP4()
		check(t, "next hop", ip_types.IP4Address{10, 0, 0, 254}, got)
	}},
	{"route/recursive", func(t *testing.T, v *rig) {
		index := pod(t, v)
		v.expect(t, ok, route(t, "10.5.0.0/16", via(none, [4]byte{10, 0, 0, 7})))
		got := lookup(t, v, 0, 0, "10.5.1.1/32").Route
		if len(got.Paths) != 1 || got.Paths[0].SwIfIndex != uint32(none) || got.Paths[0].Type != normal {
			t.Fatalf("paths %+v", got.Paths)
		}
		check(t, "next hop", ip_types.IP4Address{10, 0, 0, 7}, got.Paths[0].Nh.Address.GetIP4())
		// The prefix of the next hop is VPP's affair: it keeps an entry of its own for it while a
		// route needs it.
		hop := lookup(t, v, 0, 0, "10.0.0.7/32").Route.Paths
		if len(hop) != 1 || hop[0].SwIfIndex != uint32(index) || hop[0].Type != normal {
			t.Errorf("the next hop leads to %+v", hop)
		}
	}},
	{"route/unreachable below a row", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		msg := route(t, "10.96.0.0/12", fib_types.FibPath{SwIfIndex: uint32(none), Type: unreachable, Weight: 1})
		v.expect(t, ok, msg)
		leads(t, v, "10.96.0.1/32", "10.96.0.0/12", unreachable, none)
		msg.IsAdd = false
		v.expect(t, ok, msg)
		leads(t, v, "10.96.0.1/32", "0.0.0.0/0", dropped, none)
	}},
	{"route/address of an interface that is down", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		v.expect(t, ok, address(t, index, "10.0.0.1/24"))
		leads(t, v, "10.0.0.2/32", "0.0.0.0/0", dropped, none)
	}},
	{"route/table of pods", func(t *testing.T, v *rig) {
		v.expect(t, ok, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 7}})
		index := loopback(t, v)
		v.expect(t, ok, up(index))
		msg := route(t, "10.1.1.2/32", via(index, [4]byte{10, 1, 1, 2}))
		msg.Route.TableID = 7
		v.expect(t, ok, msg)
		if got := lookup(t, v, 7, 0, "10.1.1.2/32").Route; got.TableID != 7 || got.Paths[0].SwIfIndex != uint32(index) {
			t.Errorf("route %+v", got)
		}
		leads(t, v, "10.1.1.2/32", "0.0.0.0/0", dropped, none)
	}},
}

var sessionCases = []contractCase{
	{"session/none", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		if n := len(dump[*nat44_ed.Nat44UserDetails](t, v, &nat44_ed.Nat44UserDump{})); n != 0 {
			t.Errorf("%d users", n)
		}
		if n := len(dump[*nat44_ed.Nat44UserSessionV3Details](t, v, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: [4]byte{10, 1, 1, 1}})); n != 0 {
			t.Errorf("%d sessions", n)
		}
		v.expect(t, noSuchEntry, &nat44_ed.Nat44DelSession{Address: [4]byte{10, 1, 1, 1}, Port: 8080, Protocol: 6, ExtHostAddress: [4]byte{10, 1, 1, 9}, ExtHostPort: 1000})
	}},
}

package simulator

import (
	"net/netip"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/fib"
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
	"github.com/troupe-vpp/troupe/vpp/simulator/wire"
)

// prefix parses an API prefix.
func prefix(t testing.TB, s string) ip_types.Prefix {
	t.Helper()
	p, err := ip_types.ParsePrefix(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lookup asks for a route.
func (r *rig) lookup(dst string, exact uint8) *ip.IPRouteLookupReply {
	r.t.Helper()
	return invoke[ip.IPRouteLookupReply](r.t, r.conn, &ip.IPRouteLookup{Exact: exact, Prefix: prefix(r.t, dst)})
}

func TestRouteLookup(t *testing.T) {
	r := bareRig(t, Options{})
	if err := r.AddNeighbor("host-up", netip.MustParseAddr("192.168.50.77"), false); err != nil {
		t.Fatal(err)
	}
	r.ok(route("10.96.0.0/12", fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH))
	uplink := uint32(r.index("host-up"))
	tests := []struct {
		dst    string
		exact  uint8
		retval int32
		prefix string
		typ    fib_types.FibPathType
		swIf   uint32
	}{
		{"10.1.2.2/32", 0, 0, "10.1.2.2/32", fib_types.FIB_API_PATH_TYPE_NORMAL, uint32(r.index("p2"))},
		{"192.168.50.77/32", 0, 0, "192.168.50.77/32", fib_types.FIB_API_PATH_TYPE_NORMAL, uplink},
		{"192.168.50.78/32", 0, 0, "192.168.50.1/24", fib_types.FIB_API_PATH_TYPE_NORMAL, uplink},
		{"192.168.50.1/32", 0, 0, "192.168.50.1/32", fib_types.FIB_API_PATH_TYPE_LOCAL, uplink},
		{"192.168.50.255/32", 0, 0, "192.168.50.255/32", fib_types.FIB_API_PATH_TYPE_DROP, pool.None},
		{"192.168.50.0/24", 1, 0, "192.168.50.1/24", fib_types.FIB_API_PATH_TYPE_NORMAL, uplink},
		{"192.168.50.78/32", 1, vnet.RetNoSuchEntry, "", 0, 0},
		{"10.97.1.1/32", 0, 0, "10.96.0.0/12", fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, pool.None},
		{"8.8.8.8/32", 0, 0, "0.0.0.0/0", fib_types.FIB_API_PATH_TYPE_NORMAL, uplink},
		{"0.0.0.0/0", 1, 0, "0.0.0.0/0", fib_types.FIB_API_PATH_TYPE_NORMAL, uplink},
		{"224.0.0.1/32", 0, 0, "224.0.0.0/4", fib_types.FIB_API_PATH_TYPE_DROP, pool.None},
		{"::/0", 1, 0, "::/0", fib_types.FIB_API_PATH_TYPE_DROP, pool.None},
	}
	for _, tt := range tests {
		got := r.lookup(tt.dst, tt.exact)
		if got.Retval != tt.retval {
			t.Errorf("%s: retval %d, want %d", tt.dst, got.Retval, tt.retval)
			continue
		}
		if tt.retval != 0 {
			continue
		}
		p := got.Route.Paths[0]
		if got.Route.Prefix.String() != tt.prefix || p.Type != tt.typ || p.SwIfIndex != tt.swIf {
			t.Errorf("%s: %s %s on %d, want %s %s on %d", tt.dst, got.Route.Prefix, p.Type, p.SwIfIndex, tt.prefix, tt.typ, tt.swIf)
		}
	}
	v2 := invoke[ip.IPRouteLookupV2Reply](t, r.conn, &ip.IPRouteLookupV2{Prefix: prefix(t, "10.1.2.2/32")})
	if v2.Route.Src != uint8(fib.SourceAPI) || v2.Route.StatsIndex == 0 {
		t.Errorf("v2 %+v", v2.Route)
	}
	if got := retval[ip.IPRouteLookupReply](t, r.conn, &ip.IPRouteLookup{TableID: 9}); got != vnet.RetNoSuchFIB {
		t.Errorf("unknown table: %d", got)
	}
}

func TestRouteReturnCodes(t *testing.T) {
	r := bareRig(t, Options{})
	path := func(swIf, table uint32, nextHop string) fib_types.FibPath {
		p := fib_types.FibPath{SwIfIndex: swIf, TableID: table}
		if nextHop != "" {
			p.Nh.Address = wire.ToAddress(netip.MustParseAddr(nextHop)).Un
		}
		return p
	}
	add := func(dst string, table uint32, multi bool, paths ...fib_types.FibPath) *ip.IPRouteAddDel {
		return &ip.IPRouteAddDel{IsAdd: true, IsMultipath: multi, Route: ip.IPRoute{TableID: table, Prefix: prefix(t, dst), Paths: paths}}
	}
	del := func(m *ip.IPRouteAddDel) *ip.IPRouteAddDel { m.IsAdd = false; return m }
	p2, p3 := uint32(r.index("p2")), uint32(r.index("p3"))
	for i, s := range []step{
		{add("10.5.0.0/16", 0, false, path(p2, 0, "")), 0},
		{add("10.5.0.0/16", 9, false, path(p2, 0, "")), vnet.RetNoSuchFIB},
		{add("10.5.0.0/16", 0, false), vnet.RetNoPathsInRoute},
		{add("10.5.0.0/16", 0, true), vnet.RetNoPathsInRoute},
		{add("10.5.0.0/16", 0, false, path(99, 0, "")), vnet.RetNoMatchingInterface},
		{add("10.5.0.0/16", 0, false, path(pool.None, 9, "10.1.2.2")), vnet.RetNoSuchFIB},
		{add("10.5.0.0/16", 0, true, path(p3, 0, "10.1.3.2")), 0},
		{add("10.5.0.0/16", 0, false, fib_types.FibPath{Type: fib_types.FIB_API_PATH_TYPE_DVR}), vnet.RetUnimplemented},
		{del(add("10.5.0.0/16", 0, true, path(p2, 0, ""))), 0},
		{del(add("10.6.0.0/16", 0, false)), 0},
		{&ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: ip_types.Prefix{Len: 64}, Paths: []fib_types.FibPath{path(p2, 0, "")}}}, vnet.RetInvalidPrefixLength},
	} {
		if got := r.call(s.req); got != s.want {
			t.Errorf("step %d: retval %d, want %d", i, got, s.want)
		}
	}
	if got := r.lookup("10.5.1.1/32", 0).Route; got.NPaths != 1 || got.Paths[0].SwIfIndex != p3 {
		t.Errorf("multipath: %+v", got)
	}
	r.ok(del(add("10.5.0.0/16", 0, true, path(p3, 0, "10.1.3.2"))))
	if got := r.lookup("10.5.1.1/32", 0).Route; got.Prefix.Len != 0 {
		t.Errorf("route without paths stays: %+v", got)
	}
}

func TestForwarding(t *testing.T) {
	r := bareRig(t, Options{})
	p := netip.MustParsePrefix
	for _, rt := range []Route{
		{Prefix: p("172.20.0.0/16"), NextHop: backendA},
		{Prefix: p("172.21.0.0/16"), NextHop: netip.MustParseAddr("172.20.0.1")},
		{Prefix: p("172.22.0.0/16"), NextHop: netip.MustParseAddr("172.22.0.1")},
		{Prefix: p("172.23.0.0/16"), Action: RouteReject},
		{Prefix: p("172.24.0.0/16"), Action: RouteDrop},
		{Prefix: p("172.25.0.0/16"), Action: RouteLocal},
		{Prefix: p("172.26.0.0/16"), Interface: "p3"},
	} {
		if err := r.AddRoute(rt); err != nil {
			t.Fatal(err)
		}
	}
	for dst, want := range map[string]string{
		"10.1.2.2":      "p2",
		"172.20.1.1":    "p2",
		"172.21.1.1":    "p2",
		"172.22.1.1":    "recursion loop",
		"172.23.1.1":    "rejected",
		"172.24.1.1":    "dropped",
		"172.25.1.1":    "local",
		"172.26.1.1":    "p3",
		"192.168.50.9":  "host-up",
		"192.168.50.1":  "local",
		"192.168.50.0":  "dropped",
		"9.9.9.9":       "host-up",
		"240.0.0.1":     "dropped",
		"255.255.255.1": "dropped",
	} {
		v := r.Send(udp(clientPod, 1, at(netip.MustParseAddr(dst), 9)))
		if v.Out != want && !strings.Contains(v.String(), want) {
			t.Errorf("%s: %s, want %s", dst, v, want)
		}
	}
	if err := r.DelRoute(0, p("172.26.0.0/16")); err != nil {
		t.Fatal(err)
	}
	if v := r.Send(udp(clientPod, 1, at(netip.MustParseAddr("172.26.1.1"), 9))); v.Out != "host-up" {
		t.Error(v)
	}
}

func TestPathsShareFlows(t *testing.T) {
	r := bareRig(t, Options{})
	rt := &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: prefix(t, "10.7.0.0/16"), Paths: []fib_types.FibPath{
		{SwIfIndex: uint32(r.index("p2")), Weight: 1},
		{SwIfIndex: uint32(r.index("p3")), Weight: 3},
		{SwIfIndex: uint32(r.index("host-up")), Preference: 5},
	}}}
	r.ok(rt)
	count := func() map[string]int {
		out := make(map[string]int)
		for i := range 400 {
			dst := netip.AddrFrom4([4]byte{10, 7, byte(i >> 8), byte(i)})
			v, again := r.Send(udp(clientPod, 1, at(dst, 9))), r.Send(udp(clientPod, 1, at(dst, 9)))
			if v.Out != again.Out {
				t.Fatalf("flow moves: %s, %s", v, again)
			}
			out[v.Out]++
		}
		return out
	}
	if n := count(); n["p2"] < 60 || n["p3"] < 240 || n["host-up"] != 0 {
		t.Errorf("shares %v", n)
	}
	for _, name := range []string{"p2", "p3"} {
		if err := r.SetInterface(name, false); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n["host-up"] != 400 {
		t.Errorf("backup path: %v", n)
	}
}

func TestVRF(t *testing.T) {
	r := bareRig(t, Options{})
	r.enableNAT()
	if _, err := r.AddInterfaceSpec(InterfaceSpec{Name: "red", TableID: 5, Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.50.0.1/24")}}); err != nil {
		t.Fatal(err)
	}
	red := Packet{In: "red", Src: at(netip.MustParseAddr("10.50.0.2"), 1), Dst: at(backendA, 1), Proto: ProtoUDP}
	if v := r.Send(red); v.Action != Dropped {
		t.Errorf("tables are not separate: %s", v)
	}
	r.role("red", nat_types.NAT_IS_INSIDE)
	r.role("red", nat_types.NAT_IS_OUTSIDE)
	row := lb(at(vip, 80), selfTwice, 10, at(backendA, 8080), at(backendA, 8080))
	row.Protocol = ProtoUDP
	r.ok(row)
	red.Dst = at(vip, 80)
	if v := r.Send(red); v.Out != "p2" {
		t.Errorf("backend in the default table: %s", v)
	}
	row = lb(at(otherVIP, 80), selfTwice, 10, at(backendA, 8080), at(backendA, 8080))
	row.Protocol = ProtoUDP
	for i := range row.Locals {
		row.Locals[i].VrfID = 77
	}
	r.ok(row)
	red.Dst = at(otherVIP, 80)
	if v := r.Send(red); v.Action != Dropped {
		t.Errorf("backend in a table that was made for it: %s", v)
	}
	if got := retval[ip.IPRouteLookupReply](t, r.conn, &ip.IPRouteLookup{TableID: 77}); got != 0 {
		t.Errorf("table 77 was not created: %d", got)
	}
}

func TestTableLifetime(t *testing.T) {
	r := bareRig(t, Options{})
	table := &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 5}}
	del := &ip.IPTableAddDel{Table: ip.IPTable{TableID: 5}}
	exists := func() bool {
		return retval[ip.IPRouteLookupReply](t, r.conn, &ip.IPRouteLookup{TableID: 5}) == 0
	}
	r.ok(del)
	r.ok(table)
	r.ok(&interfaces.SwInterfaceSetTable{SwIfIndex: r.index("p1"), VrfID: 5})
	r.ok(del)
	if !exists() {
		t.Error("table in use by an interface is gone")
	}
	r.ok(&interfaces.SwInterfaceSetTable{SwIfIndex: r.index("p1")})
	r.ok(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, InsideVrf: 5})
	r.ok(del)
	if !exists() {
		t.Error("table in use by NAT is gone")
	}
	r.ok(&nat44_ed.Nat44EdPluginEnableDisable{})
	r.ok(del)
	if exists() {
		t.Error("table stays")
	}
	r.ok(table)
	if !exists() {
		t.Error("index is not reused")
	}
}

func TestRouteDump(t *testing.T) {
	r := bareRig(t, Options{})
	all := dump[ip.IPRouteV2Details](t, r.conn, &ip.IPRouteV2Dump{})
	own := dump[ip.IPRouteV2Details](t, r.conn, &ip.IPRouteV2Dump{Src: uint8(fib.SourceAPI)})
	old := dump[ip.IPRouteDetails](t, r.conn, &ip.IPRouteDump{})
	if len(own) != 4 || len(all) != len(old) || len(all) != 12 {
		t.Errorf("%d routes, %d of the API, %d in the old dump", len(all), len(own), len(old))
	}
	if none := dump[ip.IPRouteV2Details](t, r.conn, &ip.IPRouteV2Dump{Table: ip.IPTable{TableID: 9}}); len(none) != 0 {
		t.Errorf("unknown table has %d routes", len(none))
	}
}

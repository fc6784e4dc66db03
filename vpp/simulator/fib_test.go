package simulator

import (
	"net/netip"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

func TestForwarding(t *testing.T) {
	r := bareRig(t, Options{})
	p := netip.MustParsePrefix
	for _, rt := range []Route{
		{Prefix: p("172.20.0.0/16"), NextHop: backendA},
		{Prefix: p("172.21.0.0/16"), NextHop: netip.MustParseAddr("172.20.0.1")},
		{Prefix: p("172.22.0.0/16"), NextHop: netip.MustParseAddr("172.22.0.1")},
		{Prefix: p("172.23.0.0/16"), Action: RouteReject},
		{Prefix: p("172.24.0.0/16"), Action: RouteDrop},
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
	if err := r.DelRoute(p("172.26.0.0/16")); err != nil {
		t.Fatal(err)
	}
	if v := r.Send(udp(clientPod, 1, at(netip.MustParseAddr("172.26.1.1"), 9))); v.Out != "host-up" {
		t.Error(v)
	}
}

// TestSessionLayer: session layer, source and protocol => what becomes of a packet to a route of
// type LOCAL. As in VPP, a source without a route in the table of that route is not answered.
func TestSessionLayer(t *testing.T) {
	stranger := netip.MustParseAddr("240.0.0.9")
	for _, tt := range []struct {
		layer bool
		src   netip.Addr
		proto uint8
		want  Action
	}{
		{false, clientPod, ProtoTCP, Local},
		{false, clientPod, ProtoUDP, Local},
		{true, clientPod, ProtoTCP, Rejected},
		{true, clientPod, ProtoUDP, Rejected},
		{true, clientPod, ProtoICMP, Local},
		{true, stranger, ProtoTCP, Dropped},
		{true, netip.MustParseAddr("192.168.50.1"), ProtoTCP, Dropped}, // an address of VPP
	} {
		r := bareRig(t, Options{SessionLayer: tt.layer})
		r.ok(route("10.96.0.0/16", fib_types.FIB_API_PATH_TYPE_LOCAL))
		r.ok(route("240.0.0.0/8", fib_types.FIB_API_PATH_TYPE_DROP))
		v := r.Send(Packet{In: "p1", Src: at(tt.src, 9), Dst: at(netip.MustParseAddr("10.96.7.7"), 80), Proto: tt.proto, Flags: SYN})
		if v.Action != tt.want {
			t.Errorf("%+v: %s", tt, v)
		}
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

// sourcedRoute makes the message that adds a route of a source with one path of the given type.
func sourcedRoute(t testing.TB, source uint8, text string, kind fib_types.FibPathType) *ip.IPRouteAddDelV2 {
	t.Helper()
	prefix, err := ip_types.ParsePrefix(text)
	if err != nil {
		t.Fatal(err)
	}
	return &ip.IPRouteAddDelV2{IsAdd: true, Route: ip.IPRouteV2{
		Src: source, Prefix: prefix, NPaths: 1, Paths: []fib_types.FibPath{{SwIfIndex: vnet.None, Type: kind, Weight: 1}},
	}}
}

// TestRouteOfNoSource: VPP reads beyond its table, so the simulated one always dies.
func TestRouteOfNoSource(t *testing.T) {
	r := bareRig(t, Options{})
	remove := sourcedRoute(t, 99, "10.96.0.0/16", fib_types.FIB_API_PATH_TYPE_DROP)
	remove.IsAdd = false
	r.ok(remove)
	r.fire(sourcedRoute(t, 99, "10.96.0.0/16", fib_types.FIB_API_PATH_TYPE_DROP))
	until(t, "VPP to die", func() bool { return !r.Alive() })
}

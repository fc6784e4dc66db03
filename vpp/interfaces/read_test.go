package interfaces

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.fd.io/govpp/binapi/fib_types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// node is a node with an uplink, two pods, a tunnel, a bridge domain and VPP's own interfaces.
func node() *fakeVPP {
	down := up(7, "host-off", "af_packet", "10.9.0.1/24")
	down.AdminUp = false
	borrower := up(3, "tap2", "virtio")
	borrower.Unnumbered, borrower.Lender = true, 5
	return &fakeVPP{
		interfaces: []RawInterface{
			{Index: 0, Name: "local0", Device: "local"},
			up(1, "host-up", "af_packet", "192.168.50.1/24", "192.168.50.9/24", "fd00::1/64", "fe80::1/10"),
			up(2, "tap1", "virtio", "10.1.1.1/24"),
			borrower,
			up(4, "vxlan_tunnel0", "VXLAN"),
			up(5, "loop0", "Loopback", "10.1.0.1/32"),
			up(6, "loop1", "Loopback", "10.3.0.1/24"),
			down,
			up(8, "tap9", "virtio"),
			up(9, "ipip0", "IPIP", "10.4.0.1/30"),
		},
		bridges: []uint32{6},
		routes: []fakeRoute{
			route("0.0.0.0/0", via("192.168.50.254")),
			route("::/0", special(fib_types.FIB_API_PATH_TYPE_DROP)),
			route("192.168.50.0/24", to(1)),
			route("192.168.50.1/32", fib_types.FibPath{SwIfIndex: 1, Type: fib_types.FIB_API_PATH_TYPE_LOCAL}),
			route("10.1.1.0/24", to(2)),
			route("10.1.2.2/32", to(3)),
			route("10.1.3.3/32", via("10.1.2.2")),
		},
	}
}

// pods are the pods of the node: two with an interface, one whose interface is not there yet, and
// one of the host.
func pods() []*messages.Pod {
	return []*messages.Pod{
		{Namespace: "default", Name: "web", Addresses: []string{"10.1.1.2"}},
		{Namespace: "default", Name: "db", Addresses: []string{"10.1.2.2", "10.1.3.3"}},
		{Namespace: "default", Name: "new", Addresses: []string{"10.1.7.7"}},
		{Namespace: "kube-system", Name: "proxy", Addresses: []string{"192.168.50.1"}, HostNetwork: true},
	}
}

func TestDiscover(t *testing.T) {
	in := Input{Pods: pods(), LocalEndpoints: []string{"10.1.2.2", "192.168.50.1", "nonsense", "10.1.7.7"}, Boot: "b1"}
	got, err := new(Reader).Discover(t.Context(), node(), in)
	if err != nil {
		t.Fatal(err)
	}
	const (
		other    = messages.InterfaceKind_INTERFACE_OTHER
		internal = messages.InterfaceKind_INTERFACE_INTERNAL
		pod      = messages.InterfaceKind_INTERFACE_POD
		uplink   = messages.InterfaceKind_INTERFACE_UPLINK
	)
	iface := func(index uint32, name string, kind messages.InterfaceKind, roles string, addresses ...string) *messages.Interface {
		return &messages.Interface{
			SwIfIndex: index, Name: name, Kind: kind, AdminUp: true, LinkUp: true, Addresses: addresses,
			Frontend: roles != "", Backend: roles == "both",
		}
	}
	web := iface(2, "tap1", pod, "frontend", "10.1.1.1/24")
	web.Pods = []string{"default/web"}
	db := iface(3, "tap2", pod, "both")
	db.Pods = []string{"default/db"}
	web.Local, db.Local = true, true
	host := iface(1, "host-up", uplink, "both", "192.168.50.1/24", "192.168.50.9/24", "fd00::1/64", "fe80::1/10")
	host.OtherProtocols = "the packets of tunnel ipip0"
	local0 := iface(0, "local0", internal, "")
	local0.AdminUp, local0.LinkUp = false, false
	off := iface(7, "host-off", other, "", "10.9.0.1/24")
	off.AdminUp = false
	want := &messages.InterfaceSet{
		Boot: "b1", Uplink: proto.Uint32(1), Unplaced: []string{"10.1.7.7"}, NodeAddresses: []string{"192.168.50.1/24", "192.168.50.9/24", "fd00::1/64"},
		Interfaces: []*messages.Interface{
			local0, host,
			web, db,
			iface(4, "vxlan_tunnel0", other, ""),
			iface(5, "loop0", internal, "", "10.1.0.1/32"),
			iface(6, "loop1", other, "both", "10.3.0.1/24"),
			off,
			iface(8, "tap9", other, ""),
			iface(9, "ipip0", other, "both", "10.4.0.1/30"),
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestDiscoverAsksEachQuestionOnce(t *testing.T) {
	vpp := node()
	in := Input{Pods: append(pods(), pods()...), LocalEndpoints: []string{"10.1.1.2", "10.1.2.2"}}
	if _, err := new(Reader).Discover(t.Context(), vpp, in); err != nil {
		t.Fatal(err)
	}
	// Two default routes, four addresses, the next hop of the default route; the next hop of
	// 10.1.3.3 is known by then. Two rounds.
	if vpp.lookups != 7 {
		t.Errorf("%d lookups, want 7", vpp.lookups)
	}
	if vpp.batches > 4 {
		t.Errorf("%d batches", vpp.batches)
	}
}

func TestDiscoverErrors(t *testing.T) {
	required := []string{"sw_interface_dump", "ip_address_dump", "ip_route_lookup"}
	for _, name := range append(required, "ip_unnumbered_dump", "bridge_domain_dump", "ip_table_dump") {
		t.Run(name, func(t *testing.T) {
			vpp := node()
			vpp.broken = name
			if set, err := new(Reader).Discover(t.Context(), vpp, Input{Pods: pods()}); !errors.Is(err, link.ErrUnknown) || set != nil {
				t.Errorf("Discover = %v, %v; half a set must not be given out", set, err)
			}
		})
	}
	for _, name := range []string{"ip_unnumbered_dump", "bridge_domain_dump", "ip_table_dump"} {
		t.Run("without "+name, func(t *testing.T) {
			vpp := node()
			vpp.missing = name
			if _, err := new(Reader).Discover(t.Context(), vpp, Input{Pods: pods()}); err != nil {
				t.Errorf("Discover = %v", err)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := new(Reader).Discover(ctx, node(), Input{}); !errors.Is(err, context.Canceled) {
			t.Errorf("Discover = %v", err)
		}
	})
}

func TestRoutes(t *testing.T) {
	inTable := func(table uint32, r fakeRoute) fakeRoute {
		r.table = table
		return r
	}
	lookupIn := func(table uint32) fib_types.FibPath { return fib_types.FibPath{SwIfIndex: noInterface, TableID: table} }
	backup := to(9)
	backup.Preference = 1
	tests := []struct {
		name   string
		routes []fakeRoute
		want   []uint32
	}{
		{"host route", []fakeRoute{route("10.0.0.1/32", to(3))}, []uint32{3}},
		{"connected prefix", []fakeRoute{route("10.0.0.0/24", to(3))}, []uint32{3}},
		{"longest match", []fakeRoute{route("10.0.0.0/8", to(4)), route("10.0.0.0/24", to(3))}, []uint32{3}},
		{"several paths", []fakeRoute{route("10.0.0.1/32", to(5), to(3), to(5))}, []uint32{3, 5}},
		{"backup path", []fakeRoute{route("10.0.0.1/32", backup, to(3))}, []uint32{3}},
		{"default route", []fakeRoute{route("0.0.0.0/0", to(3))}, nil},
		{"no route", nil, nil},
		{"drop", []fakeRoute{route("10.0.0.0/8", special(fib_types.FIB_API_PATH_TYPE_DROP))}, nil},
		{"reject", []fakeRoute{route("10.0.0.0/8", special(fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH))}, nil},
		{"own address", []fakeRoute{route("10.0.0.1/32", fib_types.FibPath{SwIfIndex: 3, Type: fib_types.FIB_API_PATH_TYPE_LOCAL})}, nil},
		{"recursive", []fakeRoute{route("10.0.0.1/32", via("10.2.0.1")), route("10.2.0.0/24", via("10.3.0.1")), route("10.3.0.1/32", to(3))}, []uint32{3}},
		{"recursive over the default route", []fakeRoute{route("10.0.0.1/32", via("10.2.0.1")), route("0.0.0.0/0", to(3))}, []uint32{3}},
		{"loop", []fakeRoute{route("10.0.0.1/32", via("10.2.0.1")), route("10.2.0.1/32", via("10.0.0.1"))}, nil},
		{"other family as next hop", []fakeRoute{route("10.0.0.1/32", via("fd00::5")), route("fd00::5/128", to(3))}, []uint32{3}},
		{"lookup in another table", []fakeRoute{route("10.0.0.0/24", lookupIn(5)), inTable(5, route("10.0.0.1/32", to(3)))}, []uint32{3}},
		{"pod in a VRF", []fakeRoute{route("0.0.0.0/0", to(1)), inTable(5, route("10.0.0.1/32", to(3)))}, []uint32{3}},
		{"longest of several VRFs", []fakeRoute{inTable(4, route("10.0.0.0/24", to(8))), inTable(5, route("10.0.0.1/32", to(3)))}, []uint32{3}},
		{"table 0 before a VRF", []fakeRoute{route("10.0.0.0/24", to(3)), inTable(5, route("10.0.0.1/32", to(8)))}, []uint32{3}},
		{"default route of a VRF", []fakeRoute{inTable(5, route("0.0.0.0/0", to(3)))}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			vpp := &fakeVPP{routes: tt.routes}
			for index := range uint32(10) {
				vpp.interfaces = append(vpp.interfaces, up(index, fmt.Sprintf("if%d", index), "virtio"))
			}
			set, err := new(Reader).Discover(t.Context(), vpp, Input{Pods: []*messages.Pod{{Namespace: "n", Name: "p", Addresses: []string{"10.0.0.1"}}}})
			if err != nil {
				t.Fatal(err)
			}
			var got []uint32
			for _, i := range set.GetInterfaces() {
				if len(i.GetPods()) > 0 {
					got = append(got, i.GetSwIfIndex())
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLookupsInOtherTablesAreBounded(t *testing.T) {
	vpp := &fakeVPP{}
	for table := range uint32(100) {
		vpp.routes = append(vpp.routes, fakeRoute{table: table + 1, prefix: route("172.16.0.0/16").prefix})
	}
	var in Input
	for i := range 200 {
		in.LocalEndpoints = append(in.LocalEndpoints, fmt.Sprintf("10.0.0.%d", i))
	}
	if _, err := new(Reader).Discover(t.Context(), vpp, in); err != nil {
		t.Fatal(err)
	}
	if limit := maxElsewhere + 202; vpp.lookups > limit {
		t.Errorf("%d lookups, limit %d", vpp.lookups, limit)
	}
}

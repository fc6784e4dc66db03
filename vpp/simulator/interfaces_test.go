package simulator

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/tapv2"

	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
	"github.com/troupe-vpp/troupe/vpp/simulator/wire"
)

// withPrefix parses an interface address.
func withPrefix(t testing.TB, s string) ip_types.AddressWithPrefix {
	t.Helper()
	p, err := ip_types.ParseAddressWithPrefix(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestInterfaceReturnCodes(t *testing.T) {
	addr := func(index uint32, s string, add bool) api.Message {
		return &interfaces.SwInterfaceAddDelAddress{
			SwIfIndex: interface_types.InterfaceIndex(index), IsAdd: add, Prefix: withPrefix(t, s),
		}
	}
	specified := func(n uint32) api.Message {
		return &interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: n}
	}
	up := func(index uint32) api.Message {
		return &interfaces.SwInterfaceSetFlags{SwIfIndex: interface_types.InterfaceIndex(index), Flags: 1}
	}
	table := func(index, id uint32) api.Message {
		return &interfaces.SwInterfaceSetTable{SwIfIndex: interface_types.InterfaceIndex(index), VrfID: id}
	}
	tests := map[string][]step{
		"loopbacks": {
			{specified(7), 0},
			{specified(7), vnet.RetInvalidRegistration},
			{&interfaces.CreateLoopback{}, 0},
			{&interfaces.DeleteLoopback{SwIfIndex: 1}, 0},
			{&interfaces.DeleteLoopback{SwIfIndex: 1}, vnet.RetInvalidSwIfIndex},
			{&interfaces.DeleteLoopback{SwIfIndex: 0}, vnet.RetInvalidSwIfIndex},
			{specified(7), 0},
		},
		"flags": {{specified(0), 0}, {up(1), 0}, {up(1), 0}, {up(9), vnet.RetInvalidSwIfIndex}},
		"addresses": {
			{specified(0), 0},
			{specified(1), 0},
			{addr(1, "10.0.0.1/24", true), 0},
			{addr(1, "10.0.0.1/24", true), vnet.RetAddressInUse},
			{addr(1, "10.0.0.2/24", true), 0},
			{addr(1, "10.0.0.3/25", true), vnet.RetAddressInUse},
			{addr(2, "10.0.0.3/24", true), vnet.RetAddressInUse},
			{addr(2, "10.0.1.3/24", true), 0},
			{addr(2, "10.0.1.4/24", false), vnet.RetAddressNotFound},
			{addr(2, "10.0.1.3/24", false), 0},
			{addr(1, "fd00::1/64", true), 0},
			{addr(1, "fd00::1/64", true), vnet.RetDuplicateIfAddress},
			{addr(9, "10.9.0.1/24", true), vnet.RetInvalidSwIfIndex},
			{&interfaces.SwInterfaceAddDelAddress{SwIfIndex: 1, DelAll: true}, 0},
			{addr(1, "10.0.0.1/24", false), vnet.RetAddressNotFound},
			{&interfaces.SwInterfaceAddDelAddress{SwIfIndex: 1, IsAdd: true, Prefix: ip_types.AddressWithPrefix{Len: 33}}, vnet.RetInvalidValue},
		},
		"tables": {
			{specified(0), 0},
			{table(1, 5), vnet.RetNoSuchFIB},
			{&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 5, Name: "five"}}, 0},
			{table(1, 5), 0},
			{addr(1, "10.0.0.1/24", true), 0},
			{table(1, 0), vnet.RetAddressFoundForInterface},
			{table(9, 0), vnet.RetInvalidSwIfIndex},
		},
		"tags": {
			{specified(0), 0},
			{&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: 1, Tag: "x"}, 0},
			{&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: 1}, vnet.RetInvalidValue},
			{&interfaces.SwInterfaceTagAddDel{SwIfIndex: 1}, 0},
			{&interfaces.SwInterfaceTagAddDel{SwIfIndex: 9}, vnet.RetInvalidSwIfIndex},
		},
		"unnumbered": {
			{specified(0), 0},
			{specified(1), 0},
			{&interfaces.SwInterfaceSetUnnumbered{IsAdd: true, SwIfIndex: 1, UnnumberedSwIfIndex: 2}, 0},
			{&interfaces.SwInterfaceSetUnnumbered{IsAdd: true, SwIfIndex: 9, UnnumberedSwIfIndex: 2}, vnet.RetInvalidSwIfIndex2},
			{&interfaces.SwInterfaceSetUnnumbered{IsAdd: true, SwIfIndex: 1, UnnumberedSwIfIndex: 9}, vnet.RetInvalidSwIfIndex},
			{&interfaces.SwInterfaceSetUnnumbered{UnnumberedSwIfIndex: 2}, 0},
		},
		"unknown interface": {
			{&interfaces.SwInterfaceGetTable{SwIfIndex: 9}, vnet.RetInvalidSwIfIndex},
			{&interfaces.SwInterfaceGetMacAddress{SwIfIndex: 9}, vnet.RetInvalidSwIfIndex},
			{&interfaces.SwInterfaceGetMacAddress{SwIfIndex: 0}, 0},
		},
		"known by name only": {{&interfaces.SwInterfaceSetPromisc{SwIfIndex: 0}, vnet.RetUnimplemented}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := listen(t, Options{})
			r := &rig{t: t, VPP: v, conn: connect(t, v)}
			for i, s := range steps {
				if got := r.call(s.req); got != s.want {
					t.Fatalf("step %d %s: retval %d, want %d", i, s.req.GetMessageName(), got, s.want)
				}
			}
		})
	}
}

func TestInterfaceDump(t *testing.T) {
	r := bareRig(t, Options{})
	r.ok(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: r.index("host-up"), Tag: "uplink"})
	names := func(req *interfaces.SwInterfaceDump) string {
		var out []string
		for _, d := range dump[interfaces.SwInterfaceDetails](t, r.conn, req) {
			out = append(out, d.InterfaceName)
		}
		return strings.Join(out, " ")
	}
	const all = "local0 p1 p2 p3 host-up"
	for _, tt := range []struct {
		req  *interfaces.SwInterfaceDump
		want string
	}{
		{&interfaces.SwInterfaceDump{SwIfIndex: noIf}, all},
		{&interfaces.SwInterfaceDump{SwIfIndex: 0}, all},
		{&interfaces.SwInterfaceDump{SwIfIndex: 2}, "p2"},
		{&interfaces.SwInterfaceDump{SwIfIndex: 99}, ""},
		{&interfaces.SwInterfaceDump{SwIfIndex: 2, NameFilterValid: true, NameFilter: "P"}, "p1 p2 p3 host-up"},
		{&interfaces.SwInterfaceDump{NameFilterValid: true, NameFilter: "up"}, "host-up"},
		{&interfaces.SwInterfaceDump{NameFilterValid: true}, all},
	} {
		if got := names(tt.req); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.req, got, tt.want)
		}
	}
	d := dump[interfaces.SwInterfaceDetails](t, r.conn, &interfaces.SwInterfaceDump{SwIfIndex: r.index("host-up")})[0]
	if d.Tag != "uplink" || d.Flags != 3 || d.InterfaceDevType != "af_packet" || d.SupSwIfIndex != uint32(d.SwIfIndex) {
		t.Errorf("%+v", d)
	}
	taps := dump[tapv2.SwInterfaceTapV2Details](t, r.conn, &tapv2.SwInterfaceTapV2Dump{SwIfIndex: noIf})
	if len(taps) != 3 || taps[0].HostNamespace != "p1" {
		t.Errorf("taps %+v", taps)
	}
	hosts := dump[af_packet.AfPacketDetails](t, r.conn, &af_packet.AfPacketDump{})
	if len(hosts) != 1 || hosts[0].HostIfName != "host-up" {
		t.Errorf("af_packet %+v", hosts)
	}
}

func TestAddressesTablesNeighbors(t *testing.T) {
	r := bareRig(t, Options{})
	addrs := dump[ip.IPAddressDetails](t, r.conn, &ip.IPAddressDump{SwIfIndex: r.index("host-up")})
	if len(addrs) != 1 || addrs[0].Prefix.String() != "192.168.50.1/24" {
		t.Errorf("addresses %v", addrs)
	}
	if six := dump[ip.IPAddressDetails](t, r.conn, &ip.IPAddressDump{SwIfIndex: r.index("host-up"), IsIPv6: true}); len(six) != 0 {
		t.Errorf("ip6 addresses %v", six)
	}
	r.ok(&ip.IPTableAddDelV2{IsAdd: true, Table: ip.IPTable{TableID: 7, Name: "seven"}})
	r.ok(&interfaces.SwInterfaceSetTable{SwIfIndex: r.index("p1"), VrfID: 7})
	if got := invoke[interfaces.SwInterfaceGetTableReply](t, r.conn, &interfaces.SwInterfaceGetTable{SwIfIndex: r.index("p1")}); got.VrfID != 7 {
		t.Errorf("table %d", got.VrfID)
	}
	var tables []string
	for _, d := range dump[ip.IPTableDetails](t, r.conn, &ip.IPTableDump{}) {
		tables = append(tables, d.Table.Name)
	}
	if !slices.Equal(tables, []string{"", "seven", ""}) {
		t.Errorf("tables %q", tables)
	}
	neighbors := dump[ip_neighbor.IPNeighborDetails](t, r.conn, &ip_neighbor.IPNeighborDump{SwIfIndex: noIf})
	if len(neighbors) != 3 || neighbors[0].Neighbor.IPAddress.String() != clientPod.String() || neighbors[0].Neighbor.Flags != 1 {
		t.Errorf("neighbors %+v", neighbors)
	}
	one := dump[ip_neighbor.IPNeighborDetails](t, r.conn, &ip_neighbor.IPNeighborDump{SwIfIndex: r.index("p2")})
	if len(one) != 1 || one[0].Neighbor.SwIfIndex != r.index("p2") {
		t.Errorf("neighbors of p2 %+v", one)
	}
	entry := ip_neighbor.IPNeighbor{SwIfIndex: 99}
	for _, s := range []step{
		{&ip_neighbor.IPNeighborAddDel{IsAdd: true, Neighbor: entry}, vnet.RetInvalidSwIfIndex},
		{&ip_neighbor.IPNeighborAddDel{Neighbor: ip_neighbor.IPNeighbor{SwIfIndex: 1}}, vnet.RetNoSuchEntry},
		{&ip_neighbor.IPNeighborAddDel{IsAdd: true, Neighbor: ip_neighbor.IPNeighbor{SwIfIndex: 1, IPAddress: wire.ToAddress(clientPod), MacAddress: [6]byte{1}}}, -2},
		{&ip_neighbor.IPNeighborAddDel{Neighbor: ip_neighbor.IPNeighbor{SwIfIndex: 1, IPAddress: wire.ToAddress(clientPod)}}, 0},
	} {
		if got := r.call(s.req); got != s.want {
			t.Errorf("%+v: retval %d, want %d", s.req, got, s.want)
		}
	}
}

// collect subscribes to interface events over GoVPP and returns a function that waits for n of
// them.
func collect(t *testing.T, conn api.Connection) func(n int) []interfaces.SwInterfaceEvent {
	t.Helper()
	watcher, err := conn.WatchEvent(timeout(t), &interfaces.SwInterfaceEvent{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Close)
	return func(n int) []interfaces.SwInterfaceEvent {
		t.Helper()
		var out []interfaces.SwInterfaceEvent
		for range n {
			select {
			case msg := <-watcher.Events():
				event, ok := msg.(*interfaces.SwInterfaceEvent)
				if !ok {
					t.Fatalf("event %T", msg)
				}
				out = append(out, *event)
			case <-timeout(t).Done():
				t.Fatalf("%d of %d events", len(out), n)
			}
		}
		return out
	}
}

func TestInterfaceEvents(t *testing.T) {
	r := bareRig(t, Options{})
	want := func(on uint32) int32 {
		return r.call(&interfaces.WantInterfaceEvents{EnableDisable: on, PID: 42})
	}
	events := collect(t, r.conn)
	for i, s := range []struct {
		on   uint32
		want int32
	}{{0, vnet.RetInvalidRegistration}, {1, 0}, {1, vnet.RetInvalidRegistration}, {0, 0}, {1, 0}} {
		if got := want(s.on); got != s.want {
			t.Errorf("step %d: retval %d, want %d", i, got, s.want)
		}
	}
	loop := invoke[interfaces.CreateLoopbackReply](t, r.conn, &interfaces.CreateLoopback{}).SwIfIndex
	r.ok(&interfaces.SwInterfaceSetFlags{SwIfIndex: loop, Flags: 1})
	r.ok(&interfaces.SwInterfaceSetFlags{SwIfIndex: loop, Flags: 1}) // no change, no event
	r.ok(&interfaces.SwInterfaceSetFlags{SwIfIndex: loop})
	r.ok(&interfaces.DeleteLoopback{SwIfIndex: loop})
	if diff := cmp.Diff([]interfaces.SwInterfaceEvent{
		{PID: 42, SwIfIndex: loop},
		{PID: 42, SwIfIndex: loop, Flags: 3},
		{PID: 42, SwIfIndex: loop},
		{PID: 42, SwIfIndex: loop, Deleted: true},
	}, events(4)); diff != "" {
		t.Error(diff)
	}
	if _, err := r.AddPod("p4", netip.MustParseAddr("10.1.4.2")); err != nil {
		t.Fatal(err)
	}
	if got := events(1); got[0].Flags != 3 {
		t.Errorf("several changes are one event: %+v", got)
	}
}

func TestSubscriptionEndsWithTheClient(t *testing.T) {
	v := listen(t, Options{})
	w := dialWire(t, v)
	w.write(w.frame(&interfaces.WantInterfaceEvents{EnableDisable: 1}, 1))
	w.expect("want_interface_events_reply", 1)
	w.write(w.frame(&interfaces.CreateLoopback{}, 2))
	w.expect("create_loopback_reply", 2)
	w.expect("sw_interface_event", w.index)
	_ = w.conn.Close()
	until(t, "subscription ends", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return len(v.inc.model.Subscribers) == 0
	})
}

// outputPage is how many output interfaces VPP sends at once.
const outputPage = 16

func TestOutputInterfacePages(t *testing.T) {
	v := listen(t, Options{})
	w := dialWire(t, v)
	if _, err := v.Exec(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true}); err != nil {
		t.Fatal(err)
	}
	get := func(cursor uint32) (details int, reply nat44_ed.Nat44EdOutputInterfaceGetReply) {
		w.write(w.frame(&nat44_ed.Nat44EdOutputInterfaceGet{Cursor: cursor}, 1))
		for {
			payload := w.read()
			if id := uint16(payload[0])<<8 | uint16(payload[1]); id == w.ids["nat44_ed_output_interface_details"] {
				details++
				continue
			}
			decode(t, payload, &reply)
			return details, reply
		}
	}
	if n, reply := get(0); n != 0 || reply.Retval != 0 || reply.Cursor != 0 {
		t.Errorf("empty set: %d details, %+v", n, reply)
	}
	for range outputPage + 3 {
		replies, err := v.Exec(&interfaces.CreateLoopback{})
		if err != nil {
			t.Fatal(err)
		}
		loop, ok := replies[0].(*interfaces.CreateLoopbackReply)
		if !ok {
			t.Fatalf("%T", replies[0])
		}
		if _, err := v.Exec(&nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: true, SwIfIndex: loop.SwIfIndex}); err != nil {
			t.Fatal(err)
		}
	}
	n, reply := get(0)
	if n != outputPage || reply.Retval != vnet.RetEagain || reply.Cursor != outputPage {
		t.Errorf("first page: %d details, %+v", n, reply)
	}
	n, reply = get(reply.Cursor)
	if n != 3 || reply.Retval != 0 || reply.Cursor != pool.None {
		t.Errorf("second page: %d details, %+v", n, reply)
	}
	if _, reply = get(1000); reply.Retval != vnet.RetInvalidValue {
		t.Errorf("beyond the end: %+v", reply)
	}
}

func TestTopologyErrors(t *testing.T) {
	v := New(Options{})
	t.Cleanup(func() { _ = v.Close() })
	p := netip.MustParsePrefix("10.0.0.1/24")
	if _, err := v.AddInterface("a", []netip.Prefix{p}, true); err != nil {
		t.Fatal(err)
	}
	missing := map[string]error{
		"delete":      v.DeleteInterface("b"),
		"set":         v.SetInterface("b", true),
		"add address": v.AddAddress("b", p),
		"del address": v.DelAddress("b", p),
		"route":       v.DefaultRoute("b", nodeIP),
		"neighbor":    v.AddNeighbor("b", nodeIP, true),
	}
	for what, err := range missing {
		if !errors.Is(err, ErrNoInterface) {
			t.Errorf("%s: %v", what, err)
		}
	}
	failing := map[string]error{
		"route to nowhere":  v.AddRoute(Route{Prefix: p}),
		"route of no table": v.DelRoute(9, p),
		"address twice":     v.AddAddress("a", p),
		"no such address":   v.DelAddress("a", netip.MustParsePrefix("10.0.0.2/24")),
	}
	_, failing["name taken"] = v.AddInterface("a", nil, true)
	_, failing["overlapping address"] = v.AddInterface("c", []netip.Prefix{p}, true)
	for what, err := range failing {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, ok := v.Interfaces()["c"]; ok {
		t.Error("failed interface stays")
	}
}

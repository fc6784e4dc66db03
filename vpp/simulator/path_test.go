package simulator

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
	"github.com/troupe-vpp/troupe/vpp/simulator/wire"
)

// natless returns a rig with NAT enabled, forwarding off, p1 inside and the uplink outside: classic
// SNAT.
func natless(t *testing.T) *rig {
	r := bareRig(t, Options{})
	r.ok(enable(true, 0))
	r.role("p1", nat_types.NAT_IS_INSIDE)
	r.role("host-up", nat_types.NAT_IS_OUTSIDE)
	return r
}

// TestClassicSNAT: inside to outside without forwarding.
func TestClassicSNAT(t *testing.T) {
	r := natless(t)
	out := tcp(clientPod, 4000, at(outsider, 443))
	if v := r.Send(out); v.Reason != "out of ports" {
		t.Errorf("without pool: %s", v)
	}
	r.ok(&nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: nodeIP.As4(), LastIPAddress: nodeIP.As4(), IsAdd: true})
	c := r.dial(out)
	if v := c.Opened(); v.Src != at(nodeIP, 4000) {
		t.Error(v)
	}
	if v := r.Send(tcp(clientPod, 53, at(outsider, 443))); v.Src.Port() < 1024 {
		t.Errorf("low port is kept: %s", v)
	}
	ping := r.Send(Packet{In: "p1", Src: at(clientPod, 7), Dst: at(outsider, 7), Proto: ProtoICMP})
	if ping.Action != Delivered || ping.Src.Addr() != nodeIP {
		t.Error(ping)
	}
	if back := r.Reply(ping); back.Action != Delivered || back.Dst != at(clientPod, 7) || back.Src.Addr() != outsider {
		t.Error(back)
	}
	stray := tcp(clientPod, 4001, at(outsider, 443))
	stray.Flags = ACK
	if v := r.Send(stray); v.Action != Dropped {
		t.Errorf("non-SYN: %s", v)
	}
	if v := r.Send(tcp(clientPod, 4002, at(backendA, 80))); v.Src != at(clientPod, 4002) || v.Session != 0 {
		t.Errorf("not through an outside interface: %s", v)
	}
	if v := r.Send(udp(outsider, 67, at(nodeIP, 68))); v.Action != Local {
		t.Errorf("DHCP for VPP: %s", v)
	}
	if v := r.Send(Packet{In: "host-up", Src: at(outsider, 9), Dst: at(nodeIP, 9), Proto: ProtoICMP}); v.Action != Local {
		t.Errorf("ping of the interface: %s", v)
	}
}

// TestStaticMappingFromInside: the local side of a mapping keeps its external endpoint, and reaches
// other mappings through their local side.
func TestStaticMappingFromInside(t *testing.T) {
	r := natless(t)
	r.role("p2", nat_types.NAT_IS_INSIDE)
	r.ok(simple(true, 0, "a"))
	if v := r.Send(tcp(backendA, 8080, at(outsider, 443))); v.Src != at(simpleVIP, 80) {
		t.Errorf("mapped port: %s", v)
	}
	if v := r.Send(tcp(backendA, 8080, at(outsider, 443))); v.NewSession {
		t.Errorf("second packet: %s", v)
	}
	r.ok(address(true, 0, 1, 1))
	v := r.Send(tcp(clientPod, 4000, at(simpleVIP, 80)))
	if v.Action != Delivered || v.Dst != at(backendA, 8080) || v.Src.Addr() == clientPod {
		t.Fatalf("hairpin: %s", v)
	}
	if back := r.Reply(v); back.Action != Delivered || back.Src != at(simpleVIP, 80) || back.Dst != at(clientPod, 4000) {
		t.Errorf("hairpin answer: %s", back)
	}
	r.ok(&nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: true, Flags: nat_types.NAT_IS_ADDR_ONLY, ExternalIPAddress: [4]byte{10, 96, 1, 1},
		LocalIPAddress: clientPod.As4(), ExternalSwIfIndex: noIf,
	})
	if v := r.Send(udp(clientPod, 4001, at(outsider, 53))); v.Src != parse("10.96.1.1:4001") {
		t.Errorf("address-only: %s", v)
	}
	if v := r.Send(tcp(backendA, 9, parse("10.96.1.1:77"))); v.Dst != at(clientPod, 77) {
		t.Errorf("hairpin to address-only: %s", v)
	}
	if v := r.Send(Packet{In: "p1", Src: at(clientPod, 5), Dst: at(outsider, 5), Proto: ProtoICMP}); v.Src != parse("10.96.1.1:5") {
		t.Errorf("ping from address-only: %s", v)
	}
}

// TestOtherProtocols: protocols without ports are translated per pair of addresses.
func TestOtherProtocols(t *testing.T) {
	r := natless(t)
	gre := Packet{In: "p1", Src: at(clientPod, 0), Dst: at(outsider, 0), Proto: 47}
	if v := r.Send(gre); v.Reason != "no translation" {
		t.Errorf("without pool: %s", v)
	}
	r.ok(address(true, 0, 1, 2))
	v := r.Send(gre)
	if v.Action != Delivered || v.Src.Addr() != netip.MustParseAddr("172.16.0.2") || !v.NewSession {
		t.Errorf("with pool: %s", v)
	}
	if back := r.Reply(v); back.Dst != gre.Src {
		t.Errorf("answer: %s", back)
	}
	if v := r.Send(Packet{In: "host-up", Src: at(outsider, 0), Dst: at(nodeIP, 0), Proto: 50}); v.Reason != "no translation" {
		t.Errorf("unmapped from outside: %s", v)
	}
	r.ok(&nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: true, ExternalIPAddress: simpleVIP.As4(), LocalIPAddress: backendA.As4(), Protocol: 50, ExternalSwIfIndex: noIf,
	})
	esp := r.Send(Packet{In: "host-up", Src: at(outsider, 0), Dst: at(simpleVIP, 0), Proto: 50})
	if esp.Out != "p2" || esp.Dst.Addr() != backendA {
		t.Errorf("mapped from outside: %s", esp)
	}
	r.role("p2", nat_types.NAT_IS_INSIDE)
	if back := r.Reply(esp); back.Src.Addr() != simpleVIP {
		t.Errorf("answer: %s", back)
	}
	if v := r.Send(Packet{In: "p2", Src: at(backendA, 0), Dst: at(netip.MustParseAddr("192.168.50.3"), 0), Proto: 50}); v.Src.Addr() != simpleVIP {
		t.Errorf("mapped from inside: %s", v)
	}
	r.ok(&nat44_ed.Nat44SetSessionLimit{SessionLimit: 1})
	for _, in := range []string{"p1", "host-up"} {
		if v := r.Send(Packet{In: in, Src: at(outsider, 0), Dst: at(simpleVIP, 0), Proto: 51}); v.Reason != "maximum sessions exceeded" {
			t.Errorf("full, from %s: %s", in, v)
		}
	}
}

// TestVRFRoutes: a VRF table decides where translated traffic may go.
func TestVRFRoutes(t *testing.T) {
	r := bareRig(t, Options{})
	r.ok(enable(true, 0))
	addr := netip.MustParseAddr("10.50.0.2")
	if _, err := r.AddInterfaceSpec(InterfaceSpec{Name: "red", TableID: 5, Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.50.0.1/24")}}); err != nil {
		t.Fatal(err)
	}
	r.role("red", nat_types.NAT_IS_INSIDE)
	r.role("host-up", nat_types.NAT_IS_OUTSIDE)
	r.ok(address(true, 0, 1, 1))
	p := Packet{In: "red", Src: at(addr, 4000), Dst: at(outsider, 53), Proto: ProtoUDP}
	v := r.Send(p)
	if v.Out != "host-up" || v.Src.Addr() == addr {
		t.Errorf("default: through any outside FIB: %s", v)
	}
	if back := r.Reply(v); back.Out != "red" || back.Dst != p.Src {
		t.Errorf("answer: %s", back)
	}
	r.ok(&nat44_ed.Nat44EdAddDelVrfTable{TableVrfID: 5, IsAdd: true})
	p.Src = at(addr, 4001)
	if v := r.Send(p); v.Session != 0 {
		t.Errorf("table without routes: %s", v)
	}
	r.ok(&nat44_ed.Nat44EdAddDelVrfRoute{TableVrfID: 5, VrfID: 0, IsAdd: true})
	if v := r.Send(p); v.Out != "host-up" || !v.NewSession {
		t.Errorf("table with a route: %s", v)
	}
}

// TestPoolAddressOfTheRightInterface: an output interface prefers the pool address that it has
// itself.
func TestPoolAddressOfTheRightInterface(t *testing.T) {
	r := bareRig(t, Options{})
	r.enableNAT()
	second := netip.MustParsePrefix("192.168.60.1/24")
	if _, err := r.AddInterface("host-two", []netip.Prefix{second}, true); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"host-up", "host-two"} {
		r.ok(&nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: true, SwIfIndex: r.index(name)})
	}
	for _, a := range []netip.Addr{second.Addr(), nodeIP} {
		r.ok(&nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: a.As4(), LastIPAddress: a.As4(), IsAdd: true})
	}
	for dst, want := range map[string]netip.Addr{
		"192.168.60.9:1": second.Addr(), "192.168.50.9:1": nodeIP, "8.8.8.8:1": nodeIP,
	} {
		if v := r.Send(udp(clientPod, 4000, parse(dst))); v.Src.Addr() != want {
			t.Errorf("%s, want %s", v, want)
		}
	}
}

func TestFeatures(t *testing.T) {
	r := bareRig(t, Options{})
	change := func(on bool, arc, node string) *feature.FeatureEnableDisable {
		return &feature.FeatureEnableDisable{SwIfIndex: 1, Enable: on, ArcName: arc, FeatureName: node}
	}
	enabled := func() bool {
		return invoke[feature.FeatureIsEnabledReply](t, r.conn, &feature.FeatureIsEnabled{SwIfIndex: 1, ArcName: "ip4-unicast", FeatureName: "cnat-input-ip4"}).IsEnabled
	}
	for i, s := range []struct {
		req  *feature.FeatureEnableDisable
		want int32
		on   bool
	}{
		{change(true, "ip4-unicast", "cnat-input-ip4"), 0, true},
		{change(true, "ip4-unicast", "cnat-input-ip4"), 0, true},
		{change(false, "ip4-unicast", "cnat-input-ip4"), 0, true}, // it was there twice
		{change(false, "ip4-unicast", "cnat-input-ip4"), 0, false},
		{change(false, "ip4-unicast", "cnat-input-ip4"), 0, false},
		{change(true, "ip4-output", "cnat-output-ip4"), 0, false},
		{change(true, "ip6-unicast", "cnat-input-ip6"), 0, false},
		{change(true, "ip6-output", "cnat-output-ip6"), 0, false},
		{change(true, "ip4-unicast", "nonsense"), vnet.RetInvalidValue, false},
		{change(true, "nonsense", "cnat-input-ip4"), vnet.RetInvalidValue, false},
		{&feature.FeatureEnableDisable{SwIfIndex: 99}, vnet.RetInvalidSwIfIndex, false},
	} {
		if got := r.call(s.req); got != s.want || enabled() != s.on {
			t.Errorf("step %d: retval %d, want %d; enabled %t", i, got, s.want, !s.on)
		}
	}
	if got := invoke[feature.FeatureIsEnabledReply](t, r.conn, &feature.FeatureIsEnabled{SwIfIndex: 99}); got.Retval != vnet.RetInvalidSwIfIndex {
		t.Errorf("unknown interface: %+v", got)
	}
}

func TestUnnumbered(t *testing.T) {
	r := bareRig(t, Options{})
	r.ok(&interfaces.SwInterfaceSetUnnumbered{IsAdd: true, SwIfIndex: r.index("host-up"), UnnumberedSwIfIndex: r.index("p1")})
	got := dump[ip.IPUnnumberedDetails](t, r.conn, &ip.IPUnnumberedDump{SwIfIndex: noIf})
	if len(got) != 1 || got[0].SwIfIndex != r.index("p1") || got[0].IPSwIfIndex != r.index("host-up") {
		t.Errorf("%+v", got)
	}
	r.ok(enable(true, 0))
	r.role("p1", nat_types.NAT_IS_OUTSIDE)
	if v := r.Send(Packet{In: "p1", Src: at(clientPod, 1), Dst: at(nodeIP, 1), Proto: ProtoICMP}); v.Action != Local {
		t.Errorf("address of the lender: %s", v)
	}
}

func TestNeighborsFollowTheSubnet(t *testing.T) {
	r := bareRig(t, Options{})
	far := netip.MustParseAddr("192.168.70.9")
	if err := r.AddNeighbor("host-up", far, true); err != nil {
		t.Fatal(err)
	}
	if got := r.lookup("192.168.70.9/32", 1).Retval; got != vnet.RetNoSuchEntry {
		t.Errorf("neighbour outside of every subnet has a route: %d", got)
	}
	subnet := netip.MustParsePrefix("192.168.70.1/24")
	if err := r.AddAddress("host-up", subnet); err != nil {
		t.Fatal(err)
	}
	if got := r.lookup("192.168.70.9/32", 1); got.Retval != 0 || got.Route.Paths[0].Type != fib_types.FIB_API_PATH_TYPE_NORMAL {
		t.Errorf("neighbour inside of the subnet: %+v", got)
	}
	more := netip.MustParsePrefix("192.168.70.2/24")
	if err := r.AddAddress("host-up", more); err != nil {
		t.Fatal(err)
	}
	if err := r.DelAddress("host-up", subnet); err != nil {
		t.Fatal(err)
	}
	if got := r.lookup("192.168.70.0/24", 1); got.Retval != 0 {
		t.Errorf("subnet is gone with one of two addresses: %+v", got)
	}
	if err := r.DelAddress("host-up", more); err != nil {
		t.Fatal(err)
	}
	if got := r.lookup("192.168.70.9/32", 1).Retval; got != vnet.RetNoSuchEntry {
		t.Errorf("neighbour's route survives the subnet: %d", got)
	}
}

func TestRecursiveRoutesOverTheAPI(t *testing.T) {
	r := bareRig(t, Options{})
	path := fib_types.FibPath{SwIfIndex: pool.None}
	path.Nh.Address = wire.ToAddress(backendB).Un
	r.ok(&ip.IPRouteAddDelV2{IsAdd: true, Route: ip.IPRouteV2{Prefix: prefix(t, "172.30.0.0/16"), Paths: []fib_types.FibPath{path}}})
	got := r.lookup("172.30.1.1/32", 0).Route.Paths[0]
	if got.SwIfIndex != pool.None || got.Type != fib_types.FIB_API_PATH_TYPE_NORMAL || got.Nh.Address != path.Nh.Address {
		t.Errorf("recursive path %+v", got)
	}
	if v := r.Send(udp(clientPod, 1, parse("172.30.1.1:9"))); v.Out != "p3" {
		t.Error(v)
	}
	r.ok(&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 5}})
	r.ok(&ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{
		TableID: 5, Prefix: prefix(t, "0.0.0.0/0"), Paths: []fib_types.FibPath{{SwIfIndex: pool.None, TableID: 0}},
	}})
	if _, err := r.AddInterfaceSpec(InterfaceSpec{Name: "red", TableID: 5, Up: true}); err != nil {
		t.Fatal(err)
	}
	if v := r.Send(Packet{In: "red", Src: parse("10.50.0.2:1"), Dst: at(backendA, 9), Proto: ProtoUDP}); v.Out != "p2" {
		t.Errorf("lookup in another table: %s", v)
	}
	local := fib_types.FibPath{SwIfIndex: pool.None, Type: fib_types.FIB_API_PATH_TYPE_LOCAL}
	six := fib_types.FibPath{SwIfIndex: uint32(r.index("p2")), Proto: fib_types.FIB_API_PATH_NH_PROTO_IP6}
	six.Nh.Address = wire.ToAddress(netip.MustParseAddr("fd00::1")).Un
	r.ok(&ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: prefix(t, "fd01::/64"), Paths: []fib_types.FibPath{six}}})
	if got := r.lookup("fd01::5/128", 0).Route.Paths[0]; got.SwIfIndex != six.SwIfIndex || got.Nh.Address != six.Nh.Address {
		t.Errorf("ip6 path %+v", got)
	}
	r.ok(&ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: prefix(t, "172.31.0.1/32"), Paths: []fib_types.FibPath{local}}})
	if v := r.Send(udp(clientPod, 1, parse("172.31.0.1:9"))); v.Action != Local {
		t.Error(v)
	}
}

package simulator

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
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

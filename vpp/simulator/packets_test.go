package simulator

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Flags of service rows.
const (
	selfTwice = nat_types.NAT_IS_SELF_TWICE_NAT
	twiceNAT  = nat_types.NAT_IS_TWICE_NAT
)

// udp is a UDP packet of the rig.
func udp(from netip.Addr, port uint16, to netip.AddrPort) Packet {
	p := tcp(from, port, to)
	p.Proto, p.Flags = ProtoUDP, 0
	return p
}

// TestWhereItGoes is the table "from, to, port: arrives at, translated how".
func TestWhereItGoes(t *testing.T) {
	svc := at(vip, 80)
	a, b := at(backendA, 8080), at(backendB, 8080)
	nodePort := at(nodeIP, 30080)
	rows := []api.Message{lb(svc, selfTwice, 10, a, a)}
	tests := []struct {
		name   string
		rows   []api.Message
		packet Packet
		want   string // verdict without endpoints before translation
	}{
		{
			"cluster ip from a pod keeps the client", rows, tcp(clientPod, 4000, svc),
			"delivered on p2 as 10.1.1.2:4000 > 10.1.2.2:8080, new session 1",
		},
		{
			"cluster ip from outside", rows, tcp(outsider, 4000, svc),
			"delivered on p2 as 192.168.50.2:4000 > 10.1.2.2:8080, new session 1",
		},
		{
			"hairpin is masqueraded", rows, tcp(backendA, 4000, svc),
			"delivered on p2 as 10.255.255.254:11570 > 10.1.2.2:8080, new session 1",
		},
		{
			"twice-nat masks every client",
			[]api.Message{lb(svc, twiceNAT, 10, a, a)},
			tcp(outsider, 4000, svc),
			"delivered on p2 as 10.255.255.254:11570 > 10.1.2.2:8080, new session 1",
		},
		{
			"node port from outside",
			[]api.Message{lb(nodePort, selfTwice, 10, a, a)},
			tcp(outsider, 4000, nodePort),
			"delivered on p2 as 192.168.50.2:4000 > 10.1.2.2:8080, new session 1",
		},
		{
			"node port from a pod",
			[]api.Message{lb(nodePort, selfTwice, 10, b, b)},
			tcp(clientPod, 4000, nodePort),
			"delivered on p3 as 10.1.1.2:4000 > 10.1.3.2:8080, new session 1",
		},
		{
			"other port of the node", rows, tcp(outsider, 4000, nodePort),
			"local (route 192.168.50.1/32)",
		},
		{
			"pod to pod is left alone", rows, tcp(clientPod, 4000, a),
			"delivered on p2 as 10.1.1.2:4000 > 10.1.2.2:8080",
		},
		{
			"pod to outside is left alone", rows, tcp(clientPod, 4000, at(netip.MustParseAddr("8.8.8.8"), 53)),
			"delivered on host-up as 10.1.1.2:4000 > 8.8.8.8:53",
		},
		{
			// The first use of the role order "outside" walked no rows, so the VIP
			// follows the default route.
			"other port of the VIP follows the routes", rows, tcp(clientPod, 4000, at(vip, 81)),
			"delivered on host-up as 10.1.1.2:4000 > 10.96.0.1:81",
		},
		{
			"protocol matters", rows, udp(clientPod, 4000, svc),
			"delivered on host-up as 10.1.1.2:4000 > 10.96.0.1:80",
		},
		{
			"established packet without session", rows,
			func() Packet { p := tcp(clientPod, 4000, svc); p.Flags = ACK; return p }(),
			"dropped (non-SYN packet try to create session)",
		},
		{
			"SYN+ACK opens nothing", rows,
			func() Packet { p := tcp(clientPod, 4000, svc); p.Flags = SYN | ACK; return p }(),
			"dropped (non-SYN packet try to create session)",
		},
		{
			"simple mapping",
			[]api.Message{simple(true, nat_types.NAT_IS_OUT2IN_ONLY, "b")},
			tcp(outsider, 4000, at(simpleVIP, 80)),
			"delivered on p3 as 192.168.50.2:4000 > 10.1.3.2:8080, new session 1",
		},
		{
			"unroutable source interface", rows,
			Packet{In: "nope", Src: a, Dst: b, Proto: ProtoUDP},
			"dropped (no such interface)",
		},
		{
			"SCTP is not balanced",
			[]api.Message{func() api.Message { r := lb(svc, 0, 10, a, a); r.Protocol = ProtoSCTP; return r }()},
			Packet{In: "p1", Src: at(clientPod, 4000), Dst: svc, Proto: ProtoSCTP},
			"dropped (no translation)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for _, row := range tt.rows {
				r.ok(row)
			}
			v := r.Send(tt.packet)
			_, got, _ := strings.Cut(v.String(), fmt.Sprintf("/%d ", tt.packet.Proto))
			if got != tt.want {
				t.Errorf("%s\n got %s\nwant %s", tt.packet.Dst, got, tt.want)
			}
			if v.Action == Delivered && tt.packet.Proto != ProtoSCTP {
				back := r.Reply(v)
				if back.Action != Delivered || back.Src != tt.packet.Dst || back.Dst != tt.packet.Src {
					t.Errorf("answer is not what the client expects: %s", back)
				}
			}
		})
	}
}

// route is a route of the binary API.
func route(prefix string, typ fib_types.FibPathType) *ip.IPRouteAddDel {
	p, err := ip_types.ParsePrefix(prefix)
	if err != nil {
		panic(err)
	}
	return &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{
		Prefix: p, NPaths: 1, Paths: []fib_types.FibPath{{SwIfIndex: vnet.None, Type: typ}},
	}}
}

// TestRejectBelowRows: an unreachable route for the service CIDR answers packets without a mapping
// and does not disturb the others.
func TestRejectBelowRows(t *testing.T) {
	r := newRig(t)
	svc, a := at(vip, 80), at(backendA, 8080)
	r.ok(lb(svc, selfTwice, 10, a, a))
	r.ok(route("10.96.0.0/12", fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH))
	r.ok(route("10.96.0.7/32", fib_types.FIB_API_PATH_TYPE_DROP))
	r.ok(route("10.96.0.8/32", fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT))
	r.dial(tcp(clientPod, 4000, svc))
	r.dial(tcp(backendA, 4000, svc))
	for dst, want := range map[string]Action{
		"10.96.0.1:81": Rejected, "10.96.0.2:80": Rejected, "10.96.0.7:80": Dropped, "10.96.0.8:80": Rejected,
	} {
		if v := r.Send(tcp(clientPod, 4000, netip.MustParseAddrPort(dst))); v.Action != want {
			t.Errorf("%s", v)
		}
	}
}

// TestRolesOfInterfaces: the effect of single roles on service traffic.
func TestRolesOfInterfaces(t *testing.T) {
	svc, a := at(vip, 80), at(backendA, 8080)
	setup := func(t *testing.T, roles map[string]nat_types.NatConfigFlags) *rig {
		r := bareRig(t, Options{})
		r.enableNAT()
		for name, flags := range roles {
			if flags&nat_types.NAT_IS_INSIDE != 0 {
				r.role(name, nat_types.NAT_IS_INSIDE)
			}
			if flags&nat_types.NAT_IS_OUTSIDE != 0 {
				r.role(name, nat_types.NAT_IS_OUTSIDE)
			}
		}
		r.ok(lb(svc, selfTwice, 10, a, a))
		return r
	}
	const in, out, both = nat_types.NAT_IS_INSIDE, nat_types.NAT_IS_OUTSIDE, nat_types.NAT_IS_INSIDE | nat_types.NAT_IS_OUTSIDE

	t.Run("client without role is not translated", func(t *testing.T) {
		r := setup(t, map[string]nat_types.NatConfigFlags{"p2": both})
		if v := r.Send(tcp(clientPod, 1, svc)); v.Out != "host-up" {
			t.Error(v)
		}
	})
	t.Run("inside-only client is dropped without a pool", func(t *testing.T) {
		r := setup(t, map[string]nat_types.NatConfigFlags{"p1": in, "p2": both})
		if v := r.Send(tcp(clientPod, 1, svc)); v.Action != Dropped || v.Reason != "out of ports" {
			t.Error(v)
		}
	})
	t.Run("inside-only client is sent to 0.0.0.0 with a pool", func(t *testing.T) {
		r := setup(t, map[string]nat_types.NatConfigFlags{"p1": in, "p2": both})
		r.ok(address(true, 0, 1, 1))
		if v := r.Send(tcp(clientPod, 1, svc)); v.Action != Dropped || v.Dst != parse("0.0.0.0:0") {
			t.Error(v)
		}
	})
	for name, flags := range map[string]nat_types.NatConfigFlags{"in": in, "out": out, "both": both} {
		t.Run("backend with role "+name, func(t *testing.T) {
			r := setup(t, map[string]nat_types.NatConfigFlags{"p1": both, "p2": flags})
			r.dial(tcp(clientPod, 1, svc))
		})
	}
	t.Run("backend without role is not translated back", func(t *testing.T) {
		r := setup(t, map[string]nat_types.NatConfigFlags{"p1": both})
		if _, err := r.Dial(tcp(clientPod, 1, svc)); err == nil || !strings.Contains(err.Error(), "answer") {
			t.Errorf("dial: %v", err)
		}
	})
	t.Run("outside-only client makes bypass sessions", func(t *testing.T) {
		r := setup(t, map[string]nat_types.NatConfigFlags{"p1": out, "p2": both})
		direct := r.dial(tcp(clientPod, 1, a))
		if v := direct.Opened(); !v.NewSession || r.SessionCount() != 1 {
			t.Errorf("%s, %d sessions", v, r.SessionCount())
		}
		r.ok(&nat44_ed.Nat44ForwardingEnableDisable{Enable: false})
		if n := r.SessionCount(); n != 0 {
			t.Errorf("%d sessions after forwarding went off", n)
		}
	})
	t.Run("without forwarding unmatched traffic from outside is dropped", func(t *testing.T) {
		r := setup(t, map[string]nat_types.NatConfigFlags{"p1": out, "p2": both})
		r.ok(&nat44_ed.Nat44ForwardingEnableDisable{Enable: false})
		if v := r.Send(tcp(clientPod, 1, a)); v.Action != Dropped || v.Reason != "no translation" {
			t.Error(v)
		}
	})
}

// TestHairpinWithoutTwiceNAT: no address for the client, no session.
func TestHairpinWithoutTwiceNAT(t *testing.T) {
	r := newRig(t)
	svc, a := at(vip, 80), at(backendA, 8080)
	r.ok(&nat44_ed.Nat44AddDelAddressRange{
		FirstIPAddress: twiceIP.As4(), LastIPAddress: twiceIP.As4(), VrfID: vnet.None, Flags: nat_types.NAT_IS_TWICE_NAT,
	})
	r.ok(lb(svc, selfTwice, 10, a, a))
	if v := r.Send(tcp(backendA, 1, svc)); v.Action != Dropped || v.Reason != "out of ports" || r.SessionCount() != 0 {
		t.Errorf("%s, %d sessions", v, r.SessionCount())
	}
}

// TestOutputInterface is the checked combination of section 2.4: uplink as output interface with
// the node's address in the pool.
func TestOutputInterface(t *testing.T) {
	r := bareRig(t, Options{})
	r.enableNAT()
	for _, name := range []string{"p1", "p2", "p3"} {
		r.role(name, nat_types.NAT_IS_INSIDE)
		r.role(name, nat_types.NAT_IS_OUTSIDE)
	}
	r.ok(&nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: true, SwIfIndex: r.index("host-up")})
	r.ok(&nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: nodeIP.As4(), LastIPAddress: nodeIP.As4(), IsAdd: true})
	svc, nodePort, a := at(vip, 80), at(nodeIP, 30080), at(backendA, 8080)
	r.ok(lb(svc, selfTwice, 10, a, a))
	r.ok(lb(nodePort, selfTwice, 10, a, a))

	egress := r.dial(tcp(clientPod, 4000, at(outsider, 443)))
	if v := egress.Opened(); v.Src != at(nodeIP, 4000) || v.Out != "host-up" || !v.NewSession {
		t.Errorf("egress: %s", v)
	}
	for range 3 {
		if err := egress.Exchange(); err != nil {
			t.Errorf("egress: %v", err)
		}
	}
	second := r.dial(tcp(backendB, 4000, at(outsider, 443)))
	if v := second.Opened(); v.Src.Addr() != nodeIP || v.Src.Port() == 4000 {
		t.Errorf("port is taken, yet: %s", v)
	}
	r.dial(tcp(clientPod, 4001, svc))
	r.dial(tcp(backendA, 4001, svc))
	r.dial(tcp(outsider, 4001, nodePort))
	r.dial(tcp(clientPod, 4002, nodePort))
	if v := r.dial(tcp(outsider, 4009, a)).Opened(); v.Src.Addr() != outsider {
		t.Errorf("outside to pod: %s", v)
	}
	// A dynamic session never takes the port of a mapping.
	if v := r.Send(tcp(clientPod, 30080, at(outsider, 443))); v.Src.Port() == 30080 {
		t.Errorf("took the node port: %s", v)
	}
	// An identity mapping exempts an address.
	r.ok(&nat44_ed.Nat44AddDelIdentityMapping{IsAdd: true, Flags: nat_types.NAT_IS_ADDR_ONLY, IPAddress: backendB.As4(), SwIfIndex: noIf})
	if v := r.Send(tcp(backendB, 5000, at(outsider, 443))); v.Src != at(backendB, 5000) || v.Session != 0 {
		t.Errorf("identity: %s", v)
	}
}

// TestSamePortToVIPAndBackend: a client that uses one port for a service and for its backend is
// taken for traffic that needs translation.
func TestSamePortToVIPAndBackend(t *testing.T) {
	r := newRig(t)
	svc, a := at(vip, 80), at(backendA, 8080)
	r.ok(lb(svc, selfTwice, 10, a, a))
	r.dial(tcp(clientPod, 4000, svc))
	if v := r.Send(tcp(clientPod, 4000, a)); v.Reason != "out of ports" {
		t.Errorf("without a pool: %s", v)
	}
	r.ok(address(true, 0, 1, 1))
	if v := r.Send(tcp(clientPod, 4000, a)); v.Action != Delivered || v.Src.Addr() == clientPod {
		t.Errorf("with a pool: %s", v)
	}
}

// TestICMP: echo through an address-only mapping, nothing for LB rows.
func TestICMP(t *testing.T) {
	r := newRig(t)
	r.ok(&nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: true, Flags: nat_types.NAT_IS_ADDR_ONLY, ExternalIPAddress: simpleVIP.As4(), LocalIPAddress: backendA.As4(), ExternalSwIfIndex: noIf,
	})
	ping := Packet{In: "host-up", Src: at(outsider, 77), Dst: at(simpleVIP, 77), Proto: ProtoICMP}
	v := r.Send(ping)
	if v.Action != Delivered || v.Dst != at(backendA, 77) || !v.NewSession {
		t.Fatal(v)
	}
	if back := r.Reply(v); back.Action != Delivered || back.Src != at(simpleVIP, 77) || back.Dst != at(outsider, 77) {
		t.Error(back)
	}
	r.ok(lb(at(vip, 80), selfTwice, 10, at(backendA, 8080), at(backendA, 8080)))
	ping.Dst = at(vip, 77)
	if v := r.Send(ping); v.Out != "host-up" || v.Session != 0 {
		t.Errorf("ping of a VIP: %s", v)
	}
}

// TestTwiceNATPool: the session's VRF decides.
func TestTwiceNATPool(t *testing.T) {
	r := newRig(t)
	own := address(true, twiceNAT, 8, 8)
	own.VrfID = 0
	r.ok(own)
	r.ok(lb(at(vip, 80), twiceNAT, 10, at(backendB, 8080), at(backendB, 8080)))
	if v := r.Send(tcp(outsider, 3, at(vip, 80))); v.Src.Addr() != netip.AddrFrom4(own.FirstIPAddress) {
		t.Errorf("address of the VRF goes first: %s", v)
	}
}

func TestVerdictTexts(t *testing.T) {
	r := newRig(t)
	v := r.Send(tcp(clientPod, 1, at(netip.MustParseAddr("224.0.0.1"), 1)))
	if v.Action != Dropped {
		t.Errorf("multicast: %s", v)
	}
	if back := r.Reply(v); back.Action != Dropped || !strings.Contains(back.Reason, "nothing to reply to") {
		t.Errorf("reply to a dropped packet: %s", back)
	}
	if err := r.SetInterface("p1", false); err != nil {
		t.Fatal(err)
	}
	if v := r.Send(tcp(clientPod, 1, at(backendA, 1))); v.Reason != "input interface down" {
		t.Error(v)
	}
	if v := r.Send(tcp(backendA, 1, at(clientPod, 1))); v.Action != Dropped {
		t.Error(v)
	}
	if v := r.Send(Packet{In: "p2", Src: netip.MustParseAddrPort("[fd00::1]:1"), Dst: at(backendA, 1)}); v.Reason != "not a packet of one address family" {
		t.Error(v)
	}
	r.Crash()
	if v := r.Send(tcp(backendA, 1, at(clientPod, 1))); v.Reason != ErrDown.Error() {
		t.Error(v)
	}
	if s := Action(99).String(); s != "Action(99)" {
		t.Error(s)
	}
}

package simulator

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

func TestStaticAndIdentityDumps(t *testing.T) {
	r := newRig(t)
	o2i := nat_types.NAT_IS_OUT2IN_ONLY
	row := simple(true, o2i|selfTwice, "a")
	row.Tag = "mine"
	r.ok(row)
	r.ok(&nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: true, Flags: nat_types.NAT_IS_ADDR_ONLY, ExternalIPAddress: [4]byte{10, 96, 1, 1},
		LocalIPAddress: backendB.As4(), LocalPort: 5, ExternalPort: 6, Protocol: 7, ExternalSwIfIndex: noIf, VrfID: pool.None,
	})
	bound := &nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: true, Flags: o2i | twiceNAT, LocalIPAddress: backendA.As4(), LocalPort: 80, ExternalPort: 8000,
		Protocol: ProtoTCP, ExternalSwIfIndex: r.index("host-up"),
	}
	r.ok(bound)
	r.ok(lb(at(vip, 80), selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
	r.ok(identity(true, 0, 3))
	got := dump[nat44_ed.Nat44StaticMappingDetails](t, r.conn, &nat44_ed.Nat44StaticMappingDump{})
	want := []*nat44_ed.Nat44StaticMappingDetails{
		{
			Flags: o2i | selfTwice, LocalIPAddress: backendA.As4(), ExternalIPAddress: simpleVIP.As4(), Protocol: ProtoTCP,
			LocalPort: 8080, ExternalPort: 80, ExternalSwIfIndex: noIf, Tag: "mine",
		},
		{Flags: nat_types.NAT_IS_ADDR_ONLY, LocalIPAddress: backendB.As4(), ExternalIPAddress: [4]byte{10, 96, 1, 1}, ExternalSwIfIndex: noIf},
		{
			Flags: o2i | twiceNAT, LocalIPAddress: backendA.As4(), ExternalIPAddress: nodeIP.As4(), Protocol: ProtoTCP,
			LocalPort: 80, ExternalPort: 8000, ExternalSwIfIndex: noIf,
		},
		{ // the template, without the out2in-only flag
			Flags: twiceNAT, LocalIPAddress: backendA.As4(), Protocol: ProtoTCP,
			LocalPort: 80, ExternalPort: 8000, ExternalSwIfIndex: r.index("host-up"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("static dump:\n%s", diff)
	}
	ids := dump[nat44_ed.Nat44IdentityMappingDetails](t, r.conn, &nat44_ed.Nat44IdentityMappingDump{})
	if diff := cmp.Diff([]*nat44_ed.Nat44IdentityMappingDetails{
		{IPAddress: [4]byte{10, 0, 0, 7}, Protocol: ProtoUDP, Port: 4789, SwIfIndex: noIf, VrfID: 3},
	}, ids); diff != "" {
		t.Errorf("identity dump:\n%s", diff)
	}
}

// TestInterfaceBound: mappings and pool addresses follow the interface's address.
func TestInterfaceBound(t *testing.T) {
	r := newRig(t)
	up := r.index("host-up")
	r.ok(&nat44_ed.Nat44AddDelInterfaceAddr{IsAdd: true, SwIfIndex: up})
	r.ok(&nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: true, LocalIPAddress: backendA.As4(), LocalPort: 80, ExternalPort: 8000, Protocol: ProtoTCP, ExternalSwIfIndex: up,
	})
	r.ok(&nat44_ed.Nat44AddDelIdentityMapping{IsAdd: true, SwIfIndex: up, Port: 22, Protocol: ProtoTCP})
	if ids := dump[nat44_ed.Nat44IdentityMappingDetails](t, r.conn, &nat44_ed.Nat44IdentityMappingDump{}); len(ids) != 2 {
		t.Errorf("identity dump %+v", ids)
	}
	pool := func() []string {
		var out []string
		for _, a := range dump[nat44_ed.Nat44AddressDetails](t, r.conn, &nat44_ed.Nat44AddressDump{}) {
			out = append(out, a.IPAddress.String()+" "+a.Flags.String())
		}
		return out
	}
	check := func(when string, wantPool, wantRows string) {
		t.Helper()
		if got := strings.Join(pool(), ", "); got != wantPool {
			t.Errorf("%s: pool %s, want %s", when, got, wantPool)
		}
		if got := strings.Join(r.Rows(), ", "); got != wantRows {
			t.Errorf("%s: rows %s, want %s", when, got, wantRows)
		}
	}
	twice := twiceIP.String() + " NAT_IS_TWICE_NAT"
	check("at first", "192.168.50.1 NAT_IS_NONE, "+twice, "192.168.50.1:22/6 identity, 192.168.50.1:8000/6 to 10.1.2.2:80")
	address := netip.PrefixFrom(nodeIP, 24)
	if err := r.DelAddress("host-up", address); err != nil {
		t.Fatal(err)
	}
	check("without address", twice, "0.0.0.0:22/6 of interface host-up unresolved, 0.0.0.0:8000/6 of interface host-up unresolved")
	if err := r.AddAddress("host-up", netip.MustParsePrefix("192.168.50.9/24")); err != nil {
		t.Fatal(err)
	}
	check("with another", "192.168.50.9 NAT_IS_NONE, "+twice, "192.168.50.9:22/6 identity, 192.168.50.9:8000/6 to 10.1.2.2:80")
	follow := dump[nat44_ed.Nat44InterfaceAddrDetails](t, r.conn, &nat44_ed.Nat44InterfaceAddrDump{})
	if len(follow) != 1 || follow[0].SwIfIndex != up {
		t.Errorf("interface addr dump %+v", follow)
	}
	r.ok(&nat44_ed.Nat44AddDelInterfaceAddr{SwIfIndex: up})
	r.ok(&nat44_ed.Nat44AddDelInterfaceAddr{IsAdd: true, SwIfIndex: up, Flags: twiceNAT})
	if follow = dump[nat44_ed.Nat44InterfaceAddrDetails](t, r.conn, &nat44_ed.Nat44InterfaceAddrDump{}); follow[0].Flags != twiceNAT {
		t.Errorf("interface addr dump %+v", follow)
	}
	r.ok(&nat44_ed.Nat44AddDelIdentityMapping{SwIfIndex: up, Port: 22, Protocol: ProtoTCP})
	check("in the end", twice+", 192.168.50.9 NAT_IS_TWICE_NAT", "192.168.50.9:8000/6 to 10.1.2.2:80")
}

func TestSessionMessages(t *testing.T) {
	r := newRig(t)
	svc, a := at(vip, 80), at(backendA, 8080)
	r.ok(lb(svc, selfTwice, 10, a, a))
	r.dial(tcp(clientPod, 4000, svc))
	hairpin := r.dial(tcp(backendA, 4000, svc))
	row := lb(at(vip, 53), 0, 10, a, a)
	row.Protocol = ProtoUDP
	r.ok(row)
	r.dial(udp(clientPod, 4000, at(vip, 53)))
	r.advance(301 * time.Second)

	users := dump[nat44_ed.Nat44UserDetails](t, r.conn, &nat44_ed.Nat44UserDump{})
	if diff := cmp.Diff([]*nat44_ed.Nat44UserDetails{{IPAddress: backendA.As4(), Nstaticsessions: 3}}, users); diff != "" {
		t.Errorf("users:\n%s", diff)
	}
	v3 := dump[nat44_ed.Nat44UserSessionV3Details](t, r.conn, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: backendA.As4()})
	flags := nat_types.NAT_IS_STATIC | nat_types.NAT_IS_EXT_HOST_VALID
	masked := hairpin.Opened().Src
	want := []*nat44_ed.Nat44UserSessionV3Details{
		{
			OutsideIPAddress: vip.As4(), OutsidePort: 80, InsideIPAddress: backendA.As4(), InsidePort: 8080, Protocol: 6, Flags: flags,
			TimeSinceLastHeard: 301, TotalPkts: 4, TotalBytes: 220, ExtHostAddress: clientPod.As4(), ExtHostPort: 4000,
		},
		{
			OutsideIPAddress: vip.As4(), OutsidePort: 80, InsideIPAddress: backendA.As4(), InsidePort: 8080, Protocol: 6, Flags: flags | twiceNAT,
			TimeSinceLastHeard: 301, TotalPkts: 4, TotalBytes: 220, ExtHostAddress: backendA.As4(), ExtHostPort: 4000,
			ExtHostNatAddress: masked.Addr().As4(), ExtHostNatPort: masked.Port(),
		},
		{
			OutsideIPAddress: vip.As4(), OutsidePort: 53, InsideIPAddress: backendA.As4(), InsidePort: 8080, Protocol: 17, Flags: flags,
			TimeSinceLastHeard: 301, TotalPkts: 2, ExtHostAddress: clientPod.As4(), ExtHostPort: 4000, IsTimedOut: true,
		},
	}
	if diff := cmp.Diff(want, v3); diff != "" {
		t.Errorf("sessions:\n%s", diff)
	}
	v2 := dump[nat44_ed.Nat44UserSessionV2Details](t, r.conn, &nat44_ed.Nat44UserSessionV2Dump{IPAddress: backendA.As4()})
	v1 := dump[nat44_ed.Nat44UserSessionDetails](t, r.conn, &nat44_ed.Nat44UserSessionDump{IPAddress: backendA.As4()})
	if len(v1) != 3 || len(v2) != 3 || !v2[2].IsTimedOut || v1[1].ExtHostNatPort != masked.Port() {
		t.Errorf("older dumps: %+v %+v", v1, v2)
	}

	del := func(ext netip.AddrPort, proto uint8) int32 {
		return r.call(&nat44_ed.Nat44DelSession{
			Address: backendA.As4(), Port: 8080, Protocol: proto, ExtHostAddress: ext.Addr().As4(), ExtHostPort: ext.Port(),
			Flags: nat_types.NAT_IS_INSIDE,
		})
	}
	for i, tt := range []struct {
		ext   netip.AddrPort
		proto uint8
		want  int32
	}{
		{at(clientPod, 4000), ProtoTCP, 0},
		{at(clientPod, 4000), ProtoTCP, vnet.RetNoSuchEntry},
		{at(backendA, 4000), ProtoTCP, vnet.RetNoSuchEntry}, // twice-nat: not the client
		{masked, ProtoTCP, 0},
		{at(clientPod, 4000), ProtoUDP, 0},
	} {
		if got := del(tt.ext, tt.proto); got != tt.want {
			t.Errorf("delete %d: retval %d, want %d", i, got, tt.want)
		}
	}
	if n := r.SessionCount(); n != 0 {
		t.Errorf("%d sessions left", n)
	}
}

// TestDelSessionHitsAMappingKey: the flow hash holds mappings too.
func TestDelSessionHitsAMappingKey(t *testing.T) {
	r := newRig(t)
	r.ok(simple(true, 0, "a"))
	zero := &nat44_ed.Nat44DelSession{Address: backendA.As4(), Port: 8080, Protocol: ProtoTCP}
	if got := r.call(zero); got != vnet.RetUnspecified {
		t.Errorf("no session: retval %d", got)
	}
	r.dial(tcp(clientPod, 1, at(simpleVIP, 80)))
	if got := r.call(zero); got != 0 || r.SessionCount() != 0 {
		t.Errorf("session with the mapping's index: retval %d, %d sessions", got, r.SessionCount())
	}
}

func TestTCPTimeouts(t *testing.T) {
	r := newRig(t)
	svc, a := at(vip, 80), at(backendA, 8080)
	r.ok(lb(svc, selfTwice, 10, a, a))
	half := tcp(clientPod, 4000, svc)
	r.Send(half)
	open := r.dial(tcp(clientPod, 4001, svc))
	closing := r.dial(tcp(clientPod, 4002, svc))
	if err := closing.ExchangeFlags(FIN | ACK); err != nil {
		t.Fatal(err)
	}
	timedOut := func() (out []uint16) {
		for _, d := range dump[nat44_ed.Nat44UserSessionV3Details](t, r.conn, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: backendA.As4()}) {
			if d.IsTimedOut {
				out = append(out, d.ExtHostPort)
			}
		}
		return out
	}
	r.advance(239 * time.Second)
	if got := timedOut(); got != nil {
		t.Errorf("after 239 s: %v", got)
	}
	r.advance(time.Second)
	if got := timedOut(); !cmp.Equal(got, []uint16{4000, 4002}) {
		t.Errorf("after 240 s: %v", got)
	}
	broken(t, closing, "closing connection after the transitory timeout")
	works(t, open, "established connection")
	r.advance(7440 * time.Second)
	broken(t, open, "established connection after its timeout")
}

// TestReopen: a closing connection may be opened again from the same port.
func TestReopen(t *testing.T) {
	r := newRig(t)
	svc, a := at(vip, 80), at(backendA, 8080)
	r.ok(lb(svc, selfTwice, 10, a, a))
	c := r.dial(tcp(clientPod, 4000, svc))
	if err := c.ExchangeFlags(RST); err != nil {
		t.Fatal(err)
	}
	again := r.dial(tcp(clientPod, 4000, svc))
	if again.Opened().NewSession || again.Opened().Session != c.Opened().Session {
		t.Errorf("%s", again.Opened())
	}
	r.advance(time.Hour)
	works(t, again, "re-opened connection")
}

func TestSmallMessages(t *testing.T) {
	r := bareRig(t, Options{NATWorkers: 2})
	r.ok(enable(true, 0))
	if got := r.call(&nat44_ed.NatSetWorkers{WorkerMask: 3}); got != 0 {
		t.Errorf("workers: %d", got)
	}
	if got := r.call(&nat44_ed.NatSetWorkers{WorkerMask: 4}); got != vnet.RetInvalidWorker {
		t.Errorf("third of two workers: %d", got)
	}
	if got := dump[nat44_ed.NatWorkerDetails](t, r.conn, &nat44_ed.NatWorkerDump{}); len(got) != 2 || got[1].Name != "vpp_wk_1" {
		t.Errorf("workers %+v", got)
	}
	if got := r.call(&nat44_ed.NatSetWorkers{WorkerMask: 1}); got != 0 {
		t.Errorf("one worker: %d", got)
	}
	if got := dump[nat44_ed.NatWorkerDetails](t, r.conn, &nat44_ed.NatWorkerDump{}); len(got) != 1 || got[0].Name != "vpp_wk_0" {
		t.Errorf("workers %+v", got)
	}
	if got := invoke[vlib.ShowThreadsReply](t, r.conn, &vlib.ShowThreads{}); got.Count != 3 {
		t.Errorf("threads %+v", got)
	}
	if got := invoke[nat44_ed.Nat44EdShowFqOptionsReply](t, r.conn, &nat44_ed.Nat44EdShowFqOptions{}); got.FrameQueueNelts != 64 {
		t.Errorf("frame queue %d", got.FrameQueueNelts)
	}
	r.ok(enable(false, 0))
	if got := r.call(&nat44_ed.Nat44EdSetFqOptions{FrameQueueNelts: 8}); got != 1 {
		t.Errorf("frame queue after the first enable: %d", got)
	}
	r.ok(&nat44_ed.NatSetMssClamping{MssValue: 1300, Enable: true})
	if got := invoke[nat44_ed.NatGetMssClampingReply](t, r.conn, &nat44_ed.NatGetMssClamping{}); got.MssValue != 1300 || !got.Enable {
		t.Errorf("mss %+v", got)
	}
	r.ok(&nat44_ed.NatSetMssClamping{})
	r.ok(&nat44_ed.Nat44EdAddDelVrfTable{TableVrfID: 3, IsAdd: true})
	r.ok(&nat44_ed.Nat44EdAddDelVrfRoute{TableVrfID: 3, VrfID: 0x01020304, IsAdd: true})
	for _, want := range []*nat44_ed.Nat44EdVrfTablesDetails{{VrfIds: []uint32{0x04030201}}, {TableVrfID: 3, VrfIds: []uint32{0x01020304}}} {
		var got []*nat44_ed.Nat44EdVrfTablesDetails
		want.NVrfIds = 1
		if want.TableVrfID == 0 {
			got = dump[nat44_ed.Nat44EdVrfTablesDetails](t, r.conn, &nat44_ed.Nat44EdVrfTablesDump{})
		} else {
			got = dump[nat44_ed.Nat44EdVrfTablesDetails](t, r.conn, &nat44_ed.Nat44EdVrfTablesV2Dump{})
		}
		if diff := cmp.Diff([]*nat44_ed.Nat44EdVrfTablesDetails{want}, got); diff != "" {
			t.Errorf("vrf tables:\n%s", diff)
		}
	}
	r.advance(90 * time.Second)
	if got := invoke[vpe.ShowVpeSystemTimeReply](t, r.conn, &vpe.ShowVpeSystemTime{}); got.VpeSystemTime != 90 {
		t.Errorf("system time %v", got.VpeSystemTime)
	}
	if got := invoke[vlib.CliInbandReply](t, r.conn, &vlib.CliInband{Cmd: "show simulator\n"}); got.Reply != r.State() {
		t.Errorf("cli: %s", got.Reply)
	}
	if got := invoke[vlib.CliInbandReply](t, r.conn, &vlib.CliInband{Cmd: "clear nat44 ed sessions"}); !strings.HasPrefix(got.Reply, "unknown input") {
		t.Errorf("cli: %s", got.Reply)
	}
	invoke[memclnt.MemclntKeepaliveReply](t, r.conn, &memclnt.MemclntKeepalive{})
	if got := invoke[memclnt.APIVersionsReply](t, r.conn, &memclnt.APIVersions{}); got.Count == 0 {
		t.Error("no api versions")
	}
}

// TestLimitBeforeEnable: a limit that is set while the plugin is off wins over the one of the
// enable call.
func TestLimitBeforeEnable(t *testing.T) {
	r := bareRig(t, Options{})
	r.ok(&nat44_ed.Nat44SetSessionLimit{SessionLimit: 1})
	r.enableNAT()
	r.role("p1", nat_types.NAT_IS_INSIDE)
	r.role("p1", nat_types.NAT_IS_OUTSIDE)
	r.ok(lb(at(vip, 80), selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
	r.Send(tcp(clientPod, 1, at(vip, 80)))
	if v := r.Send(tcp(clientPod, 2, at(vip, 80))); v.Reason != "maximum sessions exceeded" {
		t.Error(v)
	}
}

func TestLateLoopback(t *testing.T) {
	r := newRig(t)
	loop := invoke[interfaces.CreateLoopbackInstanceReply](t, r.conn, &interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 5}).SwIfIndex
	r.ok(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: loop, IsAdd: true, Prefix: withPrefix(t, "10.200.0.1/24")})
	if v := r.Send(udp(clientPod, 1, parse("10.200.0.1:9"))); v.Action == Local {
		t.Errorf("address of an interface that is down: %s", v)
	}
	r.ok(&interfaces.SwInterfaceSetFlags{SwIfIndex: loop, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
	if v := r.Send(udp(clientPod, 1, parse("10.200.0.1:9"))); v.Action != Local {
		t.Errorf("address of VPP: %s", v)
	}
	if v := r.Send(udp(clientPod, 1, parse("10.200.0.7:9"))); v.Out != "loop5" {
		t.Errorf("subnet of a loopback: %s", v)
	}
}

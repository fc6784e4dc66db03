package simulator

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

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

package simulator

import (
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// broken asserts that a connection does not work any more because its session is gone.
func broken(t *testing.T, c *Connection, what string) {
	t.Helper()
	if err := c.Exchange(); err == nil || !strings.Contains(err.Error(), "non-SYN") {
		t.Errorf("%s: exchange: %v, want a dropped non-SYN packet", what, err)
	}
}

// works asserts that a connection still works.
func works(t *testing.T, c *Connection, what string) {
	t.Helper()
	if err := c.Exchange(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// sharedBackends is a rig with two services on the same backends, one connection of each to backend
// A and one to backend B.
func sharedBackends(t *testing.T) (r *rig, first, second map[string]*Connection) {
	r = newRig(t)
	a, b := at(backendA, 8080), at(backendB, 8080)
	r.ok(lb(at(vip, 80), selfTwice, 10, a, b))
	r.ok(lb(at(otherVIP, 80), selfTwice, 10, a, b))
	connections := func(to string, port uint16) map[string]*Connection {
		found := make(map[string]*Connection)
		for i := range uint16(100) {
			dst := at(vip, 80)
			if to == "other" {
				dst = at(otherVIP, 80)
			}
			c := r.dial(tcp(clientPod, port+i, dst))
			found[c.Opened().Out] = c
		}
		if len(found) != 2 {
			t.Fatalf("100 connections use only %v", found)
		}
		return found
	}
	return r, connections("this", 2000), connections("other", 3000)
}

func TestDelLocalKillsSessionsOfAllServices(t *testing.T) {
	r, first, second := sharedBackends(t)
	r.ok(local(true, at(vip, 80), at(clientPod, 1), 0))
	for name, c := range map[string]*Connection{"first to a": first["p2"], "second to a": second["p2"], "first to b": first["p3"]} {
		works(t, c, "after add_local: "+name)
	}
	r.ok(local(false, at(vip, 80), at(backendA, 8080), 10))
	broken(t, first["p2"], "this service, removed backend")
	broken(t, second["p2"], "other service, same backend")
	works(t, first["p3"], "this service, other backend")
	works(t, second["p3"], "other service, other backend")
	for i := range uint16(20) {
		if v := r.Send(tcp(clientPod, 9000+i, at(vip, 80))); v.Out != "p3" {
			t.Errorf("new connection: %s", v)
		}
	}
}

func TestDelLBKillsSessionsOfAllServices(t *testing.T) {
	r, first, second := sharedBackends(t)
	row := lb(at(vip, 53), selfTwice, 10, at(backendA, 8080), at(backendB, 8080))
	row.Protocol = ProtoUDP
	r.ok(row)
	dns := r.dial(udp(clientPod, 5353, at(vip, 53)))
	before := r.SessionCount()
	r.ok(unrow(at(vip, 80)))
	if n := r.SessionCount(); n != 0 {
		t.Errorf("%d of %d sessions survived", n, before)
	}
	broken(t, second["p2"], "other service")
	broken(t, second["p3"], "other service")
	if err := dns.Exchange(); err != nil {
		t.Errorf("UDP opens a new session: %v", err)
	}
	// The service is gone: its packets follow the routes.
	if v := r.Send(tcp(clientPod, 9000, at(vip, 80))); v.Out != "host-up" {
		t.Errorf("%s", v)
	}
	if err := first["p2"].Exchange(); err == nil {
		t.Error("connection to a deleted service works")
	}
}

func TestDelSimpleKillsOneSession(t *testing.T) {
	r := newRig(t)
	r.ok(simple(true, nat_types.NAT_IS_OUT2IN_ONLY, "a"))
	var conns []*Connection
	for i := range uint16(5) {
		conns = append(conns, r.dial(tcp(clientPod, 4000+i, at(simpleVIP, 80))))
	}
	r.ok(simple(false, nat_types.NAT_IS_OUT2IN_ONLY, "a"))
	r.ok(lb(at(simpleVIP, 80), selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
	lost := 0
	for _, c := range conns {
		if c.Exchange() != nil {
			lost++
		}
	}
	if lost != 1 {
		t.Errorf("%d of 5 connections lost, want 1", lost)
	}
}

func TestReplacingARowKeepsNothing(t *testing.T) {
	r := newRig(t)
	svc, a, b := at(vip, 80), at(backendA, 8080), at(backendB, 8080)
	r.ok(lb(svc, selfTwice, 10, a, a))
	c := r.dial(tcp(clientPod, 4000, svc))
	r.ok(unrow(svc))
	r.ok(lb(svc, selfTwice, 10, a, b))
	broken(t, c, "row replaced")
}

func TestPadsMakeChangesHitless(t *testing.T) {
	r := newRig(t)
	svc, a, b := at(vip, 80), at(backendA, 8080), at(backendB, 8080)
	row := lb(svc, selfTwice, 7, a)
	row.Locals = append(row.Locals,
		nat44_ed.Nat44LbAddrPort{Addr: [4]byte{192, 0, 2, 1}, Port: 1},
		nat44_ed.Nat44LbAddrPort{Addr: [4]byte{192, 0, 2, 2}, Port: 1})
	r.ok(row)
	c := r.dial(tcp(clientPod, 4000, svc))
	r.ok(local(true, svc, b, 7))
	works(t, c, "one to two backends")
	r.ok(local(false, svc, b, 7))
	works(t, c, "two to one backend")
	for i := range uint16(50) {
		if v := r.Send(tcp(clientPod, 5000+i, svc)); v.Out != "p2" {
			t.Fatalf("a pad was chosen: %s", v)
		}
	}
}

func TestSessionTableDoesNotDrain(t *testing.T) {
	r := newRig(t)
	svc := at(vip, 80)
	r.ok(lb(svc, selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
	r.ok(&nat44_ed.Nat44SetSessionLimit{SessionLimit: 20})
	for i := range uint16(20) {
		r.dial(tcp(clientPod, 4000+i, svc))
	}
	if v := r.Send(tcp(clientPod, 5000, svc)); v.Reason != "maximum sessions exceeded" {
		t.Fatal(v)
	}
	r.advance(24 * time.Hour)
	if v := r.Send(tcp(clientPod, 5001, svc)); v.Reason != "maximum sessions exceeded" {
		t.Errorf("expired sessions made room: %s", v)
	}
	for _, d := range dump[nat44_ed.Nat44UserSessionV3Details](t, r.conn, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: backendA.As4()}) {
		if !d.IsTimedOut {
			t.Errorf("not timed out: %+v", d)
		}
	}
	r.ok(&nat44_ed.Nat44SetSessionLimit{SessionLimit: 21})
	r.dial(tcp(clientPod, 5002, svc))
	// Every new session frees one that is dead, so the table does not grow.
	r.dial(tcp(clientPod, 5003, svc))
	if n := r.SessionCount(); n != 20 {
		t.Errorf("%d sessions", n)
	}
}

func TestDynamicTrafficEvicts(t *testing.T) {
	r := bareRig(t, Options{})
	r.enableNAT()
	r.role("p1", nat_types.NAT_IS_INSIDE)
	r.role("p1", nat_types.NAT_IS_OUTSIDE)
	r.ok(&nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: true, SwIfIndex: r.index("host-up")})
	r.ok(&nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: nodeIP.As4(), LastIPAddress: nodeIP.As4(), IsAdd: true})
	r.ok(&nat44_ed.Nat44SetSessionLimit{SessionLimit: 3})
	if n, err := r.FillSessions(10); n != 3 || err != nil {
		t.Fatalf("filled %d, %v", n, err)
	}
	out := tcp(clientPod, 4000, at(outsider, 443))
	if v := r.Send(out); v.Reason != "maximum sessions exceeded" {
		t.Errorf("%s", v)
	}
	r.advance(time.Hour)
	if v := r.Send(out); v.Action != Delivered || v.Src.Addr() != nodeIP {
		t.Errorf("nothing was evicted: %s", v)
	}
}

func TestDelAddressKillsDynamicSessions(t *testing.T) {
	r := bareRig(t, Options{})
	r.enableNAT()
	r.role("p1", nat_types.NAT_IS_INSIDE)
	r.role("p1", nat_types.NAT_IS_OUTSIDE)
	r.ok(&nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: true, SwIfIndex: r.index("host-up")})
	pool := &nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: nodeIP.As4(), LastIPAddress: nodeIP.As4(), IsAdd: true}
	r.ok(pool)
	c := r.dial(tcp(clientPod, 4000, at(outsider, 443)))
	pool.IsAdd = false
	r.ok(pool)
	if n := r.SessionCount(); n != 0 {
		t.Errorf("%d sessions left", n)
	}
	if err := c.Exchange(); err == nil {
		t.Error("connection survived its address")
	}
}

func TestRemovingTheLastRolesExpiresSessions(t *testing.T) {
	r := bareRig(t, Options{})
	r.enableNAT()
	r.role("p1", nat_types.NAT_IS_OUTSIDE)
	r.role("p2", nat_types.NAT_IS_OUTSIDE)
	svc := at(vip, 80)
	r.ok(lb(svc, selfTwice, 10, at(backendA, 8080), at(backendA, 8080)))
	c := r.dial(tcp(clientPod, 4000, svc))
	r.ok(&nat44_ed.Nat44InterfaceAddDelFeature{Flags: nat_types.NAT_IS_OUTSIDE, SwIfIndex: r.index("p1")})
	r.ok(&nat44_ed.Nat44InterfaceAddDelFeature{Flags: nat_types.NAT_IS_OUTSIDE, SwIfIndex: r.index("p2")})
	r.role("p1", nat_types.NAT_IS_OUTSIDE)
	r.role("p2", nat_types.NAT_IS_OUTSIDE)
	broken(t, c, "VRF had no NAT interface in between")
	if n := r.SessionCount(); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

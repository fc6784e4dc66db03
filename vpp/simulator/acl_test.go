package simulator

import (
	"net/netip"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// aclRuleOf makes a rule for one destination port; 0 means any protocol.
func aclRuleOf(action acl_types.ACLAction, src, dst string, proto uint8, port uint16) acl_types.ACLRule {
	r := acl_types.ACLRule{
		IsPermit: action, SrcPrefix: forwarding.Prefix(netip.MustParsePrefix(src)), DstPrefix: forwarding.Prefix(netip.MustParsePrefix(dst)),
		Proto: ip_types.IPProto(proto), SrcportOrIcmptypeLast: 65535, DstportOrIcmpcodeFirst: port, DstportOrIcmpcodeLast: port,
	}
	if port == 0 {
		r.DstportOrIcmpcodeLast = 65535
	}
	return r
}

// Actions of rules.
const (
	deny   = acl_types.ACL_ACTION_API_DENY
	permit = acl_types.ACL_ACTION_API_PERMIT
	mirror = acl_types.ACL_ACTION_API_PERMIT_REFLECT
)

// everything is the rule that permits all of ip4.
var everything = aclRuleOf(permit, "0.0.0.0/0", "0.0.0.0/0", 0, 0)

// newACL makes an ACL and returns its index.
func (r *rig) newACL(rules ...acl_types.ACLRule) uint32 {
	r.t.Helper()
	reply := invoke[acl.ACLAddReplaceReply](r.t, r.conn, &acl.ACLAddReplace{ACLIndex: vnet.None, Tag: "test", R: rules})
	if reply.Retval != 0 {
		r.t.Fatalf("retval %d", reply.Retval)
	}
	return reply.ACLIndex
}

// apply sets the lists of an interface.
func (r *rig) apply(name string, input []uint32, output ...uint32) {
	r.t.Helper()
	r.ok(&acl.ACLInterfaceSetACLList{SwIfIndex: r.index(name), NInput: uint8(len(input)), Acls: append(append([]uint32{}, input...), output...)})
}

// expectFate sends a packet and compares its fate.
func (r *rig) expectFate(p Packet, want Action, reason string) Verdict {
	r.t.Helper()
	v := r.Send(p)
	if v.Action != want || !strings.Contains(v.Reason, reason) {
		r.t.Errorf("%s, want %s (%s)", v, want, reason)
	}
	return v
}

// TestInputACLBeforeNAT: an input ACL sees the VIP, a dropped packet makes no session, and another
// interface is not concerned.
func TestInputACLBeforeNAT(t *testing.T) {
	r := newRig(t)
	r.ok(lb(at(vip, 80), nat_types.NAT_IS_SELF_TWICE_NAT, 7, at(backendA, 8080), at(backendB, 8080)))
	remote := r.newACL(aclRuleOf(deny, "0.0.0.0/0", "10.96.0.1/32", ProtoTCP, 80))
	all := r.newACL(everything)
	r.apply("host-up", []uint32{remote, all})

	v := r.expectFate(tcp(outsider, 4000, at(vip, 80)), Dropped, "denied by input ACL")
	if v.Session != 0 || v.Dst != at(vip, 80) {
		t.Errorf("translated: %s", v)
	}
	r.expectFate(tcp(clientPod, 4000, at(vip, 80)), Delivered, "")
	r.expectFate(tcp(outsider, 4000, at(backendA, 8080)), Delivered, "")
	r.expectFate(udp(outsider, 4000, at(backendA, 80)), Delivered, "")
	r.expectFate(Packet{In: "host-up", Src: at(outsider, 7), Dst: at(nodeIP, 7), Proto: ProtoICMP}, Local, "")

	// In place, with the list as it is.
	r.ok(&acl.ACLAddReplace{ACLIndex: remote, R: []acl_types.ACLRule{aclRuleOf(deny, "192.168.50.128/25", "10.96.0.1/32", ProtoTCP, 80)}})
	r.expectFate(tcp(outsider, 4000, at(vip, 80)), Delivered, "")
	far := tcp(outsider, 4000, at(vip, 80))
	far.Src = parse("192.168.50.200:4000")
	r.expectFate(far, Dropped, "denied by input ACL")
}

// TestRoutesBehindACL: packets that an ACL permits meet the routes.
func TestRoutesBehindACL(t *testing.T) {
	r := newRig(t)
	for prefix, action := range map[string]RouteAction{"10.96.0.0/16": RouteReject, "10.97.0.0/16": RouteDrop} {
		if err := r.AddRoute(Route{Prefix: netip.MustParsePrefix(prefix), Action: action}); err != nil {
			t.Fatal(err)
		}
	}
	r.apply("p1", []uint32{r.newACL(aclRuleOf(deny, "0.0.0.0/0", "10.96.0.1/32", ProtoTCP, 80)), r.newACL(everything)})
	r.expectFate(tcp(clientPod, 4000, at(vip, 80)), Dropped, "denied by input ACL")
	r.expectFate(tcp(clientPod, 4000, at(vip, 81)), Rejected, "")
	r.expectFate(tcp(clientPod, 4000, parse("10.97.0.1:80")), Dropped, "")
	if v := r.Send(tcp(clientPod, 4000, parse("10.97.0.1:80"))); strings.Contains(v.Reason, "ACL") {
		t.Error(v)
	}
}

// TestOutputACLAfterNAT: it sees the backend.
func TestOutputACLAfterNAT(t *testing.T) {
	r := newRig(t)
	r.ok(lb(at(vip, 80), nat_types.NAT_IS_SELF_TWICE_NAT, 7, at(backendA, 8080), at(backendA, 8080)))
	blind := r.newACL(aclRuleOf(deny, "0.0.0.0/0", "10.96.0.1/32", ProtoTCP, 80), everything)
	seeing := r.newACL(aclRuleOf(deny, "0.0.0.0/0", "10.1.2.2/32", ProtoTCP, 8080), everything)
	r.apply("p2", nil, blind)
	r.expectFate(tcp(clientPod, 4000, at(vip, 80)), Delivered, "")
	r.apply("p2", nil, seeing)
	r.expectFate(tcp(clientPod, 4001, at(vip, 80)), Dropped, "denied by output ACL")
}

// TestFirstMatchOfTheListDecides: over all ACLs of the list in their order, and no match is a
// denial.
func TestFirstMatchOfTheListDecides(t *testing.T) {
	r := bareRig(t, Options{})
	no := r.newACL(aclRuleOf(deny, "10.1.1.0/24", "0.0.0.0/0", ProtoTCP, 22))
	yes := r.newACL(aclRuleOf(permit, "10.1.0.0/16", "0.0.0.0/0", ProtoTCP, 0))
	empty := r.newACL()
	ssh, web := tcp(clientPod, 4000, at(backendA, 22)), tcp(clientPod, 4000, at(backendA, 80))
	for _, c := range []struct {
		list      []uint32
		ssh, web  Action
		datagrams Action
	}{
		{nil, Delivered, Delivered, Delivered},
		{[]uint32{no, yes}, Dropped, Delivered, Dropped},
		{[]uint32{yes, no}, Delivered, Delivered, Dropped},
		{[]uint32{no}, Dropped, Dropped, Dropped},
		{[]uint32{empty}, Dropped, Dropped, Dropped},
		{[]uint32{empty, yes}, Delivered, Delivered, Dropped},
	} {
		r.apply("p1", c.list)
		if a, b, d := r.Send(ssh), r.Send(web), r.Send(udp(clientPod, 4000, at(backendA, 80))); a.Action != c.ssh || b.Action != c.web || d.Action != c.datagrams {
			t.Errorf("%v: %s, %s, %s", c.list, a, b, d)
		}
	}
}

// TestRuleMatching: protocols, ports, flags and families.
func TestRuleMatching(t *testing.T) {
	r := bareRig(t, Options{})
	syn := aclRuleOf(permit, "0.0.0.0/0", "0.0.0.0/0", ProtoTCP, 0)
	syn.TCPFlagsMask, syn.TCPFlagsValue = uint8(SYN|ACK), uint8(SYN)
	low := aclRuleOf(permit, "0.0.0.0/0", "0.0.0.0/0", ProtoTCP, 0)
	low.SrcportOrIcmptypeLast = 1023
	request := aclRuleOf(permit, "0.0.0.0/0", "0.0.0.0/0", ProtoICMP, 0)
	request.SrcportOrIcmptypeFirst, request.SrcportOrIcmptypeLast = 8, 8
	six := aclRuleOf(permit, "::/0", "::/0", 0, 0)
	sctp80 := aclRuleOf(permit, "0.0.0.0/0", "0.0.0.0/0", ProtoSCTP, 80)
	answer := tcp(clientPod, 4000, at(backendA, 80))
	answer.Flags = SYN | ACK
	ping := Packet{In: "p1", Src: at(clientPod, 7), Dst: at(backendA, 7), Proto: ProtoICMP}
	pong := ping
	pong.EchoReply = true
	for _, c := range []struct {
		name string
		rule acl_types.ACLRule
		p    Packet
		want Action
	}{
		{"SYN", syn, tcp(clientPod, 4000, at(backendA, 80)), Delivered},
		{"SYN and ACK", syn, answer, Dropped},
		{"low source port", low, tcp(clientPod, 1023, at(backendA, 80)), Delivered},
		{"high source port", low, tcp(clientPod, 1024, at(backendA, 80)), Dropped},
		{"echo request", request, ping, Delivered},
		{"echo reply", request, pong, Dropped},
		{"other family", six, ping, Dropped},
		{"no protocol, no ports", everything, pong, Delivered},
		{"ports of SCTP are not read", sctp80, Packet{In: "p1", Src: at(clientPod, 7), Dst: at(backendA, 80), Proto: ProtoSCTP}, Dropped},
	} {
		r.apply("p1", []uint32{r.newACL(c.rule)})
		if v := r.Send(c.p); v.Action != c.want {
			t.Errorf("%s: %s, want %s", c.name, v, c.want)
		}
	}
}

// TestACLsEndWithTheInterface: a new interface with the index of an old one has no ACLs, and a new
// start has none at all.
func TestACLsEndWithTheInterface(t *testing.T) {
	r := bareRig(t, Options{})
	index := r.index("p1")
	list := r.newACL(aclRuleOf(mirror, "0.0.0.0/0", "0.0.0.0/0", 0, 0))
	r.apply("p1", []uint32{list}, list)
	r.Send(tcp(clientPod, 4000, at(backendA, 80)))
	if state := r.State(); !strings.Contains(state, "on p1 input [0] output [0]") || !strings.Contains(state, `0 "test" 1 rules`) ||
		!strings.Contains(state, "permit+reflect 0.0.0.0/0 > 0.0.0.0/0") {
		t.Errorf("state:\n%s", state)
	}
	if code := r.call(&acl.ACLDel{ACLIndex: list}); code != vnet.RetACLInUseInbound {
		t.Errorf("retval %d", code)
	}
	if err := r.DeleteInterface("p1"); err != nil {
		t.Fatal(err)
	}
	r.ok(&acl.ACLDel{ACLIndex: list})
	if _, err := r.AddPod("p1", clientPod); err != nil {
		t.Fatal(err)
	}
	if again := r.index("p1"); again != index {
		t.Fatalf("index %d, want %d", again, index)
	}
	r.expectFate(tcp(clientPod, 4000, at(backendA, 80)), Delivered, "")
	r.newACL()
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	if state := r.State(); strings.Contains(state, "acls") {
		t.Errorf("state:\n%s", state)
	}
}

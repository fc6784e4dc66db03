package contract

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// datagram sends both fragments of a UDP datagram from the clients, and returns how many came
// through.
func (h *holder) datagram(t testing.TB, dst netip.AddrPort, id uint64) int {
	t.Helper()
	fragment := packet{port: h.clients, src: netip.MustParseAddrPort("198.18.0.7:40000"), dst: dst, proto: rule.UDP}
	first, second := fragment, fragment
	first.id, first.fragment, second.id, second.fragment = id, 1, id+1, 2
	return len(h.traffic.exchange(t, []packet{first, second}))
}

// undelivered is a view of a UDP service with policy Local and without a local endpoint, whose
// packets from outside are to be dropped.
func undelivered(kind messages.FrontendKind, scope messages.Scope, address string) *messages.ServiceView {
	return &messages.ServiceView{Key: "default/dns", Frontends: []*messages.Frontend{{
		Address: address, Port: 53, Protocol: messages.Protocol_UDP, PortName: "dns", Kind: kind, Scope: scope,
		From: messages.ClientClass_FROM_REMOTE, Action: messages.Action_ACTION_DROP,
	}}}
}

// fragmentCases are about UDP datagrams in fragments: the later ones carry no port.
var fragmentCases = []contractCase{
	{"fragments/a rule for UDP drops those to every port of the address", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		rule := acl.Rule{Class: acl.Remote, VIP: netip.MustParseAddr("198.18.0.53"), Port: 53, Proto: rule.UDP, From: netip.MustParsePrefix("0.0.0.0/0")}
		v.settleACLs(t, &acl.Want{Rules: []acl.Rule{rule}, Interfaces: map[uint32]acl.Class{uint32(h.clients): acl.Remote}})
		for i, c := range []struct {
			to   string
			want int
		}{{"198.18.0.53:53", 0}, {"198.18.0.53:54", 1}, {"198.18.0.54:53", 2}} {
			check(t, "fragments to "+c.to, c.want, h.datagram(t, netip.MustParseAddrPort(c.to), uint64(1000+10*i)))
		}
	}},
	{"fragments/nothing is dropped at addresses that others use", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		host := netip.MustParseAddr("198.18.0.55")
		config := acl.Config{Ground: rule.Ground{Hosts: map[netip.Addr]bool{host: true}}}
		var plans []*acl.ServicePlan
		for _, view := range []*messages.ServiceView{
			undelivered(messages.FrontendKind_KIND_EXTERNAL_IP, messages.Scope_SCOPE_EXTERNAL, "198.18.0.53"),
			undelivered(messages.FrontendKind_KIND_NODE_PORT, messages.Scope_SCOPE_NODEPORT, "198.18.0.54"),
			undelivered(messages.FrontendKind_KIND_LOAD_BALANCER_IP, messages.Scope_SCOPE_EXTERNAL, host.String()),
			undelivered(messages.FrontendKind_KIND_LOAD_BALANCER_IP, messages.Scope_SCOPE_EXTERNAL, "198.18.0.56"),
		} {
			plans = append(plans, acl.Plan(view, config))
		}
		rules := acl.Merge(plans, func(rule.Key) (string, bool) { return "default/dns", true })
		v.settleACLs(t, &acl.Want{Rules: rules, Interfaces: map[uint32]acl.Class{uint32(h.clients): acl.Remote}})
		for i, c := range []struct {
			to   string
			want int
		}{{"198.18.0.53:54", 2}, {"198.18.0.54:54", 2}, {"198.18.0.55:54", 2}, {"198.18.0.56:53", 0}} {
			check(t, "fragments to "+c.to, c.want, h.datagram(t, netip.MustParseAddrPort(c.to), uint64(2000+10*i)))
		}
	}},
}

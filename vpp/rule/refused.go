package rule

import (
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// Wants and renderings of frontends without a row.
const (
	Refused = "reject: connection refused"
	NoRow   = "no row: the packet follows the routes of VPP"
)

// Reasons why a route is not exactly what Kubernetes asks for. It covers all ports of an address.
const (
	whyExternalIP = "an unreachable route would cut off every port of an address that is not of the cluster"
	whyFragments  = "later fragments carry no port: an access list would drop those to every UDP port of an address that others use"
	whyOneRoute   = "another port of the address is to be refused, and one route answers for all of them"
)

// refused enters a frontend without a row, whose packets are to be rejected or dropped; guarded
// says that an access list drops the latter.
func (p *Planner) refused(key Key, rule *messages.Frontend, guarded bool) {
	reject := rule.GetAction() == messages.Action_ACTION_REJECT
	// A service without endpoints keeps no external IP from other services; one that drops has
	// endpoints.
	if rank := RankOf(rule); rank < OfExternalIP || !reject {
		p.Refused = append(p.Refused, Refusal{key, rank, rule})
	}
	scope := rule.GetScope()
	routed := p.cfg.Unreachable
	switch {
	case reject && routed && scope == messages.Scope_SCOPE_CLUSTER:
		// the renderer of routes reports how the packet is refused
	case reject && RankOf(rule) == OfExternalIP:
		p.Approximate(Refused, NoRow, whyExternalIP)
	case reject && routed && scope == messages.Scope_SCOPE_EXTERNAL && !p.leaving(rule.GetAddress()):
		// the same
	case reject:
		p.Approximate(Refused, NoRow, p.cfg.Name+" sends no refusal; an unreachable route for the address makes connections fail at once")
	case guarded: // an access list drops the packet before NAT, exactly as requested
	case routed && scope == messages.Scope_SCOPE_CLUSTER && p.refusing(rule.GetAddress()):
		p.Approximate("drop", "reject", whyOneRoute)
	case routed && scope == messages.Scope_SCOPE_CLUSTER:
		// a route drops the packet, exactly as requested
	case p.cfg.Guarded:
		p.Approximate("drop", NoRow, whyFragments)
	default:
		p.Approximate("drop", NoRow, p.cfg.Name+" drops nothing by itself; without a route for the address the packet goes nowhere")
	}
}

// refusing reports whether the service rejects packets to another port of a cluster IP.
func (p *Planner) refusing(address string) bool {
	return slices.ContainsFunc(p.view.GetFrontends(), func(f *messages.Frontend) bool {
		return f.GetAddress() == address && f.GetAction() == messages.Action_ACTION_REJECT && f.GetScope() == messages.Scope_SCOPE_CLUSTER
	})
}

// leaving reports whether an external address is left to the network, because a port of it is
// served, here or by another node.
func (p *Planner) leaving(address string) bool {
	return slices.ContainsFunc(p.view.GetFrontends(), func(f *messages.Frontend) bool {
		return f.GetAddress() == address && f.GetScope() == messages.Scope_SCOPE_EXTERNAL && f.GetAction() != messages.Action_ACTION_REJECT
	})
}

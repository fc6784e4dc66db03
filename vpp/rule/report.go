package rule

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/troupe-vpp/troupe/messages"
)

// Approximate reports that the current frontend is not rendered exactly.
func (p *Planner) Approximate(wanted, rendered, why string) {
	p.Approximations = append(p.Approximations, &messages.Approximation{
		Service: p.Service, Frontend: p.Frontend, Wanted: wanted, Rendered: rendered, Why: why,
	})
}

// Particular marks the last approximation as one that is caused by the spec of the service.
func (p *Planner) Particular() { p.Approximations[len(p.Approximations)-1].Particular = true }

// Unrender reports that the current frontend, or a part of it, has no row.
func (p *Planner) Unrender(f *messages.Frontend, field, message string) {
	p.Unrendered = append(p.Unrendered, &messages.ObjectError{
		Source: p.cfg.Renderer, Kind: "Service", Object: p.Service, Field: "ports[" + f.GetPortName() + "]." + field, Message: message,
	})
}

// whyLocal is the reason why one rule decides for all clients.
func (p *Planner) whyLocal() string {
	return p.cfg.Name + " has one row per address, port and protocol; the rule for clients outside this node decides"
}

// reportOthers reports the rules that the row does not follow, unless they have the same effect as
// the deciding one.
func (p *Planner) reportOthers(rules []*messages.Frontend, decided *messages.Frontend) {
	for _, rule := range rules {
		if rule != decided && !sameAnswer(rule, decided) {
			p.Approximate(fmt.Sprintf("from %s: %s", fromText(rule.GetFrom()), answerText(rule)), "as for all clients: "+answerText(decided), p.whyLocal())
		}
	}
}

// sameAnswer reports whether two rules do the same with a packet apart from its source address.
func sameAnswer(a, b *messages.Frontend) bool {
	if a.GetAction() != b.GetAction() || len(a.GetBackends()) != len(b.GetBackends()) {
		return false
	}
	for i, backend := range a.GetBackends() {
		if backend.GetAddress() != b.GetBackends()[i].GetAddress() || backend.GetPort() != b.GetBackends()[i].GetPort() {
			return false
		}
	}
	return true
}

// answerText returns what a rule does with a packet.
func answerText(rule *messages.Frontend) string {
	switch rule.GetAction() {
	case messages.Action_ACTION_REJECT:
		return "reject"
	case messages.Action_ACTION_DROP:
		return "drop"
	default:
		return strconv.Itoa(len(rule.GetBackends())) + " endpoints"
	}
}

// fromText is the word of a client class.
func fromText(from messages.ClientClass) string {
	switch from {
	case messages.ClientClass_FROM_LOCAL:
		return "local"
	case messages.ClientClass_FROM_REMOTE:
		return "remote"
	default:
		return "any"
	}
}

// Name makes a frontend the current one: "ip:port/PROTO", IPv6 in brackets; an invalid address
// stays as it is.
func (p *Planner) Name(f *messages.Frontend) {
	host := f.GetAddress()
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]"
	}
	p.Frontend = host + ":" + strconv.FormatUint(uint64(f.GetPort()), 10) + "/" + ProtocolName(uint8(f.GetProtocol()))
}

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

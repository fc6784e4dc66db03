package nat44

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// Reasons why a row is not exactly what Kubernetes asks for. Source ranges are not among them: package acl reports those that no access
// list enforces.
const (
	noRow = "no row: the packet follows the routes of VPP"

	whyReject    = "NAT44 sends no refusal; an unreachable route for the address makes connections fail at once"
	whyDrop      = "NAT44 drops nothing by itself; without a route for the address the packet goes nowhere"
	whyLocal     = "NAT44 has one row per address, port and protocol; the rule for clients outside this node decides"
	whyAffinity  = "NAT44 keeps affinity per row and counts its time from the end of the client's last session"
	whyNoAddress = "no twice-NAT address is configured: VPP drops connections whose source it has to replace"
	whyFamily    = "NAT44 is IPv4 only: choose a renderer that serves IPv6"
	whyOneSource = "NAT44 replaces the source for every client of a row or for none, and pods have to keep theirs"
	whyParity    = "VPP's generator chooses among backends of weight 1 by a bit that hardly changes while nothing but masqueraded connections arrive"
)

// whySubset is the reason for a subset of the endpoints.
var whySubset = fmt.Sprintf("a row has room for %d backends", MaxBackends)

// approximate reports that the current frontend is not rendered exactly.
func (p *planner) approximate(wanted, rendered, why string) {
	p.plan.Approximations = append(p.plan.Approximations, &messages.Approximation{
		Service: p.plan.Service, Frontend: p.name, Wanted: wanted, Rendered: rendered, Why: why,
	})
}

// unrendered reports that the current frontend, or a part of it, has no row.
func (p *planner) unrendered(f *messages.Frontend, field, message string) {
	p.plan.Unrendered = append(p.plan.Unrendered, &messages.ObjectError{
		Source: Renderer, Kind: "Service", Object: p.plan.Service, Field: "ports[" + f.GetPortName() + "]." + field, Message: message,
	})
}

// reportOthers reports the rules that the row does not follow, unless they have the same effect as the deciding one.
func (p *planner) reportOthers(rules []*messages.Frontend, decided *messages.Frontend) {
	for _, rule := range rules {
		if rule != decided && !sameAnswer(rule, decided) {
			p.approximate(fmt.Sprintf("from %s: %s", fromText(rule.GetFrom()), answerText(rule)), "as for all clients: "+answerText(decided), whyLocal)
		}
	}
}

// reportAffinity reports how the affinity of a row differs.
func (p *planner) reportAffinity(seconds uint32) {
	p.approximate(fmt.Sprintf("a client stays with its endpoint for %d s, for all frontends of the port", seconds),
		"a client stays with its endpoint per frontend, until any endpoint goes", whyAffinity)
	p.particular()
}

// particular marks the last approximation as one that the service has because of what it asks for.
func (p *planner) particular() { p.plan.Approximations[len(p.plan.Approximations)-1].Particular = true }

// reportKept reports that the source of clients outside the cluster is not replaced. Where every endpoint is on this node its answers come back all
// the same.
func (p *planner) reportKept() {
	rendered := "source kept: the endpoints are on this node, and so their answers come back to it"
	if p.chosen.elsewhere {
		rendered = "source kept: the answer of an endpoint on another node may go past this node"
	}
	p.approximate("the source of clients outside the cluster replaced", rendered, whyOneSource)
}

// reportTwiceNAT reports the limits of a row that replaces every source.
func (p *planner) reportTwiceNAT(backends int, weight uint8) {
	if !p.cfg.TwiceNAT.IsValid() {
		p.approximate("the source of every client replaced", "connections dropped", whyNoAddress)
	}
	if weight == 1 && backends%2 == 0 {
		p.approximate("equal shares for all endpoints", "possibly half of the endpoints for a while", whyParity)
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

// frontendText returns "ip:port/PROTO", IPv6 in brackets; an invalid address is returned as it is.
func frontendText(f *messages.Frontend) string {
	host := f.GetAddress()
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.FormatUint(uint64(f.GetPort()), 10) + "/" + frontend.ProtocolName(uint8(f.GetProtocol()))
}

package rule

import (
	"fmt"
	"net/netip"
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

// frontendText returns "ip:port/PROTO", IPv6 in brackets; an invalid address is returned as it is.
func frontendText(f *messages.Frontend) string {
	host := f.GetAddress()
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.FormatUint(uint64(f.GetPort()), 10) + "/" + ProtocolName(uint8(f.GetProtocol()))
}

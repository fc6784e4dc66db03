package acl

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// ServicePlan is the result of Plan: the rules of one service.
type ServicePlan struct {
	// Service is its key, "namespace/name".
	Service string
	// Rules are minimal (see Minimal), at most MaxServiceRules for every class of interfaces.
	Rules []Rule
	// Closed are rules for the same frontends that drop all clients of their class. They replace Rules where those do not fit. There are
	// one or two per frontend, and they equal Rules where no sources are distinguished.
	Closed []Rule
	// Approximations are the places where the rules are not exactly what Kubernetes asks for.
	Approximations []*messages.Approximation
	// Unrendered is what no rule can express: SCTP, IPv6, source ranges that are too many or unusable.
	Unrendered []*messages.ObjectError
	// Unguarded are the approximations that hold while the rules are not in VPP, for example because its ACL plugin is not loaded: clients
	// from outside the source ranges are served. What then happens to packets that should be dropped depends on the rows, so their planner
	// reports it (nat44.Config.Guarded).
	Unguarded []*messages.Approximation
}

// Plan returns what VPP has to drop in front of NAT for one service on this node: packets to load-balancer addresses from outside their
// source ranges, and packets to frontends whose action is to drop. It is pure: the same view gives the same plan.
func Plan(view *messages.ServiceView, cfg Config) *ServicePlan {
	p := planner{cfg: cfg, plan: &ServicePlan{Service: view.GetKey()}}
	for _, f := range view.GetFrontends() {
		p.frontend(f)
	}
	p.plan.Rules, p.plan.Closed = Minimal(p.rules), Minimal(p.closed)
	p.bound()
	return p.plan
}

// planner collects the plan of one service.
type planner struct {
	cfg           Config
	plan          *ServicePlan
	rules, closed []Rule
	// name is the text of the current frontend, told the last one whose fragments were reported, so that each is reported once.
	name, told string
}

// frontend plans one rule of Kubernetes.
func (p *planner) frontend(f *messages.Frontend) {
	dropped := f.GetAction() == messages.Action_ACTION_DROP
	if !dropped && len(f.GetAllowSources()) == 0 {
		return
	}
	p.name = frontendText(f)
	rule, ok := p.rule(f)
	if !ok {
		return
	}
	if dropped {
		p.rules, p.closed = append(p.rules, rule), append(p.closed, rule)
		p.reportClass(rule)
	} else if outside := Complement(rule.From, p.sources(f)); len(outside) > 0 {
		for _, from := range outside {
			r := rule
			r.From = from
			p.rules = append(p.rules, r)
		}
		p.closed = append(p.closed, rule)
		p.unguarded("only clients from " + join(f.GetAllowSources()))
	} else {
		return
	}
	p.reportFragments(rule)
}

// rule returns the rule that drops every packet of the clients of a frontend; a frontend that VPP cannot match is entered as unrendered.
func (p *planner) rule(f *messages.Frontend) (Rule, bool) {
	addr, err := netip.ParseAddr(f.GetAddress())
	proto := f.GetProtocol()
	switch {
	case err != nil || addr.Zone() != "" || f.GetPort() == 0 || f.GetPort() > 65535:
		p.unrendered(f, "address", fmt.Sprintf("frontend %s is not an address and a port", p.name))
	case addr.Is6() && p.cfg.IPv6Elsewhere:
	case addr.Is6():
		p.unrendered(f, "address", fmt.Sprintf("frontend %s is IPv6 and is not guarded: ACLs are made for IPv4 only", p.name))
	case proto != messages.Protocol_TCP && proto != messages.Protocol_UDP:
		p.unrendered(f, "protocol", fmt.Sprintf("frontend %s is not guarded: ACLs compare ports of TCP and UDP only", p.name))
	default:
		return Rule{
			Class: classOf(f.GetFrom()), VIP: addr, Port: uint16(f.GetPort()), Proto: uint8(proto), From: allAddresses(addr),
		}, true
	}
	return Rule{}, false
}

// sources returns the networks that may send. An invalid one allows no client: it must not widen access.
func (p *planner) sources(f *messages.Frontend) []netip.Prefix {
	var sources []netip.Prefix
	for _, text := range f.GetAllowSources() {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			p.unrendered(f, "allowSources", fmt.Sprintf("frontend %s: %q is not a network; it admits no client", p.name, text))
			continue
		}
		sources = append(sources, prefix)
	}
	return sources
}

// bound closes the frontends of a service with too many rules: all clients of their class are dropped, because a part of the rules would
// admit too many.
func (p *planner) bound() {
	for _, class := range classes {
		if n := len(forInterface(p.plan.Rules, class)); n > MaxServiceRules {
			p.plan.Rules = p.plan.Closed
			p.plan.Unrendered = append(p.plan.Unrendered, &messages.ObjectError{
				Source: Renderer, Kind: "Service", Object: p.plan.Service, Field: "spec.loadBalancerSourceRanges",
				Message: fmt.Sprintf("the source ranges need %d rules, more than %d: all clients are dropped; use fewer or larger ranges", n, MaxServiceRules),
			})
			return
		}
	}
}

// classOf translates a client class.
func classOf(from messages.ClientClass) Class {
	switch from {
	case messages.ClientClass_FROM_LOCAL:
		return Local
	case messages.ClientClass_FROM_REMOTE:
		return Remote
	default:
		return Any
	}
}

// udp reports whether fragments are common for the protocol of the rule; TCP avoids them.
func udp(r Rule) bool { return r.Proto == frontend.UDP }

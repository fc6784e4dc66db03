package acl

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// ServicePlan is the result of Plan: the rules of one service.
type ServicePlan struct {
	// Plan has the approximations, and in Unrendered what no rule can express: SCTP, IPv6, unusable
	// source ranges.
	rule.Plan
	// Ranges drop packets from outside of source ranges, whichever service serves the frontend:
	// kube-proxy looks up source ranges by address, port and protocol. Drops drop the packets
	// to frontends whose action is to drop; they count where the service owns the frontend.
	// Both are minimal (see Minimal), and nil where the service needs more than
	// MaxServiceRules.
	Ranges, Drops []Rule
	// Ranged are the frontends with source ranges that need rules, in the order of the view.
	// None of them may be served without its rules.
	Ranged []rule.Key
	// Closed are the frontends with source ranges that no rule may enforce, because it would
	// drop fragments to other ports of an address that others use. They are not served.
	Closed []rule.Key
	// Needs is how many rules the service needs on interfaces of one class. Above
	// MaxServiceRules it may need even more.
	Needs int
	// Unserved are the approximations that hold instead while VPP can have no rules: the
	// frontends of Ranged are not served. The planner of the rows reports what happens to
	// packets that should be dropped (nat44.Config.Guarded).
	Unserved []*messages.Approximation
}

// Rules returns all rules of the service; minimal.
func (p *ServicePlan) Rules() []Rule { return Minimal(slices.Concat(p.Ranges, p.Drops)) }

// Plan returns what VPP has to drop in front of NAT for one service on this node: packets to
// load-balancer addresses from outside their source ranges, and packets to frontends whose action
// is to drop. It is pure: the same view gives the same plan.
func Plan(view *messages.ServiceView, cfg Config) *ServicePlan {
	p := planner{Planner: rule.New(view, rule.Config{Renderer: Renderer}), cfg: cfg, view: view, plan: &ServicePlan{}}
	for _, f := range view.GetFrontends() {
		p.frontend(f)
	}
	p.plan.Ranged = slices.Compact(p.plan.Ranged)
	p.plan.Ranges, p.plan.Drops = Minimal(p.plan.Ranges), Minimal(p.plan.Drops)
	for _, class := range classes {
		p.plan.Needs = max(p.plan.Needs, len(forInterface(slices.Concat(p.plan.Ranges, p.plan.Drops), class)))
	}
	if p.plan.Needs > MaxServiceRules {
		p.plan.Ranges, p.plan.Drops = nil, nil
	}
	p.plan.Plan = *p.Plan
	return p.plan
}

// planner collects the plan of one service.
type planner struct {
	*rule.Planner
	cfg  Config
	view *messages.ServiceView
	plan *ServicePlan
	// told is the last frontend whose fragments were reported, so that each is reported once.
	told string
	// outside are the networks that the source ranges allowed leave out: the frontends of a
	// service mostly share one list.
	allowed []string
	outside []netip.Prefix
	// dropping says for each address of the service whether all of its ports drop; nil = not
	// computed yet.
	dropping map[string]bool
}

// frontend plans one rule of Kubernetes.
func (p *planner) frontend(f *messages.Frontend) {
	dropped := f.GetAction() == messages.Action_ACTION_DROP
	if !dropped && len(f.GetAllowSources()) == 0 || dropped && p.routed(f) {
		return
	}
	p.Name(f)
	rule, ok := p.rule(f)
	if !ok {
		return
	}
	droppable := p.cfg.Ground.Droppable(rule.Key(), f)
	if len(f.GetAllowSources()) > 0 {
		outside := p.complement(rule.From, f)
		if len(outside) > 0 && !droppable {
			p.close(rule.Key(), f)
			return
		}
		if len(outside) > 0 {
			p.plan.Ranged = append(p.plan.Ranged, rule.Key())
			p.unserved(f.GetAllowSources())
			p.ranges(rule, outside)
		} else if !dropped {
			return
		}
	}
	if !droppable {
		return // the planner of the rows says so
	}
	if dropped {
		p.plan.Drops = append(p.plan.Drops, rule)
		p.reportClass(rule)
	}
	p.reportFragments(rule)
}

// close enters the current frontend as one that is not served.
func (p *planner) close(k rule.Key, f *messages.Frontend) {
	if slices.Contains(p.plan.Closed, k) {
		return
	}
	p.plan.Closed = append(p.plan.Closed, k)
	p.Unrender(f, "allowSources", fmt.Sprintf("frontend %s is not served: %s", p.Frontend, whyClosed))
}

// ranges enters the rules of the current frontend's source ranges, and stops when there are more
// than any service may have.
func (p *planner) ranges(rule Rule, outside []netip.Prefix) {
	const enough = 2 * MaxServiceRules // rules for both classes of clients may become one
	for _, from := range outside[:min(len(outside), max(0, enough+1-len(p.plan.Ranges)))] {
		rule.From = from
		p.plan.Ranges = append(p.plan.Ranges, rule)
	}
}

// routed reports whether a route drops the packets of a frontend (vpp/routes), because all ports of
// its cluster IP drop.
func (p *planner) routed(f *messages.Frontend) bool {
	if !p.cfg.Routed || f.GetScope() != messages.Scope_SCOPE_CLUSTER {
		return false
	}
	if p.dropping == nil {
		p.dropping = map[string]bool{}
		for _, f := range p.view.GetFrontends() {
			before, found := p.dropping[f.GetAddress()]
			p.dropping[f.GetAddress()] = (before || !found) && f.GetAction() == messages.Action_ACTION_DROP
		}
	}
	return p.dropping[f.GetAddress()]
}

// rule returns the rule that drops every packet of the clients of a frontend; a frontend that VPP
// cannot match is entered as unrendered.
func (p *planner) rule(f *messages.Frontend) (Rule, bool) {
	addr, err := netip.ParseAddr(f.GetAddress())
	proto := f.GetProtocol()
	switch {
	case err != nil || addr.Zone() != "" || f.GetPort() == 0 || f.GetPort() > 65535:
		p.Unrender(f, "address", fmt.Sprintf("frontend %s is not an address and a port", p.Frontend))
	case addr.Is6() && p.cfg.IPv6Elsewhere:
	case addr.Is6():
		p.Unrender(f, "address", fmt.Sprintf("frontend %s is IPv6 and is not guarded: %s", p.Frontend, whyFamily))
		p.Unrendered[len(p.Unrendered)-1].General = whyFamily
	case proto != messages.Protocol_TCP && proto != messages.Protocol_UDP:
		p.Unrender(f, "protocol", fmt.Sprintf("frontend %s is not guarded: ACLs compare ports of TCP and UDP only", p.Frontend))
	default:
		return Rule{
			Class: classOf(f.GetFrom()), VIP: addr, Port: uint16(f.GetPort()), Proto: uint8(proto), From: allAddresses(addr),
		}, true
	}
	return Rule{}, false
}

// complement returns the networks whose clients the source ranges of the current frontend leave
// out. An invalid range admits no client: it must not widen access.
func (p *planner) complement(within netip.Prefix, f *messages.Frontend) []netip.Prefix {
	if p.outside != nil && slices.Equal(p.allowed, f.GetAllowSources()) {
		return p.outside
	}
	var sources []netip.Prefix
	for _, text := range f.GetAllowSources() {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			p.Unrender(f, "allowSources", fmt.Sprintf("frontend %s: %q is not a network; it admits no client", p.Frontend, text))
			continue
		}
		sources = append(sources, prefix)
	}
	p.allowed, p.outside = f.GetAllowSources(), Complement(within, sources)
	return p.outside
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

// Merge unites the rules of services that fit into MaxRules; minimal. The rules of source ranges
// count whichever service owns the frontend, so where several services have source ranges for one
// frontend, a client must be in the ranges of each. A drop counts unless owner returns another
// service, or a foreign mapping in VPP, for the frontend. A nil owner means that there are no
// conflicts.
func Merge(plans []*ServicePlan, owner func(rule.Key) (service string, claimed bool)) []Rule {
	var all []Rule
	for _, plan := range plans {
		all = append(all, plan.Ranges...)
		for _, r := range plan.Drops {
			if owner == nil {
				all = append(all, r)
			} else if name, claimed := owner(r.Key()); !claimed || name == plan.Service {
				all = append(all, r)
			}
		}
	}
	return Minimal(all)
}

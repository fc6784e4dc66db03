package acl

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// ServicePlan is what has to be dropped for one service.
type ServicePlan struct {
	// Service is its key, "namespace/name".
	Service string
	// Rules are minimal (see Minimal), at most MaxServiceRules for every class of interfaces.
	Rules []Rule
	// Closed are the same frontends with everybody dropped whom a rule is about: what is installed where there is no room for Rules. It has
	// one rule or two for every frontend, and equals Rules where sources are not told apart.
	Closed []Rule
	// Approximations are the places where the rules are not exactly what Kubernetes asks for.
	Approximations []*messages.Approximation
	// Unrendered are what no rule can say: SCTP, IPv6, source ranges that are too many or unusable.
	Unrendered []*messages.ObjectError
	// Unguarded say what is not so while the rules are not in VPP, because its ACL plugin is not loaded for example: who is let in from outside
	// the source ranges. What then becomes of packets that should be dropped depends on the rows, and is for their planner to say
	// (nat44.Config.Guarded).
	Unguarded []*messages.Approximation
}

// Plan returns what has to be dropped in front of NAT for one service, as seen from this node: packets to load-balancer addresses from
// outside their source ranges, and packets to frontends whose action is to drop. It is pure: the same view gives the same plan.
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
	// name is the text of the frontend at hand, told the last one whose fragments were reported.
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

// rule returns the rule that drops every packet of the clients of a frontend; what VPP cannot match is entered as unrendered.
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
			Class: classOf(f.GetFrom()), VIP: addr, Port: uint16(f.GetPort()), Proto: uint8(proto), From: everybody(addr),
		}, true
	}
	return Rule{}, false
}

// sources returns the networks that may send. One that is not a network lets nobody in.
func (p *planner) sources(f *messages.Frontend) []netip.Prefix {
	var sources []netip.Prefix
	for _, text := range f.GetAllowSources() {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			p.unrendered(f, "allowSources", fmt.Sprintf("frontend %s: %q is not a network; it lets nobody in", p.name, text))
			continue
		}
		sources = append(sources, prefix)
	}
	return sources
}

// bound closes the frontends of a service with too many rules: nobody is let in who may be dropped.
func (p *planner) bound() {
	for _, class := range classes {
		if n := len(forInterface(p.plan.Rules, class)); n > MaxServiceRules {
			p.plan.Rules = p.plan.Closed
			p.plan.Unrendered = append(p.plan.Unrendered, &messages.ObjectError{
				Source: Renderer, Kind: "Service", Object: p.plan.Service, Field: "spec.loadBalancerSourceRanges",
				Message: fmt.Sprintf("the source ranges need %d rules, more than %d: nobody is let in; use fewer or larger ranges", n, MaxServiceRules),
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

// udp reports whether datagrams of the rule may come in fragments as a rule and not as an exception.
func udp(r Rule) bool { return r.Proto == frontend.UDP }

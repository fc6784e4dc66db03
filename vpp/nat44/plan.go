package nat44

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// ServicePlan is the result of Plan for one service.
type ServicePlan struct {
	// Service is its key, "namespace/name".
	Service string
	// Rows to install, in the order of the frontends. Pads are not among the backends.
	Rows []Row
	// Approximations are the places where a row, or a missing one, is not exactly what Kubernetes asks for.
	Approximations []*messages.Approximation
	// Unrendered are the frontends and backends that NAT44 cannot express: SCTP, IPv6, unusable values.
	Unrendered []*messages.ObjectError
	// Refused are frontends that Kubernetes has given to the service and whose packets are to be rejected, and all frontends whose packets are to be
	// dropped, as rows without backends: VPP gets none, but no service of a lower rank may serve them, nor a younger one what this one drops. NAT44 does
	// not refuse; these packets follow the routes of VPP.
	Refused []Row
}

// Plan returns the rows of one service on this node. It is pure: the same view and configuration give the same plan. The view must come
// from kube/service, which orders frontends by address, port, protocol and client class.
func Plan(view *messages.ServiceView, cfg Config) *ServicePlan {
	p := planner{cfg: cfg, view: view, plan: &ServicePlan{Service: view.GetKey()}}
	frontends := view.GetFrontends()
	for len(frontends) > 0 {
		n := 1
		for n < len(frontends) && sameKey(frontends[0], frontends[n]) {
			n++
		}
		p.frontend(frontends[:n])
		frontends = frontends[n:]
	}
	return p.plan
}

// sameKey reports whether two frontends differ in the client class only, so that they share a row.
func sameKey(a, b *messages.Frontend) bool {
	return a.GetAddress() == b.GetAddress() && a.GetPort() == b.GetPort() && a.GetProtocol() == b.GetProtocol()
}

// planner collects the plan of one service.
type planner struct {
	cfg  Config
	view *messages.ServiceView
	plan *ServicePlan
	// name is the text of the current frontend.
	name string
	// chosen caches the choice for the last list of backends, because the frontends of a service mostly share one list.
	chosen choice
}

// frontend plans the rules of one address, port and protocol.
func (p *planner) frontend(rules []*messages.Frontend) {
	p.name = frontendText(rules[0])
	key, ok := p.key(rules[0])
	if !ok {
		return
	}
	open := p.open(rules)
	rule := deciding(open)
	switch rule.GetAction() {
	case messages.Action_ACTION_REJECT, messages.Action_ACTION_DROP:
		p.refused(key, rule)
	default:
		p.forward(key, rule)
	}
	p.reportOthers(open, rule)
	if rule.GetFrom() == messages.ClientClass_FROM_LOCAL && len(open) == len(rules) {
		p.approximate("from local only: "+answerText(rule), "the same for all clients", whyLocal)
	}
}

// open returns the rules that the row has to follow: packets that an access list drops never reach NAT. Where the list drops all of them
// one rule remains, so that the plan reports the address.
func (p *planner) open(rules []*messages.Frontend) []*messages.Frontend {
	if !p.cfg.Guarded {
		return rules
	}
	var left []*messages.Frontend
	for _, rule := range rules {
		if rule.GetAction() != messages.Action_ACTION_DROP {
			left = append(left, rule)
		}
	}
	if len(left) == 0 {
		return rules[:1]
	}
	return left
}

// deciding returns the rule that the row follows, since NAT44 has one row for all clients: the rule for clients outside, because that for
// clients of this node would expose endpoints that remote clients must not reach.
func deciding(rules []*messages.Frontend) *messages.Frontend {
	for _, rule := range rules {
		if rule.GetFrom() != messages.ClientClass_FROM_LOCAL {
			return rule
		}
	}
	return rules[0]
}

// key translates address, port and protocol of a frontend, and reports as unrendered what NAT44 cannot do.
func (p *planner) key(f *messages.Frontend) (frontend.Key, bool) {
	addr, err := netip.ParseAddr(f.GetAddress())
	proto := f.GetProtocol()
	switch {
	case err != nil || f.GetPort() == 0 || f.GetPort() > 65535:
		p.unrendered(f, "address", fmt.Sprintf("frontend %s is not an address and a port", p.name))
	case addr.Is6() && p.cfg.IPv6Elsewhere:
	case addr.Is6():
		p.unrendered(f, "address", fmt.Sprintf("frontend %s is IPv6 and %s", p.name, whyFamily))
		p.plan.Unrendered[len(p.plan.Unrendered)-1].General = whyFamily
	case proto != messages.Protocol_TCP && proto != messages.Protocol_UDP:
		p.unrendered(f, "protocol", fmt.Sprintf("frontend %s is not served: NAT44 translates TCP and UDP only", p.name))
	default:
		key := frontend.Key{Addr: addr, Port: uint16(f.GetPort()), Proto: uint8(proto)}
		why := p.cfg.Ground.Refuses(key, frontend.RankOf(f))
		if why != "" {
			p.unrendered(f, "address", fmt.Sprintf("frontend %s is not served: %s", p.name, why))
		}
		return key, why == ""
	}
	return frontend.Key{}, false
}

// forward plans the row of a rule that forwards.
func (p *planner) forward(key frontend.Key, rule *messages.Frontend) {
	locals := p.locals(rule)
	if len(locals) == 0 {
		return
	}
	weight := locals[0].Weight
	row := Row{
		Key: key, Rank: frontend.RankOf(rule), Flags: Out2InOnly | SelfTwiceNAT, Affinity: rule.GetAffinitySeconds(), Pads: p.cfg.Pads, Locals: locals,
	}
	if masquerade(rule) {
		row.Flags = Out2InOnly | TwiceNAT
		p.reportTwiceNAT(len(locals), weight)
	} else if slices.Contains(rule.GetMasqueradeFrom(), "remote") {
		p.reportKept()
	}
	if row.Affinity > 0 {
		p.reportAffinity(row.Affinity)
	}
	row.Tag = Tag{Hash: ServiceHash(p.plan.Service), Affinity: row.Affinity, Weight: weight}.String()
	if name := rule.GetPortName(); name != "" {
		row.FormerHash = portHash(p.plan.Service, name)
	}
	p.plan.Rows = append(p.plan.Rows, row)
}

// masquerade reports whether the source of every client has to be replaced. It depends on the rule alone: if it depended on where the
// endpoints are, the first remote endpoint and the last one would each replace the row and end its connections. Where only clients outside
// the cluster have to be masqueraded (a cluster IP), no client is: pods must keep their addresses, and few clients outside use cluster IPs.
func masquerade(rule *messages.Frontend) bool {
	from := rule.GetMasqueradeFrom()
	return slices.Contains(from, "pod") && slices.Contains(from, "remote")
}

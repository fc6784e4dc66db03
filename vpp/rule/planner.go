package rule

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/messages"
)

// Plan is the part that the plans of all renderers have in common.
type Plan struct {
	// Service is its key, "namespace/name".
	Service string
	// Approximations are the places where a row, or a missing one, is not exactly what
	// Kubernetes asks for.
	Approximations []*messages.Approximation
	// Unrendered are the frontends and backends that the renderer cannot express: SCTP, another
	// address family, unusable values.
	Unrendered []*messages.ObjectError
	// Refused are frontends that Kubernetes has given to the service and whose packets are to
	// be rejected, and all frontends whose packets are to be dropped: VPP gets no row. No
	// service of a lower rank may serve them, and no younger service may serve a frontend that
	// this one drops. Renderers of rows do not refuse; these packets follow the routes of VPP.
	Refused []Refusal
}

// Refusal is a claim on a frontend without a row.
type Refusal struct {
	Key
	Rank Rank
	// Rule refuses the packets; it lists the endpoints that keep their connections.
	Rule *messages.Frontend
}

// Config holds the differences between renderers.
type Config struct {
	// Renderer is its name in messages, Name its name in texts: "NAT44".
	Renderer, Name string
	// Family says why frontends of an address family are not served, "" where another renderer
	// serves them, and whether this one does.
	Family func(ip6 bool) (why string, served bool)
	// Guarded says that access lists in front of the renderer (vpp/acl) drop packets that a
	// frontend does not accept: from clients outside its source ranges, or of a class whose
	// action is to drop. Then a row serves the remaining clients as if they were the only ones.
	Guarded bool
	// Unreachable says that addresses without a row are refused by unreachable routes
	// (vpp/routes). It changes no row, only what the plan reports for frontends without one.
	Unreachable bool
	// Ground are the addresses that no service may claim.
	Ground Ground
}

// Planner makes the plan of one service.
type Planner struct {
	*Plan
	cfg  Config
	view *messages.ServiceView
	// Frontend is the text of the current one.
	Frontend string
}

// New returns the planner of a view. The view must come from kube/service, which orders frontends
// by address, port, protocol and client class.
func New(view *messages.ServiceView, cfg Config) *Planner {
	return &Planner{Plan: &Plan{Service: view.GetKey()}, cfg: cfg, view: view}
}

// Each calls forward with every frontend that is to have a row, and the rule that the row follows.
// All others are entered into the plan.
func (p *Planner) Each(forward func(key Key, rule *messages.Frontend)) {
	frontends := p.view.GetFrontends()
	for len(frontends) > 0 {
		n := 1
		for n < len(frontends) && sameKey(frontends[0], frontends[n]) {
			n++
		}
		p.frontend(frontends[:n], forward)
		frontends = frontends[n:]
	}
}

// sameKey reports whether two frontends differ in the client class only, so that they share a row.
func sameKey(a, b *messages.Frontend) bool {
	return a.GetAddress() == b.GetAddress() && a.GetPort() == b.GetPort() && a.GetProtocol() == b.GetProtocol()
}

// frontend plans the rules of one address, port and protocol.
func (p *Planner) frontend(rules []*messages.Frontend, forward func(Key, *messages.Frontend)) {
	p.Name(rules[0])
	key, ok := p.key(rules[0])
	if !ok {
		return
	}
	guarded := p.cfg.Guarded && p.cfg.Ground.Droppable(key, rules[0])
	open := open(rules, guarded)
	rule := deciding(open)
	switch rule.GetAction() {
	case messages.Action_ACTION_REJECT, messages.Action_ACTION_DROP:
		p.refused(key, rule, guarded)
	default:
		forward(key, rule)
	}
	p.reportOthers(open, rule)
	if rule.GetFrom() == messages.ClientClass_FROM_LOCAL && len(open) == len(rules) {
		p.Approximate("from local only: "+answerText(rule), "the same for all clients", p.whyLocal())
	}
}

// open returns the rules that the row has to follow: packets that an access list drops, guarded,
// never reach the renderer. Where the list drops all of them one rule remains, so that the plan
// reports the address.
func open(rules []*messages.Frontend, guarded bool) []*messages.Frontend {
	if !guarded {
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

// deciding returns the rule that the row follows, since there is one row for all clients: the rule
// for clients outside. The rule for clients of this node would expose endpoints that remote clients
// must not reach.
func deciding(rules []*messages.Frontend) *messages.Frontend {
	for _, rule := range rules {
		if rule.GetFrom() != messages.ClientClass_FROM_LOCAL {
			return rule
		}
	}
	return rules[0]
}

// key translates address, port and protocol of a frontend, and reports as unrendered what the
// renderer cannot do.
func (p *Planner) key(f *messages.Frontend) (Key, bool) {
	addr, err := netip.ParseAddr(f.GetAddress())
	if err != nil || addr.Zone() != "" || addr.Is4In6() || f.GetPort() == 0 || f.GetPort() > 65535 {
		p.Unrender(f, "address", fmt.Sprintf("frontend %s is not an address and a port", p.Frontend))
		return Key{}, false
	}
	if why, served := p.cfg.Family(addr.Is6()); !served {
		if why != "" {
			p.Unrender(f, "address", fmt.Sprintf("frontend %s is IPv%d and %s", p.Frontend, 4+2*addr.BitLen()/128, why))
			p.Unrendered[len(p.Unrendered)-1].General = why
		}
		return Key{}, false
	}
	proto := f.GetProtocol()
	if proto != messages.Protocol_TCP && proto != messages.Protocol_UDP {
		p.Unrender(f, "protocol", fmt.Sprintf("frontend %s is not served: %s translates TCP and UDP only", p.Frontend, p.cfg.Name))
		return Key{}, false
	}
	key := Key{Addr: addr, Port: uint16(f.GetPort()), Proto: uint8(proto)}
	why := p.cfg.Ground.Refuses(key, RankOf(f))
	if why != "" {
		p.Unrender(f, "address", fmt.Sprintf("frontend %s is not served: %s", p.Frontend, why))
	}
	return key, why == ""
}

package nat44

import (
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// ServicePlan is the result of Plan for one service.
type ServicePlan struct {
	*rule.Plan
	// Rows to install, in the order of the frontends. Pads are not among the backends.
	Rows   []Row
	claims []Row
}

// Claims are the rows, and for each refused frontend a row without backends for new connections;
// shared, not to be changed.
func (p *ServicePlan) Claims() []Row { return p.claims }

// claim returns what Claims documents.
func (p *ServicePlan) claim() []Row {
	claims := slices.Clip(p.Rows)
	for _, r := range p.Refused {
		claim := Row{Key: r.Key, Rank: r.Rank, Draining: p.draining(r.Rule)}
		claim.Tag = Tag{Hash: ServiceHash(p.Service), Weight: 1}.String()
		claims = append(claims, claim)
	}
	return claims
}

// Plan returns the rows of one service on this node. It is pure: the same view and configuration
// give the same plan. The view must come from kube/service, which orders frontends by address,
// port, protocol and client class.
func Plan(view *messages.ServiceView, cfg Config) *ServicePlan {
	p := planner{Planner: rule.New(view, cfg.rules()), cfg: cfg}
	p.Each(p.forward)
	plan := &ServicePlan{Plan: p.Plan, Rows: p.rows}
	plan.claims = plan.claim()
	return plan
}

// rules are the settings of the part of the planner that renderers share.
func (c Config) rules() rule.Config {
	family := func(ip6 bool) (string, bool) {
		if ip6 && c.IPv6Elsewhere {
			return "", false
		}
		return whyFamily, !ip6
	}
	return rule.Config{Renderer: Renderer, Name: "NAT44", Family: family, Guarded: c.Guarded, Unreachable: c.Unreachable, Ground: c.Ground}
}

// planner collects the plan of one service.
type planner struct {
	*rule.Planner
	cfg  Config
	rows []Row
	// chosen caches the choice for the last list of backends, because the frontends of a
	// service mostly share one list.
	chosen choice
}

// forward plans the row of a rule that forwards.
func (p *planner) forward(key rule.Key, f *messages.Frontend) {
	locals := p.locals(f)
	if len(locals) == 0 {
		return
	}
	weight := locals[0].Weight
	row := Row{
		Key: key, Rank: rule.RankOf(f), Flags: Out2InOnly | SelfTwiceNAT, Affinity: f.GetAffinitySeconds(), Pads: p.cfg.Pads, Locals: locals,
		Draining: p.draining(f),
	}
	if masquerade(f) {
		row.Flags = Out2InOnly | TwiceNAT
		if !p.cfg.TwiceNAT.IsValid() {
			p.Approximate("the source of every client replaced", "connections dropped", whyNoAddress)
		}
	} else if slices.Contains(f.GetMasqueradeFrom(), "remote") {
		p.reportKept()
	}
	if row.Affinity > 0 {
		row.Remembered = p.cfg.remembered(row.Affinity, key.Proto)
		p.Approximate(fmt.Sprintf("a client stays with its endpoint for %d s, for all frontends of the port", row.Affinity),
			"a client stays with its endpoint per frontend, until any endpoint goes", whyAffinity)
		p.Particular()
	} else if f.GetMaglev() {
		p.Approximate("connections spread by maglev", "spread by the weights of endpoints", whyMaglev)
		p.Particular()
	}
	row.Tag = Tag{Hash: ServiceHash(p.Service), Affinity: row.Affinity, Weight: weight}.String()
	p.rows = append(p.rows, row)
}

// masquerade reports whether the source of every client has to be replaced. It depends on the rule
// alone: if it depended on where the endpoints are, the first remote endpoint and the last one
// would each replace the row and end its connections. Where only clients outside the cluster have
// to be masqueraded (a cluster IP), no client is: pods must keep their addresses, and few clients
// outside use cluster IPs.
func masquerade(f *messages.Frontend) bool {
	from := f.GetMasqueradeFrom()
	return slices.Contains(from, "pod") && slices.Contains(from, "remote")
}

// Reasons why a row is not exactly what Kubernetes asks for. Package acl reports source ranges that
// no access list enforces; package rule has the reasons of all renderers.
const (
	whyAffinity  = "NAT44 keeps affinity per row and counts its time from the end of the client's last connection"
	whyMaglev    = "NAT44 has no consistent hashing: choose a renderer that serves the family by CNAT"
	whyNoAddress = "no twice-NAT address is configured: VPP drops connections whose source it has to replace"
	whyFamily    = "NAT44 is IPv4 only: choose a renderer that serves IPv6"
	whyOneSource = "NAT44 replaces the source for every client of a row or for none, and pods have to keep theirs"
)

// whySubset is the reason for a subset of the endpoints.
var whySubset = fmt.Sprintf("a row has room for %d backends", MaxBackends)

// reportKept reports that the source of clients outside the cluster is not replaced. Where every
// endpoint is on this node its answers come back all the same.
func (p *planner) reportKept() {
	rendered := "source kept: the endpoints are on this node, and so their answers come back to it"
	if p.chosen.elsewhere {
		rendered = "source kept: the answer of an endpoint on another node may go past this node"
	}
	p.Approximate("the source of clients outside the cluster replaced", rendered, whyOneSource)
}

package cnat

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Reasons why a row is not exactly what Kubernetes asks for.
const (
	whyRanges   = "CNAT translates before access lists see the address, so that nothing can keep out what the source ranges leave out"
	whyAffinity = "CNAT has no affinity: the hash of the source address decides, and all clients behind one address get one endpoint"
	whySource   = "CNAT decides about the source by interface and destination: it is replaced on the way from an interface that is not that of a pod or the " +
		"host to an endpoint on another node, and where an endpoint calls itself"
	whoseSource  = "replaced for clients outside before endpoints on other nodes"
	whyFragments = "VPP runs CNAT before it reassembles, and fragments have no ports"
	whyNoSNAT    = "no SNAT address is configured: an endpoint that calls itself gets no answer, and neither do clients of endpoints on other nodes"
	whyOthers    = "another client of VPP has set up source NAT: where it replaces none, an endpoint that calls itself gets no answer, and neither do clients outside of endpoints on other nodes"
)

// whySubset is the reason for a subset of the endpoints.
var whySubset = fmt.Sprintf("a row has room for %d backends", MaxBackends)

// ServicePlan is the result of Plan for one service.
type ServicePlan struct {
	*rule.Plan
	// Rows to install, in the order of the frontends.
	Rows []Row
	// Remote are the addresses of their endpoints that are not on this node, ordered, without
	// duplicates.
	Remote []netip.Addr
}

// Claims are the rows, and one without backends for each refused frontend.
func (p *ServicePlan) Claims() []Row {
	claims := slices.Clone(p.Rows)
	for _, r := range p.Refused {
		claims = append(claims, Row{Key: r.Key, Rank: r.Rank})
	}
	return claims
}

// Plan returns the rows of one service on this node. It is pure: the same view and configuration
// give the same plan. The view must come from kube/service, which orders frontends by address,
// port, protocol and client class.
func Plan(view *messages.ServiceView, cfg Config) *ServicePlan {
	// where it serves IPv6 alone another renderer serves IPv4
	family := func(ip6 bool) (string, bool) { return "", ip6 || cfg.IPv4 }
	p := planner{cfg: cfg, known: map[netip.Addr]bool{}, clusterIPs: map[netip.Addr]bool{}, Planner: rule.New(view, rule.Config{
		Renderer: Renderer, Name: "CNAT", Family: family, Unreachable: cfg.Unreachable, Ground: cfg.Ground,
	})}
	for _, f := range view.GetFrontends() {
		if addr, err := netip.ParseAddr(f.GetAddress()); err == nil && f.GetKind() == messages.FrontendKind_KIND_CLUSTER_IP {
			p.clusterIPs[addr] = true
		}
	}
	p.Each(p.forward)
	slices.SortFunc(p.remote, netip.Addr.Compare)
	return &ServicePlan{Plan: p.Plan, Rows: p.rows, Remote: p.remote}
}

// planner collects the plan of one service.
type planner struct {
	*rule.Planner
	cfg    Config
	rows   []Row
	remote []netip.Addr
	known  map[netip.Addr]bool // the addresses in remote
	// candidates is reused by each call of backends.
	candidates []candidate
	// clusterIPs of the service.
	clusterIPs map[netip.Addr]bool
}

// forward plans the row of a rule that forwards.
func (p *planner) forward(key rule.Key, f *messages.Frontend) {
	everything, _ := key.Addr.Prefix(0)
	if len(f.GetAllowSources()) > 0 && len(acl.Complement(everything, rule.Networks(f.GetAllowSources()))) > 0 {
		// the source ranges leave out a client
		p.Unrender(f, "allowSources", fmt.Sprintf("frontend %s is not served: %s", p.Frontend, whyRanges))
		return
	}
	row := Row{
		Key: key, Rank: rule.RankOf(f), Sticky: f.GetAffinitySeconds() > 0,
		Maglev: f.GetMaglev() && f.GetAffinitySeconds() == 0, Backends: p.backends(key, f),
		RealIP: !p.allocated(key.Addr),
	}
	if len(row.Backends) == 0 {
		return
	}
	if p.rows = append(p.rows, row); row.Sticky {
		p.Approximate(fmt.Sprintf("a client stays with its endpoint for %d s, for all frontends of the port", f.GetAffinitySeconds()),
			"a client stays with its endpoint per frontend, as long as that is there", whyAffinity)
		p.Particular()
	}
	if key.Proto == rule.UDP {
		p.Approximate("all fragments of a datagram reach one endpoint", "datagrams in fragments are lost", whyFragments)
	}
	switch {
	case p.cfg.OthersNAT:
		p.Approximate("the source replaced where answers would go astray", "as another client of VPP has set it up", whyOthers)
	case p.cfg.snat(key.Addr.Is6()).IsUnspecified():
		p.Approximate("the source replaced where answers would go astray", "the source of no client replaced", whyNoSNAT)
	case slices.Contains(f.GetMasqueradeFrom(), "pod"):
		p.Approximate("the source of every client replaced", whoseSource, whySource)
	case len(f.GetMasqueradeFrom()) > 0:
		p.Approximate("the source of clients outside the cluster replaced", whoseSource, whySource)
	}
}

// allocated reports whether Kubernetes has allocated an address: a cluster IP of the service, or an
// address in a network of cluster IPs. Nothing else has such an address, so packets to its other
// ports need not pass.
func (p *planner) allocated(addr netip.Addr) bool {
	if p.clusterIPs[addr] {
		return true
	}
	return slices.ContainsFunc(p.cfg.Services, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// candidate is a usable backend of a rule.
type candidate struct {
	at    netip.AddrPort
	local bool
}

// backends are the usable backends of a rule, no more than fit into a row; the others are reported.
func (p *planner) backends(key rule.Key, f *messages.Frontend) []netip.AddrPort {
	all := p.candidates[:0]
	for _, b := range f.GetBackends() {
		addr, err := netip.ParseAddr(b.GetAddress())
		if why := unusable(addr, err, b.GetPort(), key.Addr.Is6()); why != "" {
			p.Unrender(f, "endpoints", fmt.Sprintf("endpoint %s port %d of %s: %s", b.GetAddress(), b.GetPort(), p.Frontend, why))
			continue
		}
		all = append(all, candidate{netip.AddrPortFrom(addr, uint16(b.GetPort())), b.GetLocal()})
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(a.at.Compare(b.at), localFirst(a, b)) })
	all = slices.CompactFunc(all, func(a, b candidate) bool { return a.at == b.at })
	p.candidates = all
	if len(all) > MaxBackends {
		p.Approximate(fmt.Sprintf("%d endpoints", len(all)), fmt.Sprintf("%d endpoints, local ones first", MaxBackends), whySubset)
		p.Particular()
		slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(localFirst(a, b), cmp.Compare(p.place(a.at), p.place(b.at))) })
		all = all[:MaxBackends]
		slices.SortFunc(all, func(a, b candidate) int { return a.at.Compare(b.at) })
	}
	chosen := make([]netip.AddrPort, len(all))
	for i, c := range all {
		chosen[i] = c.at
		// A service has the same endpoints behind most of its frontends.
		if addr := c.at.Addr(); !c.local && !p.known[addr] {
			p.known[addr] = true
			p.remote = append(p.remote, addr)
		}
	}
	return chosen
}

// localFirst orders candidates by whether they are on this node.
func localFirst(a, b candidate) int {
	switch {
	case a.local == b.local:
		return 0
	case a.local:
		return -1
	}
	return 1
}

// place orders the backends that compete for a row: differently on each node, and so that one added
// or deleted backend changes one place.
func (p *planner) place(b netip.AddrPort) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.cfg.Node)) // never fails
	text, _ := b.MarshalBinary()       // never fails
	_, _ = h.Write(text)
	return h.Sum64()
}

// unusable says why an endpoint cannot be a backend of a VIP; "" = it can.
func unusable(addr netip.Addr, err error, port uint32, ip6 bool) string {
	switch {
	case err != nil || addr.Zone() != "" || addr.Is4In6() || addr.IsUnspecified() || addr.IsLoopback() || addr.IsMulticast() || addr.IsLinkLocalUnicast():
		return "not an address of an endpoint"
	case addr.Is6() != ip6:
		return "of another address family than the frontend"
	case port == 0 || port > 65535:
		return "not a port"
	}
	return ""
}

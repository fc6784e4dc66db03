package nat44

import "fmt"

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

// reportAffinity reports how the affinity of a row differs.
func (p *planner) reportAffinity(seconds uint32) {
	p.Approximate(fmt.Sprintf("a client stays with its endpoint for %d s, for all frontends of the port", seconds),
		"a client stays with its endpoint per frontend, until any endpoint goes", whyAffinity)
	p.Particular()
}

// reportMaglev reports that connections are not spread by consistent hashing.
func (p *planner) reportMaglev() {
	p.Approximate("connections spread by maglev", "spread by the weights of endpoints", whyMaglev)
	p.Particular()
}

// reportKept reports that the source of clients outside the cluster is not replaced. Where every
// endpoint is on this node its answers come back all the same.
func (p *planner) reportKept() {
	rendered := "source kept: the endpoints are on this node, and so their answers come back to it"
	if p.chosen.elsewhere {
		rendered = "source kept: the answer of an endpoint on another node may go past this node"
	}
	p.Approximate("the source of clients outside the cluster replaced", rendered, whyOneSource)
}

// reportTwiceNAT reports that no source can be replaced.
func (p *planner) reportTwiceNAT() {
	if !p.cfg.TwiceNAT.IsValid() {
		p.Approximate("the source of every client replaced", "connections dropped", whyNoAddress)
	}
}

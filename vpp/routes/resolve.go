package routes

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Resolve returns the route that a prefix should have, and whether it has any, from the claims of
// the services: the strongest claim counts (Stance), and on a cluster IP only the claim of its
// service. It is pure.
func Resolve(prefix netip.Prefix, claims []Claim, ground rule.Ground) (Route, bool) {
	all := Claim{External: true}
	for _, claim := range claims {
		all = all.merge(claim)
	}
	route := Route{External: all.External}
	switch {
	case all.Stance == Network:
		return Route{Kind: Reject}, true
	case ground.Hosts[prefix.Addr()], all.External && !ground.Routable(prefix.Addr()):
		return Route{}, false
	case all.Stance == Spare, all.Stance == Refuse:
		route.Kind = Reject
	case all.Stance == Ignore:
		route.Kind = Drop
	default:
		return Route{}, false
	}
	return route, true
}

// Networks returns the claims on networks that are refused as a whole, the service CIDRs. Networks
// of all addresses (/0) and invalid ones are left out, so that a slip does not cost the node its
// network.
func Networks(networks []netip.Prefix) map[netip.Prefix]Claim {
	claims := make(map[netip.Prefix]Claim, len(networks))
	for _, p := range networks {
		if p = p.Masked(); checkPrefix(p) == "" {
			claims[p] = Claim{Addr: p.Addr(), Stance: Network}
		}
	}
	return claims
}

// Prefix is the prefix of the address that the claim is about.
func (c Claim) Prefix() netip.Prefix { return host(c.Addr) }

// ComparePrefixes orders prefixes by address, the shorter one first.
func ComparePrefixes(a, b netip.Prefix) int { return comparePrefix(a, b) }

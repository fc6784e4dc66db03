package routes

import "net/netip"

// Resolve returns the route that a prefix should have, and whether it should have one, from the claims of the services: of several the
// largest Stance counts. A prefix that is not a single address is a service network, which is refused as a whole. It is pure.
func Resolve(prefix netip.Prefix, claims []Claim, ground Ground) (Route, bool) {
	if !prefix.IsSingleIP() {
		return Route{Kind: Reject, Rank: Firm}, len(claims) > 0
	}
	if len(claims) == 0 || ground.Taken[prefix.Addr()] {
		return Route{}, false
	}
	all := Claim{External: true}
	for _, claim := range claims {
		all = all.merge(claim)
	}
	route := Route{Rank: Firm}
	switch all.Stance {
	case Spare, Refuse:
		route.Kind = Reject
	case Ignore:
		route.Kind = Drop
	default:
		return Route{}, false
	}
	if all.External && ground.connected(prefix.Addr()) {
		route.Rank = Yielding
	}
	return route, true
}

// Networks returns the claims on networks that are refused as a whole, the service CIDRs. It leaves out networks of all addresses (/0) and
// invalid ones, so that a wrong setting does not cut off the node.
func Networks(networks []netip.Prefix) map[netip.Prefix]Claim {
	claims := make(map[netip.Prefix]Claim, len(networks))
	for _, p := range networks {
		if p = p.Masked(); checkPrefix(p) == "" {
			claims[p] = Claim{Addr: p.Addr(), Stance: Refuse}
		}
	}
	return claims
}

// Prefix is the host prefix of the claimed address.
func (c Claim) Prefix() netip.Prefix { return host(c.Addr) }

// ComparePrefixes orders prefixes by address, the shorter one first.
func ComparePrefixes(a, b netip.Prefix) int { return comparePrefix(a, b) }

package routes

import (
	"maps"
	"net/netip"
	"slices"
)

// Claims knows what every service wants for its addresses, and what follows for the routes. Several services may want the same address:
// the strongest wish counts (Stance). It belongs to one goroutine.
type Claims struct {
	// services by "namespace/name"; those without a claim are not in it.
	services map[string][]Claim
	// claims by address, then by service. Addresses nobody claims are not in it.
	claims map[netip.Addr]map[string]Claim
	// networks are refused as a whole.
	networks map[netip.Prefix]bool
	ground   Ground
}

// NewClaims returns an empty value.
func NewClaims() *Claims {
	return &Claims{services: map[string][]Claim{}, claims: map[netip.Addr]map[string]Claim{}, networks: map[netip.Prefix]bool{}}
}

// Set replaces all claims of a service and returns the prefixes, ordered, for which Route has another answer than before. Of several
// claims for one address the strongest counts. Claims must not be changed afterwards.
func (c *Claims) Set(service string, claims []Claim) []netip.Prefix {
	wanted := make(map[netip.Addr]Claim, len(claims))
	for _, claim := range claims {
		if other, found := wanted[claim.Addr]; found {
			claim = claim.merge(other)
		}
		if usable(claim.Addr) {
			wanted[claim.Addr] = claim
		}
	}
	var changed []netip.Prefix
	for _, old := range c.services[service] {
		if _, kept := wanted[old.Addr]; !kept && c.update(service, old.Addr, nil) {
			changed = append(changed, host(old.Addr))
		}
	}
	for addr, claim := range wanted {
		if c.update(service, addr, &claim) {
			changed = append(changed, host(addr))
		}
	}
	if delete(c.services, service); len(wanted) > 0 {
		c.services[service] = slices.SortedFunc(maps.Values(wanted), func(a, b Claim) int { return a.Addr.Compare(b.Addr) })
	}
	slices.SortFunc(changed, comparePrefix)
	return changed
}

// Remove withdraws all claims of a service and returns the prefixes for which Route has another answer than before.
func (c *Claims) Remove(service string) []netip.Prefix { return c.Set(service, nil) }

// update replaces or withdraws the claim of one service for one address and reports whether Route has another answer now.
func (c *Claims) update(service string, addr netip.Addr, mine *Claim) bool {
	before, had := c.Route(host(addr))
	if mine != nil {
		if c.claims[addr] == nil {
			c.claims[addr] = map[string]Claim{}
		}
		c.claims[addr][service] = *mine
	} else if delete(c.claims[addr], service); len(c.claims[addr]) == 0 {
		delete(c.claims, addr)
	}
	after, has := c.Route(host(addr))
	return had != has || before != after
}

// SetNetworks replaces the networks that are refused as a whole, the service CIDRs, and returns the prefixes for which Route has another
// answer than before. Networks of all addresses (/0) and invalid ones are left out, so that a slip does not cost the node its network.
func (c *Claims) SetNetworks(networks []netip.Prefix) []netip.Prefix {
	wanted := make(map[netip.Prefix]bool, len(networks))
	for _, p := range networks {
		if p = p.Masked(); checkPrefix(p) == "" {
			wanted[p] = true
		}
	}
	return c.change(func() { c.networks = wanted }, slices.Concat(slices.Collect(maps.Keys(wanted)), slices.Collect(maps.Keys(c.networks))))
}

// SetGround replaces what is known about addresses of hosts and returns the prefixes for which Route has another answer than before.
func (c *Claims) SetGround(ground Ground) []netip.Prefix {
	concerned := make([]netip.Prefix, 0, len(c.claims))
	for addr := range c.claims {
		concerned = append(concerned, host(addr))
	}
	return c.change(func() { c.ground = ground }, concerned)
}

// change carries out a change and returns those of the concerned prefixes for which Route has another answer now.
func (c *Claims) change(apply func(), concerned []netip.Prefix) []netip.Prefix {
	slices.SortFunc(concerned, comparePrefix)
	concerned = slices.Compact(concerned)
	before := make([]Route, len(concerned))
	for i, p := range concerned {
		before[i], _ = c.Route(p)
	}
	apply()
	var changed []netip.Prefix
	for i, p := range concerned {
		if after, _ := c.Route(p); after != before[i] {
			changed = append(changed, p)
		}
	}
	return changed
}

// Route returns the route that a prefix should have, and whether there is one.
func (c *Claims) Route(prefix netip.Prefix) (Route, bool) {
	if c.networks[prefix] {
		return Route{Kind: Reject, Rank: Firm}, true
	}
	claims := c.claims[prefix.Addr()]
	if !prefix.IsSingleIP() || len(claims) == 0 || c.ground.Taken[prefix.Addr()] {
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
	if all.External && c.ground.connected(prefix.Addr()) {
		route.Rank = Yielding
	}
	return route, true
}

// Want returns all routes. The map belongs to the caller.
func (c *Claims) Want() Want {
	want := make(Want, len(c.networks)+len(c.claims))
	for prefix := range c.networks {
		want[prefix], _ = c.Route(prefix)
	}
	for addr := range c.claims {
		if route, ok := c.Route(host(addr)); ok {
			want[host(addr)] = route
		}
	}
	return want
}

// Of returns the claims of a service, ordered by address; shared, not to be changed.
func (c *Claims) Of(service string) []Claim { return c.services[service] }

// Services returns all services that have a claim on the address of a prefix, ordered; none for a network.
func (c *Claims) Services(prefix netip.Prefix) []string {
	if !prefix.IsSingleIP() {
		return nil
	}
	return slices.Sorted(maps.Keys(c.claims[prefix.Addr()]))
}

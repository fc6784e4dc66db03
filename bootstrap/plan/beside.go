package plan

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Beside is an object in VPP beside the rows: a route, or a rule of an access list.
type Beside struct {
	// Service is "namespace/name"; "" = a route for a whole service network.
	Service string `json:"service,omitempty"`
	// Object is "route" or "access list".
	Object string `json:"object"`
	// Text describes it in one line.
	Text string `json:"text"`
}

// beside returns the routes, then the rules of access lists.
func beside(cluster *messages.NodeInput, views []*messages.ServiceView, opts Options) []Beside {
	out, rules := []Beside{}, []Beside{}
	addresses, pods := desired.Used(cluster, nil)
	ground := rule.NewGround(&messages.Begin{NodeAddresses: addresses, PodNetworks: pods}, nil, opts.NAT44.Ground.Reserved)
	claims, owner := map[netip.Prefix][]routes.Claim{}, map[netip.Prefix]string{}
	networks := opts.Serving.ServiceCIDRs
	if len(networks) == 0 {
		networks = service.Networks(cluster.GetServiceCidrs())
	}
	for prefix, claim := range routes.Networks(networks) {
		claims[prefix] = append(claims[prefix], claim)
	}
	guards := acl.Config{Routed: opts.NAT44.Unreachable, IPv6Elsewhere: opts.CNAT != nil, Ground: ground}
	for _, view := range views {
		for _, claim := range routes.Plan(view, routes.Config{}).Claims {
			claims[claim.Prefix()] = append(claims[claim.Prefix()], claim)
			owner[claim.Prefix()] = view.GetKey()
		}
		if opts.CNAT != nil && opts.CNAT.IPv4 {
			continue // without NAT44 there are no access lists
		}
		for _, r := range acl.Plan(view, guards).Rules() {
			rules = append(rules, Beside{Service: view.GetKey(), Object: "access list", Text: r.String()})
		}
	}
	for _, prefix := range slices.SortedFunc(maps.Keys(claims), netip.Prefix.Compare) {
		if route, wanted := routes.Resolve(prefix, claims[prefix], ground); wanted {
			out = append(out, Beside{Service: owner[prefix], Object: "route", Text: route.String() + " " + prefix.String()})
		}
	}
	return append(out, rules...)
}

package service

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// allowSources returns the canonical ranges of one family in spec.loadBalancerSourceRanges, ordered
// by text. nil allows every client: the family has no range, or one that contains everything. If a
// range contains the node's primary address, the load-balancer addresses of the service are allowed
// too. A packet from this node to the load balancer may come back with the load balancer's address
// as its source.
//
// A range that cannot be read admits no client. If the family has no other range, the result is
// closed: no client is admitted. kube-proxy ignores such a range and admits every client, although
// the list was written to keep clients out.
func allowSources(ranges []string, family messages.IPFamily, loadBalancer []address, node *messages.NodeContext) (allow []string, closed bool) {
	var prefixes []netip.Prefix
	for _, text := range ranges {
		prefix, ok := parsePrefix(text)
		closed = closed || !ok
		if !ok || familyOf(prefix.Addr()) != family {
			continue
		}
		if prefix.Bits() == 0 {
			return nil, false
		}
		prefixes = append(prefixes, prefix)
	}
	if len(prefixes) == 0 {
		return nil, closed
	}
	if primary, ok := primaryAddress(node, family); ok && anyContains(prefixes, primary.ip) {
		for _, lb := range loadBalancer {
			prefixes = append(prefixes, netip.PrefixFrom(lb.ip, lb.ip.BitLen()))
		}
	}
	allowed := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		allowed[i] = prefix.String()
	}
	slices.Sort(allowed)
	return slices.Compact(allowed), false
}

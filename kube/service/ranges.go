package service

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// allowSources returns spec.loadBalancerSourceRanges as one family sees them: the canonical ranges of that family, ordered by text; nil
// allows every client, because the family has no range or one that contains everything. If a range contains the node's primary
// address, the load-balancer addresses of the service are allowed too: a packet that this node itself sent to the load balancer may come
// back with the load balancer's address as its source.
func allowSources(ranges []string, family messages.IPFamily, loadBalancer []address, node *messages.NodeContext) []string {
	var prefixes []netip.Prefix
	for _, text := range ranges {
		prefix, ok := parsePrefix(text)
		if !ok || familyOf(prefix.Addr()) != family {
			continue
		}
		if prefix.Bits() == 0 {
			return nil
		}
		prefixes = append(prefixes, prefix)
	}
	if len(prefixes) == 0 {
		return nil
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
	return slices.Compact(allowed)
}

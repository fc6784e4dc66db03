package service

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// detects reports whether pods of the family are recognised on the node.
func (c *Config) detects(node *messages.NodeContext, family messages.IPFamily) bool {
	if c.NodesPodNetworks {
		return hasFamily(Networks(node.GetNode().GetPodCidrs()), family)
	}
	return hasFamily(c.ClusterCIDRs, family)
}

// PodNetworks returns the networks of all pods of the cluster, merged: the networks of the
// configuration, or the pod networks of the nodes.
func (c *Config) PodNetworks(nodes map[string]*messages.Node) []netip.Prefix {
	if !c.NodesPodNetworks {
		return merge(slices.Clone(c.ClusterCIDRs))
	}
	var texts []string
	for _, node := range nodes {
		texts = append(texts, node.GetPodCidrs()...)
	}
	return merge(Networks(texts))
}

// Networks parses networks in CIDR notation and leaves out other texts.
func Networks(texts []string) (networks []netip.Prefix) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			networks = append(networks, p.Masked())
		}
	}
	return networks
}

// merge orders networks, leaves out those inside others and joins neighbours: the result has the
// same addresses. It reuses the slice.
func merge(networks []netip.Prefix) []netip.Prefix {
	slices.SortFunc(networks, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	merged := networks[:0]
	for _, p := range networks {
		if n := len(merged); n > 0 && merged[n-1].Overlaps(p) {
			continue // the larger one comes first
		}
		merged = append(merged, p)
		for n := len(merged); n > 1; n = len(merged) {
			a, b := merged[n-2], merged[n-1]
			both := netip.PrefixFrom(a.Addr(), a.Bits()-1)
			if a.Bits() == 0 || a.Bits() != b.Bits() || both.Masked() != both || !both.Contains(b.Addr()) {
				break
			}
			merged = append(merged[:n-2], both)
		}
	}
	return merged
}

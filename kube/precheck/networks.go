package precheck

import (
	"net/netip"
	"slices"
)

// Networks is how the networks of the nodes fit those of the configuration. Each entry is one line.
type Networks struct {
	// Outside are pod networks that are not in a cluster CIDR of their family.
	Outside []string
	// Overlap are pod networks and cluster CIDRs that overlap a service CIDR.
	Overlap []string
	// Without are the nodes without a pod network.
	Without []string
}

// Compare compares the pod networks of nodes with the configuration. Texts that are no networks are
// left out: the validation of the configuration says so.
func Compare(nodes []Node, clusterCIDRs, serviceCIDRs []string) (out Networks) {
	cluster, service := prefixes(clusterCIDRs), prefixes(serviceCIDRs)
	for i := range nodes {
		n := &nodes[i]
		if len(n.PodCIDRs) == 0 {
			out.Without = append(out.Without, n.Name)
		}
		for _, pods := range prefixes(n.PodCIDRs) {
			inside := func(p netip.Prefix) bool { return p.Contains(pods.Addr()) && p.Bits() <= pods.Bits() }
			sameFamily := func(p netip.Prefix) bool { return p.Addr().Is4() == pods.Addr().Is4() }
			if slices.ContainsFunc(cluster, sameFamily) && !slices.ContainsFunc(cluster, inside) {
				out.Outside = append(out.Outside, n.Name+" "+pods.String())
			}
			if slices.ContainsFunc(service, pods.Overlaps) {
				out.Overlap = append(out.Overlap, n.Name+" "+pods.String())
			}
		}
	}
	for _, p := range cluster {
		if slices.ContainsFunc(service, p.Overlaps) {
			out.Overlap = append(out.Overlap, "services.clusterCIDRs "+p.String())
		}
	}
	return out
}

// prefixes are the texts that are networks.
func prefixes(texts []string) (out []netip.Prefix) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

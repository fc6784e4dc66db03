package precheck

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/kube/service"
)

// Networks lists the networks of the nodes that do not fit the configuration. Each entry is one
// line.
type Networks struct {
	// Outside are pod networks that are not in a cluster CIDR of their family.
	Outside []string
	// Overlap are pod networks and cluster CIDRs that overlap a service CIDR.
	Overlap []string
	// Without are the nodes without a pod network.
	Without []string
}

// Compare compares the pod networks of nodes with the configuration. It leaves out texts that are
// no networks, because the validation of the configuration reports them.
func Compare(nodes []Node, clusterCIDRs, serviceCIDRs []string) (out Networks) {
	cluster, services := service.Networks(clusterCIDRs), service.Networks(serviceCIDRs)
	for i := range nodes {
		n := &nodes[i]
		if len(n.PodCIDRs) == 0 {
			out.Without = append(out.Without, n.Name)
		}
		for _, pods := range service.Networks(n.PodCIDRs) {
			inside := func(p netip.Prefix) bool { return p.Contains(pods.Addr()) && p.Bits() <= pods.Bits() }
			sameFamily := func(p netip.Prefix) bool { return p.Addr().Is4() == pods.Addr().Is4() }
			if slices.ContainsFunc(cluster, sameFamily) && !slices.ContainsFunc(cluster, inside) {
				out.Outside = append(out.Outside, n.Name+" "+pods.String())
			}
			if slices.ContainsFunc(services, pods.Overlaps) {
				out.Overlap = append(out.Overlap, n.Name+" "+pods.String())
			}
		}
	}
	for _, p := range cluster {
		if slices.ContainsFunc(services, p.Overlaps) {
			out.Overlap = append(out.Overlap, "services.clusterCIDRs "+p.String())
		}
	}
	return out
}

package desired

import (
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// NodeContext joins the addresses of this node in Kubernetes and in VPP. The Kubernetes addresses
// come first, in their order, because the first address of a family is the primary one.
func NodeContext(self *messages.Node, vpp []string) *messages.NodeContext {
	addresses := slices.Clone(self.GetAddresses())
	for _, prefix := range rule.Networks(vpp) {
		if !slices.Contains(addresses, prefix.Addr().String()) {
			addresses = append(addresses, prefix.Addr().String())
		}
	}
	return &messages.NodeContext{Node: self, Addresses: addresses}
}

// Used returns the addresses and the pod networks of the nodes of the cluster, each ordered: from
// Kubernetes, and the addresses of their VPPs. Both arguments may be nil.
func Used(in *messages.NodeInput, peers *messages.ClusterState) (addresses, podNetworks []string) {
	addresses, podNetworks = slices.Clone(in.GetSelf().GetAddresses()), slices.Clone(in.GetSelf().GetPodCidrs())
	for _, node := range in.GetNodes() {
		addresses, podNetworks = append(addresses, node.GetAddresses()...), append(podNetworks, node.GetPodCidrs()...)
	}
	for _, peer := range peers.GetNodes() {
		for _, prefix := range rule.Networks(peer.GetVppAddresses()) {
			addresses = append(addresses, prefix.Addr().String())
		}
	}
	slices.Sort(addresses)
	slices.Sort(podNetworks)
	return slices.Compact(addresses), slices.Compact(podNetworks)
}

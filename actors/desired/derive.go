package desired

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// NodeContext joins what Kubernetes and VPP say of this node: the addresses of the Kubernetes
// object first, in its order, because the first one of a family is the primary one.
func NodeContext(self *messages.Node, vpp []string) *messages.NodeContext {
	addresses := slices.Clone(self.GetAddresses())
	for _, text := range vpp {
		if prefix, err := netip.ParsePrefix(text); err == nil && !slices.Contains(addresses, prefix.Addr().String()) {
			addresses = append(addresses, prefix.Addr().String())
		}
	}
	return &messages.NodeContext{Node: self, Addresses: addresses}
}

// Used returns the addresses and the pod networks that the nodes of the cluster use themselves,
// each ordered: what Kubernetes says of them, and the addresses of their VPPs. Both arguments may
// be nil.
func Used(in *messages.NodeInput, peers *messages.ClusterState) (addresses, podNetworks []string) {
	addresses, podNetworks = slices.Clone(in.GetSelf().GetAddresses()), slices.Clone(in.GetSelf().GetPodCidrs())
	for _, node := range in.GetNodes() {
		addresses, podNetworks = append(addresses, node.GetAddresses()...), append(podNetworks, node.GetPodCidrs()...)
	}
	for _, peer := range peers.GetNodes() {
		for _, text := range peer.GetVppAddresses() {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				addresses = append(addresses, prefix.Addr().String())
			}
		}
	}
	slices.Sort(addresses)
	slices.Sort(podNetworks)
	return slices.Compact(addresses), slices.Compact(podNetworks)
}

// localEndpoints are the addresses of the endpoints of one service on the node, ordered; slices
// without a service have none.
func localEndpoints(in *messages.ServiceInput, node string) []string {
	if in.GetService() == nil {
		return nil
	}
	var found []string
	for _, slice := range in.GetSlices() {
		for _, e := range slice.GetEndpoints() {
			if e.GetNode() == node && e.GetAddress() != "" {
				found = append(found, e.GetAddress())
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// union joins lists into one that is ordered and has everything once.
func union(lists map[string][]string) []string {
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

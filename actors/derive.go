package actors

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// nodeContext joins what Kubernetes and VPP say of this node: the addresses of the Kubernetes object first, in its order, because the
// first one of a family is the primary one.
func nodeContext(self *messages.Node, vpp []string) *messages.NodeContext {
	addresses := slices.Clone(self.GetAddresses())
	for _, text := range vpp {
		if prefix, err := netip.ParsePrefix(text); err == nil && !slices.Contains(addresses, prefix.Addr().String()) {
			addresses = append(addresses, prefix.Addr().String())
		}
	}
	return &messages.NodeContext{Node: self, Addresses: addresses}
}

// hostAddresses are the addresses of all nodes, ordered.
func hostAddresses(in *messages.NodeInput) []string {
	lists := map[string][]string{"": in.GetSelf().GetAddresses()}
	for name, node := range in.GetNodes() {
		lists[name] = node.GetAddresses()
	}
	return union(lists)
}

// localEndpoints are the addresses of the endpoints of one service on the node, ordered; slices without a service have none.
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

// NAT44For completes the settings of the IPv4 renderer for a node: an unset TwiceNAT is derived from it. A dry run that uses it speaks of the
// same rows as the running troupe.
func NAT44For(config nat44.Config, self *messages.Node) nat44.Config {
	if !config.TwiceNAT.IsValid() {
		config.TwiceNAT = hairpinAddress(self)
	}
	return config
}

// hairpinAddress is the address that replaces the source of hairpin connections unless one is configured: the last one of the pod CIDR, or
// without a pod CIDR the node's own, which is routed to this node as well.
func hairpinAddress(self *messages.Node) netip.Addr {
	if last := lastAddress(self); last.IsValid() {
		return last
	}
	for _, text := range self.GetAddresses() {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// lastAddress is the last unicast address of the node's first IPv4 pod CIDR, which no pod gets: hairpin connections come from it.
func lastAddress(self *messages.Node) netip.Addr {
	for _, text := range self.GetPodCidrs() {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || !prefix.Addr().Is4() || prefix.Bits() > 30 {
			continue
		}
		a := prefix.Masked().Addr().As4()
		host := uint32(1)<<(32-prefix.Bits()) - 2 // the last one is the broadcast address
		v := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3]) + host
		return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
	}
	return netip.Addr{}
}

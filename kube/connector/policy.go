package connector

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// AddNode adds the addresses of a node and of its pods to a policy: instances must not have them.
func AddNode(p *catalog.Policy, n *corev1.Node) {
	for _, a := range n.Status.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil { // others are names
			p.Nodes = append(p.Nodes, addr.Unmap())
		}
	}
	for _, cidr := range n.Spec.PodCIDRs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil {
			p.Pods = append(p.Pods, prefix)
		}
	}
}

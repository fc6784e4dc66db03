package normalize

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/messages"
)

// taintAutoscaler is the taint of a node that the cluster autoscaler is about to delete.
// kube-proxy's health check honours it (KEP-3836).
const taintAutoscaler = "ToBeDeletedByClusterAutoscaler"

// Node normalises a core/v1 Node. source names the origin of the object in the errors. The result
// is nil only when the object is nil or has no usable name.
func Node(source string, in *corev1.Node) (*messages.Node, []*messages.ObjectError) {
	if in == nil {
		return nil, nil
	}
	r := &report{source: source, kind: KindNode}
	if !r.identify(false, "", in.Name) {
		return nil, r.errors
	}
	out := &messages.Node{
		Name:     in.Name,
		Uid:      string(in.UID),
		Zone:     in.Labels[corev1.LabelTopologyZone],
		PodCidrs: r.podCIDRs(&in.Spec),
		Leaving:  leaving(in),
	}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		out.Addresses = r.nodeAddresses(out.Addresses, in.Status.Addresses, kind)
	}
	return out, r.errors
}

// nodeAddresses appends the addresses of this type that out does not have yet.
func (r *report) nodeAddresses(out []string, in []corev1.NodeAddress, kind corev1.NodeAddressType) []string {
	for i := range in {
		if in[i].Type != kind {
			continue
		}
		addr, err := ParseAddr(in[i].Address)
		if err != nil {
			r.add(at("status.addresses", i)+".address", "%v", err)
			continue
		}
		if !slices.Contains(out, addr.String()) {
			out = append(out, addr.String())
		}
	}
	return out
}

// podCIDRs returns the address ranges of the node's pods. Objects from the time before dual stack
// have only podCIDR.
func (r *report) podCIDRs(spec *corev1.NodeSpec) []string {
	list, path := spec.PodCIDRs, func(i int) string { return at("spec.podCIDRs", i) }
	if len(list) == 0 && spec.PodCIDR != "" {
		list, path = []string{spec.PodCIDR}, func(int) string { return "spec.podCIDR" }
	}
	return r.networks(list, path)
}

// networks parses networks in CIDR notation and reports the other texts; path names the i-th one.
func (r *report) networks(list []string, path func(i int) string) (out []string) {
	for i, text := range list {
		prefix, err := ParsePrefix(text)
		if err != nil {
			r.add(path(i), "%v", err)
			continue
		}
		out = append(out, prefix.String())
	}
	return out
}

// leaving reports whether the node should get no new connections from load balancers.
func leaving(in *corev1.Node) bool {
	doomed := func(t corev1.Taint) bool { return t.Key == taintAutoscaler }
	return in.DeletionTimestamp != nil || slices.ContainsFunc(in.Spec.Taints, doomed)
}

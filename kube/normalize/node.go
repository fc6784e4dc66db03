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
		Excluded: excluded(in),
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
		if addr, ok := r.address(at("status.addresses", i)+".address", in[i].Address); ok && !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	return out
}

// podCIDRs returns the address ranges of the node's pods. Objects from the time before dual stack
// have only podCIDR.
func (r *report) podCIDRs(spec *corev1.NodeSpec) []string {
	list, path := spec.PodCIDRs, indexed("spec.podCIDRs")
	if len(list) == 0 && spec.PodCIDR != "" {
		list, path = []string{spec.PodCIDR}, func(int) string { return "spec.podCIDR" }
	}
	return r.networks(list, path)
}

// networks parses networks in CIDR notation and reports the other texts; path names the i-th one.
func (r *report) networks(list []string, path func(i int) string) []string {
	return each(list, path, func(field, text string) (string, bool) {
		prefix, err := ParsePrefix(text)
		if err != nil {
			r.add(field, "%v", err)
		}
		return prefix.String(), err == nil
	})
}

// leaving reports whether the node should get no new connections from load balancers.
func leaving(in *corev1.Node) bool {
	doomed := func(t corev1.Taint) bool { return t.Key == taintAutoscaler }
	return in.DeletionTimestamp != nil || slices.ContainsFunc(in.Spec.Taints, doomed)
}

// excluded reports whether load balancers should send nothing to the node.
func excluded(in *corev1.Node) bool {
	_, labelled := in.Labels[corev1.LabelNodeExcludeBalancers]
	return labelled || in.Spec.Unschedulable
}

// Pod normalises a core/v1 Pod. source names the origin of the object in the errors. The result is
// nil, without an error, for a pod that has no address yet or has finished, because nothing can be
// reached there. It is also nil when the object is nil or has no usable name.
func Pod(source string, in *corev1.Pod) (*messages.Pod, []*messages.ObjectError) {
	if in == nil || in.Status.Phase == corev1.PodSucceeded || in.Status.Phase == corev1.PodFailed {
		return nil, nil
	}
	r := &report{source: source, kind: KindPod}
	if !r.identify(true, in.Namespace, in.Name) {
		return nil, r.errors
	}
	out := &messages.Pod{
		Namespace:   in.Namespace,
		Name:        in.Name,
		Uid:         string(in.UID),
		Node:        in.Spec.NodeName,
		Addresses:   r.podAddresses(&in.Status),
		HostNetwork: in.Spec.HostNetwork,

		OtherProtocols: otherProtocols(in),
	}
	// A pod without an address cannot be reached. The source delivers it again when it has one.
	if len(out.Addresses) == 0 {
		return nil, r.errors
	}
	return out, r.errors
}

// AnnotationOtherProtocols says, with the value true, that a pod uses IP protocols other than TCP,
// UDP and ICMP.
const AnnotationOtherProtocols = "troupe.dev/other-protocols"

// otherProtocols reports whether a pod says that it uses other protocols: by the annotation, or by
// a container port of SCTP.
func otherProtocols(pod *corev1.Pod) bool {
	sctp := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Protocol == corev1.ProtocolSCTP })
	}
	return pod.Annotations[AnnotationOtherProtocols] == "true" || slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), sctp)
}

// podAddresses returns the addresses of a pod. Objects from the time before dual stack have only
// podIP.
func (r *report) podAddresses(status *corev1.PodStatus) []string {
	var list []string
	for _, ip := range status.PodIPs {
		list = append(list, ip.IP)
	}
	path := func(i int) string { return at("status.podIPs", i) + ".ip" }
	if len(list) == 0 && status.PodIP != "" {
		list, path = []string{status.PodIP}, func(int) string { return "status.podIP" }
	}
	return each(list, path, r.address)
}

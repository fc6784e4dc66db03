package normalize

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/messages"
)

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

package informers

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/normalize"
)

// trimmed makes a transform of a trim function: what the cache keeps is a new object with only the fields that normalize reads, so that
// 10,000 services with their managed fields do not stay in memory. Other types (tombstones) pass.
func trimmed[T metav1.Object](trim func(T) T) cache.TransformFunc {
	return func(in any) (any, error) {
		if object, ok := in.(T); ok {
			return trim(object), nil
		}
		return in, nil
	}
}

// meta keeps what identifies an object, and of its labels and annotations those with these keys.
func meta(in *metav1.ObjectMeta, labels, annotations []string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: unique.Make(in.Namespace).Value(), Name: in.Name, UID: in.UID, ResourceVersion: in.ResourceVersion, Generation: in.Generation,
		CreationTimestamp: in.CreationTimestamp, DeletionTimestamp: in.DeletionTimestamp,
		Labels: only(in.Labels, labels), Annotations: only(in.Annotations, annotations),
	}
}

// only returns the entries of these keys, nil if there are none.
func only(in map[string]string, keys []string) map[string]string {
	var out map[string]string
	for _, key := range keys {
		if value, present := in[key]; present {
			if out == nil {
				out = make(map[string]string, len(keys))
			}
			out[key] = value
		}
	}
	return out
}

// trimService leaves out the selector, target ports and everything that only the control plane reads.
func trimService(in *corev1.Service) *corev1.Service {
	out := &corev1.Service{
		ObjectMeta: meta(&in.ObjectMeta, []string{normalize.LabelProxyName}, nil),
		Spec: corev1.ServiceSpec{
			Type:                     in.Spec.Type,
			ClusterIP:                in.Spec.ClusterIP,
			ClusterIPs:               in.Spec.ClusterIPs,
			IPFamilies:               in.Spec.IPFamilies,
			ExternalIPs:              in.Spec.ExternalIPs,
			LoadBalancerSourceRanges: in.Spec.LoadBalancerSourceRanges,
			InternalTrafficPolicy:    in.Spec.InternalTrafficPolicy,
			ExternalTrafficPolicy:    in.Spec.ExternalTrafficPolicy,
			SessionAffinity:          in.Spec.SessionAffinity,
			SessionAffinityConfig:    in.Spec.SessionAffinityConfig,
			HealthCheckNodePort:      in.Spec.HealthCheckNodePort,
		},
	}
	for _, port := range in.Spec.Ports {
		out.Spec.Ports = append(out.Spec.Ports, corev1.ServicePort{
			Name: port.Name, Protocol: port.Protocol, Port: port.Port, NodePort: port.NodePort,
		})
	}
	for _, ingress := range in.Status.LoadBalancer.Ingress {
		out.Status.LoadBalancer.Ingress = append(out.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ingress.IP, IPMode: ingress.IPMode})
	}
	return out
}

// trimSlice leaves out further addresses, topology and host names of endpoints: the bulk of what a cluster delivers.
func trimSlice(in *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		ObjectMeta: meta(&in.ObjectMeta,
			[]string{discoveryv1.LabelServiceName, corev1.IsHeadlessService}, []string{corev1.EndpointsLastChangeTriggerTime}),
		AddressType: in.AddressType,
		Endpoints:   make([]discoveryv1.Endpoint, len(in.Endpoints)),
	}
	// kube-proxy uses the first address of an endpoint only, and so does normalize.
	for i := range in.Endpoints {
		out.Endpoints[i] = trimEndpoint(&in.Endpoints[i])
	}
	for _, port := range in.Ports {
		out.Ports = append(out.Ports, discoveryv1.EndpointPort{Name: port.Name, Protocol: port.Protocol, Port: port.Port})
	}
	return out
}

// trimEndpoint shares the strings that repeat in thousands of endpoints, and stores no condition that is the default.
func trimEndpoint(in *discoveryv1.Endpoint) discoveryv1.Endpoint {
	out := discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{
		Ready:       unless(in.Conditions.Ready, true),
		Serving:     unless(in.Conditions.Serving, true),
		Terminating: unless(in.Conditions.Terminating, false),
	}}
	if len(in.Addresses) > 0 {
		out.Addresses = []string{in.Addresses[0]}
	}
	if in.NodeName != nil {
		node := unique.Make(*in.NodeName).Value() // one string for all endpoints of a node
		out.NodeName = &node
	}
	if in.Hints != nil {
		out.Hints = in.Hints
	}
	if in.TargetRef != nil {
		out.TargetRef = &corev1.ObjectReference{
			Kind: unique.Make(in.TargetRef.Kind).Value(), Namespace: unique.Make(in.TargetRef.Namespace).Value(), Name: in.TargetRef.Name,
		}
	}
	return out
}

// unless returns nil for a condition whose value nil means anyway.
func unless(in *bool, meaning bool) *bool {
	if in != nil && *in == meaning {
		return nil
	}
	return in
}

// trimNode leaves out conditions, images and capacity, which change every few minutes. Addresses stay whole, so that the paths in errors
// are those of the object.
func trimNode(in *corev1.Node) *corev1.Node {
	out := &corev1.Node{
		ObjectMeta: meta(&in.ObjectMeta, []string{corev1.LabelTopologyZone}, nil),
		Spec:       corev1.NodeSpec{PodCIDR: in.Spec.PodCIDR, PodCIDRs: in.Spec.PodCIDRs},
		Status:     corev1.NodeStatus{Addresses: in.Status.Addresses},
	}
	for _, taint := range in.Spec.Taints {
		out.Spec.Taints = append(out.Spec.Taints, corev1.Taint{Key: taint.Key})
	}
	return out
}

// trimServiceCIDR leaves out conditions.
func trimServiceCIDR(in *networkingv1.ServiceCIDR) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: meta(&in.ObjectMeta, nil, nil), Spec: in.Spec}
}

// trimPod leaves out containers, volumes and conditions.
func trimPod(in *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: meta(&in.ObjectMeta, nil, nil),
		Spec:       corev1.PodSpec{NodeName: in.Spec.NodeName, HostNetwork: in.Spec.HostNetwork},
		Status:     corev1.PodStatus{Phase: in.Status.Phase, PodIP: in.Status.PodIP, PodIPs: in.Status.PodIPs},
	}
}

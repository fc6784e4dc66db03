package normalize

import (
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/troupe-vpp/troupe/messages"
)

// EndpointSlice normalises a discovery.k8s.io/v1 EndpointSlice. source names the origin of the
// object in the errors. The result is nil only when the object is nil or has no usable name. A
// slice without a service has an empty service name.
func EndpointSlice(source string, in *discoveryv1.EndpointSlice) (*messages.EndpointSlice, []*messages.ObjectError) {
	if in == nil {
		return nil, nil
	}
	r := &report{source: source, kind: KindEndpointSlice}
	if !r.identify(true, in.Namespace, in.Name) {
		return nil, r.errors
	}
	out := &messages.EndpointSlice{
		Namespace:  in.Namespace,
		Name:       in.Name,
		Service:    in.Labels[discoveryv1.LabelServiceName],
		Generation: in.Generation,
		Triggered:  r.triggered(in.Annotations[corev1.EndpointsLastChangeTriggerTime]),
	}
	// The label counts whatever its value, because the selector of kube-proxy checks only its
	// presence.
	_, out.Headless = in.Labels[corev1.IsHeadlessService]
	if out.Service != "" && len(validation.IsDNS1123Subdomain(out.Service)) > 0 {
		r.add("metadata.labels["+discoveryv1.LabelServiceName+"]", "%s is not a name of a Service", show(out.Service))
		out.Service = ""
	}
	if in.AddressType == discoveryv1.AddressTypeFQDN {
		return out, r.errors
	}
	var ok bool
	out.Family, ok = choose(r, "addressType", string(in.AddressType), families, "an address type")
	if !ok {
		return out, r.errors
	}
	out.Ports = r.endpointPorts(in.Ports)
	out.Endpoints = r.endpoints(in, out.Family)
	return out, r.errors
}

// triggered parses the annotation with the time of the change behind this slice. The time is only
// used for measurements.
func (r *report) triggered(text string) int64 {
	if text == "" {
		return 0
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		r.add("metadata.annotations["+corev1.EndpointsLastChangeTriggerTime+"]", "%s is not a time (RFC 3339)", show(text))
		return 0
	}
	return at.UnixNano()
}

// endpoints returns the endpoints whose first address is usable; further addresses are never used
// (kube-proxy does the same).
func (r *report) endpoints(in *discoveryv1.EndpointSlice, want messages.IPFamily) []*messages.Endpoint {
	out := make([]*messages.Endpoint, 0, len(in.Endpoints))
	for i := range in.Endpoints {
		path := at("endpoints", i)
		if len(in.Endpoints[i].Addresses) == 0 {
			r.add(path+".addresses", "is empty")
			continue
		}
		addr, ok := r.serviceAddr(path+".addresses[0]", in.Endpoints[i].Addresses[0], false)
		if !ok {
			continue
		}
		if family(addr) != want {
			r.add(path+".addresses[0]", "%s is not of the address type %s", addr, in.AddressType)
			continue
		}
		out = append(out, endpoint(in.Namespace, addr.String(), &in.Endpoints[i]))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// endpoint maps all fields of an endpoint except its address. Names of nodes and zones repeat
// thousands of times, so their strings are shared.
func endpoint(namespace, address string, in *discoveryv1.Endpoint) *messages.Endpoint {
	out := &messages.Endpoint{
		Address:     address,
		Ready:       deref(in.Conditions.Ready, true),
		Serving:     deref(in.Conditions.Serving, true),
		Terminating: deref(in.Conditions.Terminating, false),
		Node:        unique.Make(deref(in.NodeName, "")).Value(),
	}
	if in.Hints != nil {
		for _, zone := range in.Hints.ForZones {
			out.ZoneHints = append(out.ZoneHints, unique.Make(zone.Name).Value())
		}
		for _, node := range in.Hints.ForNodes {
			out.NodeHints = append(out.NodeHints, unique.Make(node.Name).Value())
		}
	}
	if ref := in.TargetRef; ref != nil && ref.Kind == KindPod && ref.Name != "" {
		if ref.Namespace != "" {
			namespace = ref.Namespace
		}
		out.Pod = Key(namespace, ref.Name)
	}
	return out
}

// deref returns the value to which p points; otherwise if p is nil.
func deref[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

package normalize

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/messages"
)

// LabelProxyName is the label of a Service that another proxy serves, whatever its value
// (KEP-2447).
const LabelProxyName = "service.kubernetes.io/service-proxy-name"

// AnnotationLoadBalancing is the annotation of a Service that asks for another choice of endpoints:
// "maglev" is consistent hashing.
const (
	AnnotationLoadBalancing = "troupe.dev/load-balancing"
	maglev                  = "maglev"
)

// Service normalises a core/v1 Service. source names the origin of the object in the errors. The
// result is nil only when the object is nil or has no usable name.
func Service(source string, in *corev1.Service) (*messages.Service, []*messages.ObjectError) {
	if in == nil {
		return nil, nil
	}
	r := &report{source: source, kind: KindService}
	if !r.identify(true, in.Namespace, in.Name) {
		return nil, r.errors
	}
	out := &messages.Service{
		Namespace: in.Namespace,
		Name:      in.Name,
		Uid:       string(in.UID),
		Type:      r.serviceType(in.Spec.Type),
		Headless:  headless(&in.Spec),
	}
	if !in.CreationTimestamp.IsZero() {
		out.Created = in.CreationTimestamp.Unix()
	}
	// The Service is normalised like any other: Selected* decides later, so that every source
	// treats it alike.
	_, out.ForeignProxy = in.Labels[LabelProxyName]
	out.ClusterIps, out.IpFamilies = r.clusterIPs(&in.Spec)
	out.Ports = r.servicePorts(in.Spec.Ports)
	out.ExternalIps = r.externalIPs(in.Spec.ExternalIPs)
	out.SourceRanges = r.sourceRanges(in.Spec.LoadBalancerSourceRanges)
	out.LoadBalancer = r.loadBalancer(in.Status.LoadBalancer.Ingress)
	out.InternalPolicy = r.internalPolicy(in.Spec.InternalTrafficPolicy)
	out.ExternalPolicy = r.policy("spec.externalTrafficPolicy", string(in.Spec.ExternalTrafficPolicy))
	out.AffinitySeconds = r.affinity(&in.Spec)
	out.Maglev = r.maglev(in.Annotations[AnnotationLoadBalancing])
	out.HealthCheckNodePort = r.optionalPort("spec.healthCheckNodePort", in.Spec.HealthCheckNodePort)
	return out, r.errors
}

// maglev reports whether a service asks for consistent hashing.
func (r *report) maglev(text string) bool {
	if text != "" && text != maglev {
		r.add("metadata.annotations["+AnnotationLoadBalancing+"]", "%s is not %q", show(text), maglev)
	}
	return text == maglev
}

// serviceType maps spec.type. An unknown type counts as ClusterIP: node ports and load balancer
// addresses are served whatever the type.
func (r *report) serviceType(in corev1.ServiceType) messages.ServiceType {
	switch in {
	case "", corev1.ServiceTypeClusterIP:
		return messages.ServiceType_CLUSTER_IP
	case corev1.ServiceTypeNodePort:
		return messages.ServiceType_NODE_PORT
	case corev1.ServiceTypeLoadBalancer:
		return messages.ServiceType_LOAD_BALANCER
	case corev1.ServiceTypeExternalName:
		return messages.ServiceType_EXTERNAL_NAME
	}
	r.add("spec.type", "%s is not a type of Service", show(string(in)))
	return messages.ServiceType_CLUSTER_IP
}

// headless reports whether the cluster IP is "None". Objects from the time before dual stack have
// only clusterIP.
func headless(spec *corev1.ServiceSpec) bool {
	if spec.ClusterIP == "" && len(spec.ClusterIPs) > 0 {
		return spec.ClusterIPs[0] == corev1.ClusterIPNone
	}
	return spec.ClusterIP == corev1.ClusterIPNone
}

// ipFamilies maps spec.ipFamilies; an unknown family is FAMILY_UNSPECIFIED.
func (r *report) ipFamilies(in []corev1.IPFamily) []messages.IPFamily {
	var out []messages.IPFamily
	for i, f := range in {
		switch f {
		case corev1.IPv4Protocol:
			out = append(out, messages.IPFamily_IPV4)
		case corev1.IPv6Protocol:
			out = append(out, messages.IPFamily_IPV6)
		default:
			out = append(out, messages.IPFamily_FAMILY_UNSPECIFIED)
			r.add(at("spec.ipFamilies", i), "%s is not an IP family", show(string(f)))
		}
	}
	return out
}

// clusterIPs returns the usable cluster IPs and the families of the Service. As in the API, the
// families begin with the families of the cluster IPs, in order. The family of a cluster IP that
// was left out comes last, because its node ports are still served.
func (r *report) clusterIPs(spec *corev1.ServiceSpec) ([]string, []messages.IPFamily) {
	declared := r.ipFamilies(spec.IPFamilies)
	list, path := spec.ClusterIPs, func(i int) string { return at("spec.clusterIPs", i) }
	if len(list) == 0 && spec.ClusterIP != "" {
		list, path = []string{spec.ClusterIP}, func(int) string { return "spec.clusterIP" }
	}
	if headless(spec) {
		list = nil
	}
	var ips []string
	var families []messages.IPFamily
	for i, text := range list {
		addr, ok := r.serviceAddr(path(i), text, true)
		if !ok || slices.Contains(ips, addr.String()) {
			continue
		}
		// A cluster IP of the wrong family would get rows with endpoints of the other family.
		if i < len(declared) {
			if declared[i] != messages.IPFamily_FAMILY_UNSPECIFIED && declared[i] != family(addr) {
				r.add(path(i), "%s is not of the family %s that spec.ipFamilies gives it", addr, spec.IPFamilies[i])
				continue
			}
			families = append(families, family(addr))
		}
		ips = append(ips, addr.String())
	}
	for _, f := range declared {
		if f != messages.IPFamily_FAMILY_UNSPECIFIED && !slices.Contains(families, f) {
			families = append(families, f)
		}
	}
	return ips, families
}

// externalIPs returns the usable external IPs, each once.
func (r *report) externalIPs(in []string) []string {
	var out []string
	for i, text := range in {
		addr, ok := r.serviceAddr(at("spec.externalIPs", i), text, false)
		if ok && !slices.Contains(out, addr.String()) {
			out = append(out, addr.String())
		}
	}
	return out
}

// internalPolicy maps spec.internalTrafficPolicy. It is nil in objects from the time before 1.22
// and for ExternalName.
func (r *report) internalPolicy(in *corev1.ServiceInternalTrafficPolicy) messages.TrafficPolicy {
	if in == nil {
		return messages.TrafficPolicy_POLICY_CLUSTER
	}
	return r.policy("spec.internalTrafficPolicy", string(*in))
}

// policy maps a traffic policy. Every value except Local counts as Cluster, as in kube-proxy.
func (r *report) policy(field, in string) messages.TrafficPolicy {
	switch in {
	case "", "Cluster":
		return messages.TrafficPolicy_POLICY_CLUSTER
	case "Local":
		return messages.TrafficPolicy_POLICY_LOCAL
	}
	r.add(field, "%s is not a traffic policy", show(in))
	return messages.TrafficPolicy_POLICY_CLUSTER
}

// affinity returns the timeout of the ClientIP affinity in seconds; 0 = no affinity.
func (r *report) affinity(spec *corev1.ServiceSpec) uint32 {
	switch spec.SessionAffinity {
	case "", corev1.ServiceAffinityNone:
		return 0
	case corev1.ServiceAffinityClientIP:
	default:
		r.add("spec.sessionAffinity", "%s is not a session affinity", show(string(spec.SessionAffinity)))
		return 0
	}
	const longest = 86400 // one day, MaxClientIPServiceAffinitySeconds of the API
	config := spec.SessionAffinityConfig
	if config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
		return uint32(corev1.DefaultClientIPServiceAffinitySeconds)
	}
	if seconds := *config.ClientIP.TimeoutSeconds; seconds > 0 && seconds <= longest {
		return uint32(seconds)
	}
	r.add("spec.sessionAffinityConfig.clientIP.timeoutSeconds", "%d is not within 1 and %d", *config.ClientIP.TimeoutSeconds, longest)
	return uint32(corev1.DefaultClientIPServiceAffinitySeconds)
}

// sourceRanges returns the ranges of spec.loadBalancerSourceRanges, each once. An "" stands for
// ranges that cannot be read. Without it the list could become empty and admit every client.
func (r *report) sourceRanges(in []string) []string {
	var out []string
	for i, text := range in {
		canonical := ""
		if prefix, err := ParsePrefix(text); err == nil {
			canonical = prefix.String()
		} else {
			r.add(at("spec.loadBalancerSourceRanges", i), "%v; it admits no client, and load balancer addresses without another range admit no client", err)
		}
		if !slices.Contains(out, canonical) {
			out = append(out, canonical)
		}
	}
	return out
}

// loadBalancer returns the entries of status.loadBalancer.ingress that have an IP.
func (r *report) loadBalancer(in []corev1.LoadBalancerIngress) []*messages.LoadBalancerIngress {
	var out []*messages.LoadBalancerIngress
	for i := range in {
		// Clients reach a load balancer without an IP through DNS; no row can match it.
		if in[i].IP == "" {
			continue
		}
		path := at("status.loadBalancer.ingress", i)
		addr, ok := r.serviceAddr(path+".ip", in[i].IP, true)
		if !ok {
			continue
		}
		proxy, ok := r.ipMode(path+".ipMode", in[i].IPMode)
		if !ok {
			continue
		}
		same := func(o *messages.LoadBalancerIngress) bool { return o.Ip == addr.String() }
		if k := slices.IndexFunc(out, same); k < 0 {
			out = append(out, &messages.LoadBalancerIngress{Ip: addr.String(), Proxy: proxy})
		} else {
			// kube-proxy captures an address if any of its entries has the mode VIP.
			out[k].Proxy = out[k].GetProxy() && proxy
		}
	}
	return out
}

// ipMode reports whether clients must reach the load balancer itself (Proxy). An unknown mode gives
// no frontend, as in kube-proxy.
func (r *report) ipMode(field string, in *corev1.LoadBalancerIPMode) (proxy, ok bool) {
	switch {
	case in == nil || *in == corev1.LoadBalancerIPModeVIP:
		return false, true
	case *in == corev1.LoadBalancerIPModeProxy:
		return true, true
	}
	r.add(field, "%s is not an IP mode", show(string(*in)))
	return false, false
}

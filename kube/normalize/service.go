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
		Headless:  headless(&in.Spec),
	}
	if !in.CreationTimestamp.IsZero() {
		out.Created = in.CreationTimestamp.Unix()
	}
	// The Service is normalised like any other: Selected* decides later, so that every source
	// treats it alike.
	_, out.ForeignProxy = in.Labels[LabelProxyName]
	out.Type, _ = choose(r, "spec.type", in.Spec.Type, serviceTypes, "a type of Service")
	out.ClusterIps, out.IpFamilies = r.clusterIPs(&in.Spec)
	out.Ports = r.servicePorts(in.Spec.Ports)
	out.ExternalIps = each(in.Spec.ExternalIPs, indexed("spec.externalIPs"), func(field, text string) (string, bool) {
		addr, ok := r.serviceAddr(field, text, false)
		return addr.String(), ok
	})
	out.SourceRanges = r.sourceRanges(in.Spec.LoadBalancerSourceRanges)
	out.LoadBalancer = r.loadBalancer(in.Status.LoadBalancer.Ingress)
	// It is nil in objects from the time before 1.22 and for ExternalName.
	internal := string(deref(in.Spec.InternalTrafficPolicy, ""))
	out.InternalPolicy, _ = choose(r, "spec.internalTrafficPolicy", internal, policies, "a traffic policy")
	out.ExternalPolicy, _ = choose(r, "spec.externalTrafficPolicy", string(in.Spec.ExternalTrafficPolicy), policies, "a traffic policy")
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

// serviceTypes are the values of spec.type. An unknown type counts as ClusterIP: node ports and
// load balancer addresses are served whatever the type.
var serviceTypes = map[corev1.ServiceType]messages.ServiceType{
	"": messages.ServiceType_CLUSTER_IP, corev1.ServiceTypeClusterIP: messages.ServiceType_CLUSTER_IP, corev1.ServiceTypeNodePort: messages.ServiceType_NODE_PORT,
	corev1.ServiceTypeLoadBalancer: messages.ServiceType_LOAD_BALANCER, corev1.ServiceTypeExternalName: messages.ServiceType_EXTERNAL_NAME,
}

// families are the values of spec.ipFamilies and the address types of slices.
var families = map[string]messages.IPFamily{"IPv4": messages.IPFamily_IPV4, "IPv6": messages.IPFamily_IPV6}

// policies are the values of traffic policies. Every value except Local counts as Cluster, as in
// kube-proxy.
var policies = map[string]messages.TrafficPolicy{
	"": messages.TrafficPolicy_POLICY_CLUSTER, "Cluster": messages.TrafficPolicy_POLICY_CLUSTER, "Local": messages.TrafficPolicy_POLICY_LOCAL,
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
func (r *report) ipFamilies(in []corev1.IPFamily) (out []messages.IPFamily) {
	for i, f := range in {
		family, _ := choose(r, at("spec.ipFamilies", i), string(f), families, "an IP family")
		out = append(out, family)
	}
	return out
}

// clusterIPs returns the usable cluster IPs and the families of the Service. As in the API, the
// families begin with the families of the cluster IPs, in order. The family of a cluster IP that
// was left out comes last, because its node ports are still served.
func (r *report) clusterIPs(spec *corev1.ServiceSpec) ([]string, []messages.IPFamily) {
	declared := r.ipFamilies(spec.IPFamilies)
	list, path := spec.ClusterIPs, indexed("spec.clusterIPs")
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
		// With the mode Proxy clients must reach the load balancer itself. An unknown mode gives no
		// frontend, as in kube-proxy.
		proxy, ok := choose(r, path+".ipMode", deref(in[i].IPMode, corev1.LoadBalancerIPModeVIP), map[corev1.LoadBalancerIPMode]bool{
			corev1.LoadBalancerIPModeVIP: false, corev1.LoadBalancerIPModeProxy: true,
		}, "an IP mode")
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

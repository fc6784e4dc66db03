package normalize

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/messages"
)

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

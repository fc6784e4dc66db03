package normalize

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/messages"
)

// sourceRanges returns the readable ranges of spec.loadBalancerSourceRanges, and the families whose restriction is unknown: a range
// could not be read, and no other range restricts that family. Without a range a family would be open to every client.
func (r *report) sourceRanges(in []string) (out []string, closed []messages.IPFamily) {
	bad, restricted := false, map[messages.IPFamily]bool{}
	for i, text := range in {
		prefix, err := ParsePrefix(text)
		if err != nil {
			bad = true
			r.add(at("spec.loadBalancerSourceRanges", i), "%v; load balancer addresses without another range are not served", err)
			continue
		}
		restricted[family(prefix.Addr())] = true
		if !slices.Contains(out, prefix.String()) {
			out = append(out, prefix.String())
		}
	}
	for _, f := range []messages.IPFamily{messages.IPFamily_IPV4, messages.IPFamily_IPV6} {
		// A range that cannot be read may have been of either family: fail closed where no other range protects.
		if bad && !restricted[f] {
			closed = append(closed, f)
		}
	}
	return out, closed
}

// loadBalancer returns the entries of status.loadBalancer.ingress that have an IP, without those of the closed families.
func (r *report) loadBalancer(in []corev1.LoadBalancerIngress, closed []messages.IPFamily) []*messages.LoadBalancerIngress {
	var out []*messages.LoadBalancerIngress
	for i := range in {
		// A load balancer with a host name only is reached through DNS; no row can match it.
		if in[i].IP == "" {
			continue
		}
		path := at("status.loadBalancer.ingress", i)
		addr, ok := r.serviceAddr(path+".ip", in[i].IP, true)
		if !ok || slices.Contains(closed, family(addr)) {
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
			out[k].Proxy = out[k].GetProxy() && proxy // kube-proxy serves an address if any of its entries asks for it
		}
	}
	return out
}

// ipMode reports whether clients must reach the load balancer itself; an unknown mode gives no frontend, as in kube-proxy.
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

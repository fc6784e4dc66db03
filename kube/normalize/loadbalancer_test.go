package normalize_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

func TestLoadBalancer(t *testing.T) {
	vip, proxy, odd := corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPMode("Anycast")
	in, want := service()
	in.Spec.Type = corev1.ServiceTypeLoadBalancer
	in.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
		{IP: "198.51.100.010"},
		{Hostname: "lb.example.com"},
		{IP: "198.51.100.11", IPMode: &vip},
		{IP: "198.51.100.12", IPMode: &proxy},
		{IP: "198.51.100.13", IPMode: &odd},
		{IP: "198.51.100.999"},
		{IP: "198.51.100.10", IPMode: &proxy},
		{IP: "198.51.100.14", IPMode: &proxy},
		{IP: "198.51.100.14", IPMode: &vip},
		{IP: "198.51.100.14", IPMode: &proxy},
		{IP: "0.0.0.0"},
		{IP: "2001:db8::0010"},
	}
	want.Type = messages.ServiceType_LOAD_BALANCER
	want.LoadBalancer = []*messages.LoadBalancerIngress{
		{Ip: "198.51.100.10"}, {Ip: "198.51.100.11"}, {Ip: "198.51.100.12", Proxy: true}, {Ip: "198.51.100.14"}, {Ip: "2001:db8::10"},
	}
	got, problems := normalize.Service("test", in)
	wantMessage(t, got, want)
	wantFields(t, problems, "Service", "default/web",
		"status.loadBalancer.ingress[4].ipMode", "status.loadBalancer.ingress[5].ip", "status.loadBalancer.ingress[10].ip")
}

// TestSourceRangesFailClosed: a range that cannot be read must not open a load balancer address to every client.
func TestSourceRangesFailClosed(t *testing.T) {
	const lb4, lb6 = "198.51.100.10", "2001:db8::10"
	for _, c := range []struct {
		name   string
		in     []string
		ranges []string
		served []string
		fields []string
	}{
		{"none", nil, nil, []string{lb4, lb6}, nil},
		{"trimmed and masked", []string{" 10.1.2.3/8 ", "10.0.0.0/8"}, []string{"10.0.0.0/8"}, []string{lb4, lb6}, nil},
		{"open stays for the resolver to see", []string{"0.0.0.0/0", "::/0"}, []string{"0.0.0.0/0", "::/0"}, []string{lb4, lb6}, nil},
		{"only a bad one", []string{"10.0.0.0/99"}, nil, nil, []string{"spec.loadBalancerSourceRanges[0]"}},
		{"a bad one beside an IPv4 one", []string{"x", "10.0.0.0/8"}, []string{"10.0.0.0/8"}, []string{lb4}, []string{"spec.loadBalancerSourceRanges[0]"}},
		{
			"a bad one beside both",
			[]string{"10.0.0.0/8", "fd00::/8", "x"},
			[]string{"10.0.0.0/8", "fd00::/8"},
			[]string{lb4, lb6},
			[]string{"spec.loadBalancerSourceRanges[2]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, want := service()
			in.Spec.LoadBalancerSourceRanges = c.in
			in.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: lb4}, {IP: lb6}}
			want.SourceRanges = c.ranges
			for _, ip := range c.served {
				want.LoadBalancer = append(want.LoadBalancer, &messages.LoadBalancerIngress{Ip: ip})
			}
			got, problems := normalize.Service("test", in)
			wantMessage(t, got, want)
			wantFields(t, problems, "Service", "default/web", c.fields...)
		})
	}
}

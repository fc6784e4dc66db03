package normalize_test

import (
	"strings"
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

// TestSourceRanges: "" stands for ranges that cannot be read, so that the resolver does not take
// them for "no restriction".
func TestSourceRanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     []string
		want   []string
		fields []string
	}{
		{"none", nil, nil, nil},
		{"trimmed and masked", []string{" 10.1.2.3/8 ", "10.0.0.0/8"}, []string{"10.0.0.0/8"}, nil},
		{"open stays for the resolver to see", []string{"0.0.0.0/0", "::/0"}, []string{"0.0.0.0/0", "::/0"}, nil},
		{"an empty one", []string{""}, []string{""}, []string{"spec.loadBalancerSourceRanges[0]"}},
		{"blanks only", []string{" \t"}, []string{""}, []string{"spec.loadBalancerSourceRanges[0]"}},
		{"no length", []string{"10.0.0.1"}, []string{""}, []string{"spec.loadBalancerSourceRanges[0]"}},
		{"too long", []string{"10.0.0.0/99"}, []string{""}, []string{"spec.loadBalancerSourceRanges[0]"}},
		{
			"bad ones beside good ones",
			[]string{"x", "10.0.0.0/8", "fd00::/8", "y"},
			[]string{"", "10.0.0.0/8", "fd00::/8"},
			[]string{"spec.loadBalancerSourceRanges[0]", "spec.loadBalancerSourceRanges[3]"},
		},
		{"a huge one", []string{strings.Repeat("1", 1<<20)}, []string{""}, []string{"spec.loadBalancerSourceRanges[0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, want := service()
			in.Spec.LoadBalancerSourceRanges = c.in
			want.SourceRanges = c.want
			got, problems := normalize.Service("test", in)
			wantMessage(t, got, want)
			wantFields(t, problems, "Service", "default/web", c.fields...)
		})
	}
}

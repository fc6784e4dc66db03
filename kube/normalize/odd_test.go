package normalize_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// TestUnusableEndpoints: only the unusable endpoint is refused; the others stay.
func TestUnusableEndpoints(t *testing.T) {
	for _, c := range []struct {
		why       string
		addresses []string
	}{
		{"is a loopback address", []string{"127.0.0.1", "127.255.255.254", "::ffff:127.0.0.1"}},
		{"is a link-local address", []string{"169.254.0.1", "169.254.169.254"}},
		{"is a multicast address", []string{"224.0.0.1", "239.255.255.255"}},
		{"is the unspecified address", []string{"0.0.0.0", "::ffff:0.0.0.0"}},
		{"this network", []string{"0.0.0.1", "0.255.255.255"}},
		{"is the broadcast address", []string{"255.255.255.255"}},
		{"is not an IP address", []string{"", " ", "10.1.1", "10.1.1.1.1", "10.1.1.1/32", "10.1.1.1:80", "localhost", "::1%eth0", "\x00", "10.1.1.1\n"}},
		{"is not of the address type", []string{"fd00::1", "2001:db8::1"}},
	} {
		for _, address := range c.addresses {
			in, want := slice()
			for _, a := range []string{"10.1.1.2", address, "10.1.1.3"} {
				in.Endpoints = append(in.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
			}
			want.Endpoints = []*messages.Endpoint{{Address: "10.1.1.2", Ready: true, Serving: true}, {Address: "10.1.1.3", Ready: true, Serving: true}}
			got, problems := normalize.EndpointSlice("test", in)
			wantMessage(t, got, want)
			wantFields(t, problems, "EndpointSlice", "default/web-1", "endpoints[1].addresses[0]")
			if len(problems) == 1 && !strings.Contains(problems[0].GetMessage(), c.why) {
				t.Errorf("%q: %s, want that it %s", address, problems[0].GetMessage(), c.why)
			}
		}
	}
}

// TestOddStrings: for any text in a free-form field, errors have only the beginning of the text,
// quoted.
func TestOddStrings(t *testing.T) {
	const longest = 500 // bytes of a problem, with quotes
	for name, odd := range map[string]string{
		"a megabyte": strings.Repeat("x", 1<<20), "a megabyte of lines": strings.Repeat("\n", 1<<20), "a forged line": "x\nlevel=ERROR",
		"an escape": "\x1b[2J", "zero": "\x00", "not UTF-8": "\xff\xfe", "right to left": "\u202e", "a path": "../../etc/passwd",
	} {
		t.Run(name, func(t *testing.T) {
			service, _ := service()
			service.Spec.Type, service.Spec.SessionAffinity = corev1.ServiceType(odd), corev1.ServiceAffinity(odd)
			service.Spec.ClusterIP, service.Spec.ClusterIPs, service.Spec.IPFamilies = odd, []string{odd}, []corev1.IPFamily{corev1.IPFamily(odd)}
			service.Spec.ExternalIPs, service.Spec.LoadBalancerSourceRanges = []string{odd}, []string{odd}
			service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicy(odd)
			service.Spec.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicy(odd))
			service.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 80, Protocol: corev1.Protocol(odd)}}
			service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: odd}, {IP: "1.2.3.4", IPMode: ptr(corev1.LoadBalancerIPMode(odd))}}
			out, problems := normalize.Service("test", service)
			if out == nil || len(out.GetPorts())+len(out.GetClusterIps())+len(out.GetExternalIps())+len(out.GetLoadBalancer()) > 0 {
				t.Errorf("something of it is used: %v", out)
			}
			endpoints, _ := slice()
			endpoints.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: odd}
			endpoints.Labels[discoveryv1.LabelServiceName] = odd
			endpoints.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{odd}}}
			endpoints.Ports = []discoveryv1.EndpointPort{{Name: ptr("a"), Port: ptr(int32(80)), Protocol: ptr(corev1.Protocol(odd))}}
			_, more := normalize.EndpointSlice("test", endpoints)
			named := service.DeepCopy()
			named.Namespace, named.Name = odd, odd
			gone, unnamed := normalize.Service("test", named)
			if gone != nil {
				t.Errorf("delivered under the name %q", gone.GetName())
			}
			if len(problems) < 11 || len(more) != 4 || len(unnamed) != 2 {
				t.Errorf("%d, %d and %d problems", len(problems), len(more), len(unnamed))
			}
			for _, p := range append(append(problems, more...), unnamed...) {
				text := p.GetObject() + p.GetField() + p.GetMessage()
				if len(text) > longest || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\x00\x1b\u202e") {
					t.Errorf("%d bytes: %.400q", len(text), text)
				}
			}
		})
	}
}

// TestManyProblems: the number of problems of an object is bounded; the rest is counted.
func TestManyProblems(t *testing.T) {
	in, want := slice()
	for i := range 1000 {
		in.Endpoints = append(in.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprint("127.0.", i/256, ".", i%256)}})
	}
	in.Endpoints = append(in.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.1.2"}})
	want.Endpoints = []*messages.Endpoint{{Address: "10.1.1.2", Ready: true, Serving: true}}
	got, problems := normalize.EndpointSlice("test", in)
	wantMessage(t, got, want)
	if len(problems) != 20 || problems[19].GetMessage() != "981 more problems" || problems[18].GetField() != "endpoints[18].addresses[0]" {
		t.Errorf("%d problems: %v", len(problems), problems)
	}
}

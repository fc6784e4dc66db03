package normalize_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// slice returns an EndpointSlice without endpoints and ports, and its normalised form.
func slice() (*discoveryv1.EndpointSlice, *messages.EndpointSlice) {
	in := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-1", Generation: 7,
			Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	return in, &messages.EndpointSlice{Namespace: "default", Name: "web-1", Service: "web", Family: v4, Generation: 7}
}

func TestEndpointSlice(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*discoveryv1.EndpointSlice)
		want   func(*messages.EndpointSlice)
		fields []string
	}{
		{"as it is", func(*discoveryv1.EndpointSlice) {}, func(*messages.EndpointSlice) {}, nil},
		{"IPv6", func(s *discoveryv1.EndpointSlice) { s.AddressType = "IPv6" }, func(s *messages.EndpointSlice) { s.Family = v6 }, nil},
		{"FQDN gives nothing", func(s *discoveryv1.EndpointSlice) {
			s.AddressType = "FQDN"
			s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"a.example.com"}}}
			s.Ports = []discoveryv1.EndpointPort{{}}
		}, func(s *messages.EndpointSlice) { s.Family = 0 }, nil},
		{
			"unknown address type", func(s *discoveryv1.EndpointSlice) { s.AddressType = "IPv5" },
			func(s *messages.EndpointSlice) { s.Family = 0 },
			[]string{"addressType"},
		},
		{"no service", func(s *discoveryv1.EndpointSlice) { s.Labels = nil }, func(s *messages.EndpointSlice) { s.Service = "" }, nil},
		{
			"bad service", func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelServiceName] = "a/b" },
			func(s *messages.EndpointSlice) { s.Service = "" },
			[]string{"metadata.labels[kubernetes.io/service-name]"},
		},
		{
			"headless", func(s *discoveryv1.EndpointSlice) { s.Labels[corev1.IsHeadlessService] = "" },
			func(s *messages.EndpointSlice) { s.Headless = true }, nil,
		},
		{"trigger time", func(s *discoveryv1.EndpointSlice) {
			s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-11-21T03:14:11.5Z"}
		}, func(s *messages.EndpointSlice) {
			s.Triggered = time.Date(2026, 11, 21, 3, 14, 11, 5e8, time.UTC).UnixNano()
		}, nil},
		{"bad trigger time", func(s *discoveryv1.EndpointSlice) {
			s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "yesterday"}
		}, func(*messages.EndpointSlice) {}, []string{"metadata.annotations[endpoints.kubernetes.io/last-change-trigger-time]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, want := slice()
			c.change(in)
			c.want(want)
			got, problems := normalize.EndpointSlice("test", in)
			wantMessage(t, got, want)
			wantFields(t, problems, "EndpointSlice", "default/web-1", c.fields...)
		})
	}
}

func TestEndpoints(t *testing.T) {
	yes, no := ptr(true), ptr(false)
	in, want := slice()
	in.Endpoints = []discoveryv1.Endpoint{
		{Addresses: []string{"10.1.1.01", "bad", "10.1.1.2"}},
		{Addresses: []string{"10.1.1.3"}, Conditions: discoveryv1.EndpointConditions{Ready: no, Serving: no, Terminating: yes}, NodeName: ptr("n1")},
		{Addresses: []string{"10.1.1.4"}, Conditions: discoveryv1.EndpointConditions{Ready: yes, Serving: yes, Terminating: no}, Hints: &discoveryv1.EndpointHints{
			ForZones: []discoveryv1.ForZone{{Name: "a"}, {Name: "b"}}, ForNodes: []discoveryv1.ForNode{{Name: "n1"}},
		}},
		{Addresses: []string{"10.1.1.5"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p"}},
		{Addresses: []string{"10.1.1.6"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: "other"}},
		{Addresses: []string{"10.1.1.7"}, TargetRef: &corev1.ObjectReference{Kind: "Node", Name: "n"}},
		{},
		{Addresses: []string{"10.1.1.300"}},
		{Addresses: []string{"fd00::1"}},
		{Addresses: []string{"127.0.0.1"}},
		{Addresses: []string{"::ffff:10.1.1.8"}},
	}
	want.Endpoints = []*messages.Endpoint{
		{Address: "10.1.1.1", Ready: true, Serving: true},
		{Address: "10.1.1.3", Terminating: true, Node: "n1"},
		{Address: "10.1.1.4", Ready: true, Serving: true, ZoneHints: []string{"a", "b"}, NodeHints: []string{"n1"}},
		{Address: "10.1.1.5", Ready: true, Serving: true, Pod: "default/p"},
		{Address: "10.1.1.6", Ready: true, Serving: true, Pod: "other/p"},
		{Address: "10.1.1.7", Ready: true, Serving: true},
		{Address: "10.1.1.8", Ready: true, Serving: true},
	}
	got, problems := normalize.EndpointSlice("test", in)
	wantMessage(t, got, want)
	wantFields(t, problems, "EndpointSlice", "default/web-1",
		"endpoints[6].addresses", "endpoints[7].addresses[0]", "endpoints[8].addresses[0]", "endpoints[9].addresses[0]")
}

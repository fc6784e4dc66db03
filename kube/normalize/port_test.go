package normalize_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

func TestServicePorts(t *testing.T) {
	tcp, udp, sctp := messages.Protocol_TCP, messages.Protocol_UDP, messages.Protocol_SCTP
	for _, c := range []struct {
		name   string
		in     []corev1.ServicePort
		want   []*messages.ServicePort
		fields []string
	}{
		{
			"protocols",
			[]corev1.ServicePort{{Port: 1}, {Name: "u", Protocol: "UDP", Port: 1, NodePort: 30001}, {Name: "s", Protocol: "SCTP", Port: 1, NodePort: 30001}},
			[]*messages.ServicePort{{Protocol: tcp, Port: 1}, {Name: "u", Protocol: udp, Port: 1, NodePort: 30001}, {Name: "s", Protocol: sctp, Port: 1, NodePort: 30001}},
			nil,
		},
		{
			"unknown protocols are never UDP",
			[]corev1.ServicePort{{Name: "a", Protocol: "QUIC", Port: 1}, {Name: "b", Protocol: "tcp", Port: 2}, {Name: "c", Port: 3}},
			[]*messages.ServicePort{{Name: "c", Protocol: tcp, Port: 3}},
			[]string{"spec.ports[0].protocol", "spec.ports[1].protocol"},
		},
		{
			"numbers",
			[]corev1.ServicePort{{Name: "a", Port: 0}, {Name: "b", Port: 65536}, {Name: "c", Port: -1}, {Name: "d", Port: 65535}},
			[]*messages.ServicePort{{Name: "d", Protocol: tcp, Port: 65535}},
			[]string{"spec.ports[0].port", "spec.ports[1].port", "spec.ports[2].port"},
		},
		{
			"a bad node port costs only itself",
			[]corev1.ServicePort{{Port: 80, NodePort: 99999}},
			[]*messages.ServicePort{{Protocol: tcp, Port: 80}},
			[]string{"spec.ports[0].nodePort"},
		},
		{
			"same name, other protocol",
			[]corev1.ServicePort{{Name: "dns", Port: 53}, {Name: "dns", Protocol: "UDP", Port: 53}},
			[]*messages.ServicePort{{Name: "dns", Protocol: tcp, Port: 53}, {Name: "dns", Protocol: udp, Port: 53}},
			nil,
		},
		{
			"collisions",
			[]corev1.ServicePort{
				{Name: "a", Port: 80, NodePort: 30001}, {Name: "a", Port: 81}, {Name: "b", Port: 80}, {Name: "c", Port: 82, NodePort: 30001},
			},
			[]*messages.ServicePort{{Name: "a", Protocol: tcp, Port: 80, NodePort: 30001}, {Name: "c", Protocol: tcp, Port: 82}},
			[]string{"spec.ports[1].name", "spec.ports[2].port", "spec.ports[3].nodePort"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, want := service()
			in.Spec.Ports, want.Ports = c.in, c.want
			got, problems := normalize.Service("test", in)
			wantMessage(t, got, want)
			wantFields(t, problems, "Service", "default/web", c.fields...)
		})
	}
}

func TestEndpointPorts(t *testing.T) {
	in, want := slice()
	in.Ports = []discoveryv1.EndpointPort{
		{Name: ptr("http"), Port: ptr[int32](8080)},
		{Name: ptr(""), Port: ptr[int32](53), Protocol: ptr(corev1.ProtocolUDP)},
		{Name: ptr("any")},
		{Name: ptr("zero"), Port: ptr[int32](0)},
		{Port: ptr[int32](9)},
		{Name: ptr("odd"), Port: ptr[int32](9), Protocol: ptr(corev1.Protocol("DCCP"))},
		{Name: ptr("big"), Port: ptr[int32](65536)},
	}
	want.Ports = []*messages.EndpointPort{
		{Name: "http", Protocol: messages.Protocol_TCP, Port: 8080},
		{Name: "", Protocol: messages.Protocol_UDP, Port: 53},
	}
	got, problems := normalize.EndpointSlice("test", in)
	wantMessage(t, got, want)
	wantFields(t, problems, "EndpointSlice", "default/web-1", "ports[4].name", "ports[5].protocol", "ports[6].port")
}

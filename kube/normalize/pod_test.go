package normalize_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

func TestPod(t *testing.T) {
	pod := func(status corev1.PodStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"},
			Spec:       corev1.PodSpec{NodeName: "n1", HostNetwork: true}, Status: status,
		}
	}
	want := func(addresses ...string) *messages.Pod {
		return &messages.Pod{Namespace: "default", Name: "p", Uid: "u", Node: "n1", HostNetwork: true, Addresses: addresses}
	}
	for name, c := range map[string]struct {
		in     *corev1.Pod
		want   *messages.Pod
		fields []string
	}{
		"both families": {in: pod(corev1.PodStatus{PodIP: "10.1.1.2", PodIPs: []corev1.PodIP{{IP: "10.1.1.2"}, {IP: "fd00::02"}}}), want: want("10.1.1.2", "fd00::2")},
		"only podIP":    {in: pod(corev1.PodStatus{PodIP: "10.1.1.02", Phase: corev1.PodRunning}), want: want("10.1.1.2")},
		"no address":    {in: pod(corev1.PodStatus{Phase: corev1.PodPending})},
		"succeeded":     {in: pod(corev1.PodStatus{PodIP: "10.1.1.2", Phase: corev1.PodSucceeded})},
		"failed":        {in: pod(corev1.PodStatus{PodIP: "10.1.1.2", Phase: corev1.PodFailed})},
		"one bad":       {in: pod(corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "x"}, {IP: "fd00::2"}}}), want: want("fd00::2"), fields: []string{"status.podIPs[0].ip"}},
		"all bad":       {in: pod(corev1.PodStatus{PodIP: "x"}), fields: []string{"status.podIP"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := normalize.Pod("test", c.in)
			wantMessage(t, got, c.want)
			wantFields(t, problems, "Pod", "default/p", c.fields...)
		})
	}
}

// TestPodOtherProtocols: a pod says by a container port of SCTP, or by the annotation, that it uses
// other protocols than TCP, UDP and ICMP.
func TestPodOtherProtocols(t *testing.T) {
	port := func(p corev1.Protocol) []corev1.Container {
		return []corev1.Container{{Name: "a"}, {Name: "b", Ports: []corev1.ContainerPort{{ContainerPort: 38412, Protocol: p}}}}
	}
	for name, c := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"no port":         {},
		"TCP":             {pod: corev1.Pod{Spec: corev1.PodSpec{Containers: port(corev1.ProtocolTCP)}}},
		"SCTP":            {pod: corev1.Pod{Spec: corev1.PodSpec{Containers: port(corev1.ProtocolSCTP)}}, want: true},
		"SCTP, sidecar":   {pod: corev1.Pod{Spec: corev1.PodSpec{InitContainers: port(corev1.ProtocolSCTP)}}, want: true},
		"annotation":      {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{normalize.AnnotationOtherProtocols: "true"}}}, want: true},
		"annotation, off": {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{normalize.AnnotationOtherProtocols: "false"}}}},
	} {
		c.pod.Namespace, c.pod.Name, c.pod.Status.PodIP = "default", "p", "10.1.1.2"
		if got, _ := normalize.Pod("test", &c.pod); got.GetOtherProtocols() != c.want {
			t.Errorf("%s: %v, want %v", name, got.GetOtherProtocols(), c.want)
		}
	}
}

func TestNilObjects(t *testing.T) {
	if s, problems := normalize.Service("test", nil); s != nil || problems != nil {
		t.Error("a nil Service gave something")
	}
	if s, problems := normalize.EndpointSlice("test", nil); s != nil || problems != nil {
		t.Error("a nil EndpointSlice gave something")
	}
	if n, problems := normalize.Node("test", nil); n != nil || problems != nil {
		t.Error("a nil Node gave something")
	}
	if p, problems := normalize.Pod("test", nil); p != nil || problems != nil {
		t.Error("a nil Pod gave something")
	}
}

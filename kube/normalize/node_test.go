package normalize_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

func TestNode(t *testing.T) {
	in := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", Labels: map[string]string{corev1.LabelTopologyZone: "a"}},
		Spec:       corev1.NodeSpec{PodCIDR: "ignored", PodCIDRs: []string{"10.1.1.5/24", "nonsense", "fd00:1::/64"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeExternalIP, Address: "198.51.100.1"},
			{Type: corev1.NodeHostName, Address: "n1"},
			{Type: corev1.NodeInternalIP, Address: "192.168.050.1"},
			{Type: corev1.NodeInternalIP, Address: "nowhere"},
			{Type: corev1.NodeInternalIP, Address: "FD00::1"},
			{Type: corev1.NodeExternalIP, Address: "192.168.50.1"},
		}},
	}
	got, problems := normalize.Node("test", in)
	wantMessage(t, got, &messages.Node{
		Name: "n1", Uid: "u", Zone: "a", PodCidrs: []string{"10.1.1.0/24", "fd00:1::/64"},
		Addresses: []string{"192.168.50.1", "fd00::1", "198.51.100.1"},
	})
	wantFields(t, problems, "Node", "n1", "spec.podCIDRs[1]", "status.addresses[3].address")
}

func TestNodeSmallThings(t *testing.T) {
	named := func(change func(*corev1.Node)) *corev1.Node {
		in := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		change(in)
		return in
	}
	for name, c := range map[string]struct {
		in     *corev1.Node
		want   *messages.Node
		object string
		fields []string
	}{
		"deleted": {in: named(func(n *corev1.Node) { n.DeletionTimestamp = ptr(metav1.Unix(1, 0)) }), want: &messages.Node{Name: "n1", Leaving: true}},
		"doomed by the autoscaler": {
			in: named(func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "a"}, {Key: "ToBeDeletedByClusterAutoscaler"}}
			}),
			want: &messages.Node{Name: "n1", Leaving: true},
		},
		"another taint": {
			in:   named(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/unschedulable"}} }),
			want: &messages.Node{Name: "n1"},
		},
		"only podCIDR": {in: named(func(n *corev1.Node) { n.Spec.PodCIDR = "10.0.0.0/24" }), want: &messages.Node{Name: "n1", PodCidrs: []string{"10.0.0.0/24"}}},
		"bad podCIDR":  {in: named(func(n *corev1.Node) { n.Spec.PodCIDR = "10.0.0.0" }), want: &messages.Node{Name: "n1"}, object: "n1", fields: []string{"spec.podCIDR"}},
		"no name":      {in: named(func(n *corev1.Node) { n.Name = "" }), object: `""`, fields: []string{"metadata.name"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := normalize.Node("test", c.in)
			wantMessage(t, got, c.want)
			wantFields(t, problems, "Node", c.object, c.fields...)
		})
	}
}

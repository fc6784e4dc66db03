package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// did waits until the agent has had VPP do something.
func (n *node) did(operation string) {
	n.Helper()
	controlplane.Eventually(n, operation, func() string {
		var page struct {
			Items []struct{ Operations []string }
		}
		if problem := n.get("/api/v1/events?limit=500", &page); problem != "" {
			return problem
		}
		var all []string
		for _, e := range page.Items {
			all = append(all, e.Operations...)
		}
		if slices.Contains(all, operation) {
			return ""
		}
		return strings.Join(all, ", ")
	})
}

// TestServiceCIDR adds a network of cluster IPs to the cluster and takes it away: a service gets an
// address of it, and VPP rejects the others as long as it is one.
func TestServiceCIDR(t *testing.T) {
	if !build.HasServiceCIDRs() {
		t.Skip(build.Kubernetes() + " has no ServiceCIDR objects")
	}
	n := stage(t)
	n.did("add reject route " + controlplane.ServiceCIDR)
	n.Namespace("shop")
	cidrs := n.Admin.NetworkingV1().ServiceCIDRs()
	more := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.200.0.0/24"}}}
	if _, err := cidrs.Create(n.Context(), more, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.did("add reject route 10.200.0.0/24")
	controlplane.Eventually(t, "service with an address of the new network", func() string {
		_, err := n.Admin.CoreV1().Services("shop").Create(n.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.200.0.10", Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Sprint(err) // the API server takes a moment
		}
		return ""
	})
	n.pod("shop", "web", "a", thisNode, "10.1.1.3")
	n.want("shop/web", row("10.200.0.10", 80, "10.1.1.3:80"))
	n.drop("shop", "web")
	n.want("shop/web")
	if err := cidrs.Delete(n.Context(), "more", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	n.did("delete route 10.200.0.0/24 of source 26")
}

package agent_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// TestRowsFollow changes one service in every way that matters to its rows.
func TestRowsFollow(t *testing.T) {
	n := stage(t)
	const key = "shop/web"
	n.Namespace("shop")
	_, atRest := n.counted()

	ip := n.service("shop", "web")
	n.pod("shop", "web", "a", thisNode, "10.1.1.3")
	n.want(key, row(ip, 80, "10.1.1.3:8080"))

	n.pod("shop", "web", "b", "n2", "10.1.2.4") // scaled up
	n.want(key, row(ip, 80, "10.1.1.3:8080,10.1.2.4:8080"))

	n.readiness("shop", "b", corev1.ConditionFalse)
	n.want(key, row(ip, 80, "10.1.1.3:8080"))
	n.readiness("shop", "b", corev1.ConditionTrue)
	n.want(key, row(ip, 80, "10.1.1.3:8080,10.1.2.4:8080"))

	// terminating, but it serves until it is gone: not used while another one is ready
	n.remove("shop", "a", 600)
	n.want(key, row(ip, 80, "10.1.2.4:8080"))
	n.readiness("shop", "b", corev1.ConditionFalse) // none is ready: the terminating one is used
	n.want(key, row(ip, 80, "10.1.1.3:8080"))
	n.readiness("shop", "b", corev1.ConditionTrue)
	n.remove("shop", "a", 0)
	n.want(key, row(ip, 80, "10.1.2.4:8080"))

	changed := n.change("shop", "web", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort })
	port := changed.Spec.Ports[0].NodePort
	n.want(key, row(ip, 80, "10.1.2.4:8080"), row(nodeIP, port, "10.1.2.4:8080"))

	n.pod("shop", "web", "c", thisNode, "10.1.1.5")
	n.change("shop", "web", func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal })
	n.want(key, row(ip, 80, "10.1.1.5:8080,10.1.2.4:8080"), row(nodeIP, port, "10.1.1.5:8080"))

	n.change("shop", "web", func(s *corev1.Service) {
		local := corev1.ServiceInternalTrafficPolicyLocal
		s.Spec.Type, s.Spec.Ports[0].NodePort, s.Spec.ExternalTrafficPolicy, s.Spec.InternalTrafficPolicy = corev1.ServiceTypeClusterIP, 0, "", &local
	})
	n.want(key, row(ip, 80, "10.1.1.5:8080"))

	n.drop("shop", "web")
	n.want(key)
	// The row of the node port went while the row of the cluster IP had the same endpoint, so it
	// stays until the agent has seen that no connection needs it.
	controlplane.Eventually(n, "rows after the deletion", func() string {
		if _, rows := n.counted(); rows != atRest {
			return fmt.Sprintf("VPP has %d rows, had %d before the service", rows, atRest)
		}
		return ""
	})
}

// TestNamespaceDeleted deletes a namespace with two services; one in another namespace stays.
func TestNamespaceDeleted(t *testing.T) {
	n := stage(t)
	_, atRest := n.counted()
	n.Namespace("shop")
	n.Namespace("other")
	n.service("shop", "web")
	n.service("shop", "db")
	ip := n.service("other", "web")
	n.pod("shop", "web", "a", thisNode, "10.1.1.3")
	n.pod("shop", "db", "b", thisNode, "10.1.1.4")
	n.pod("other", "web", "c", thisNode, "10.1.1.5")
	n.rows(atRest + 3)
	n.remove("shop", "a", 0)
	n.remove("shop", "b", 0)
	if err := n.Admin.CoreV1().Namespaces().Delete(n.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete namespace: %v", err)
	}
	n.want("shop/web")
	n.want("shop/db")
	n.want("other/web", row(ip, 80, "10.1.1.5:8080"))
	n.rows(atRest + 1)
}

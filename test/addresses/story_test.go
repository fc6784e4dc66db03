package addresses_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestStory: Services get addresses, change, and lose them.
func TestStory(t *testing.T) {
	o := stage(t)
	o.pool("common", "{addresses: [192.0.2.0-192.0.2.9], avoid: [0], virtualRouters: 1-100}")
	o.allocate()
	o.service("first")
	o.has("first", "192.0.2.1")
	o.event("first", "IPAllocated", "Assigned 192.0.2.1")
	o.poolIs("common", "1 given, 8 free")
	o.service("foreign", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("example.com/other") })
	o.service("unclassed", func(s *corev1.Service) { s.Spec.LoadBalancerClass = nil })
	o.service("wants", func(s *corev1.Service) { s.Annotations[addressesAnnotation] = "192.0.2.7" })
	o.has("wants", "192.0.2.7")
	o.has("foreign", "")
	o.has("unclassed", "")
}

package addresses_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

func annotated(key, value string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Annotations[key] = value }
}

func local(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

func ofClass(class *string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.LoadBalancerClass = class }
}

// TestStory: Services of both families get addresses, change, and lose them; conflicts are told.
// The rights of the manifest are enough, and each is used.
func TestStory(t *testing.T) {
	o := stage(t)
	o.StopAPI()
	o.StartAPI("--feature-gates=WatchList=false", "--service-cluster-ip-range="+controlplane.ServiceCIDR+",fd00:96::/108")
	o.pool("common", "{addresses: [192.0.2.0-192.0.2.9, '2001:db8::1-2001:db8::2'], avoid: [0], virtualRouters: 1-100}")
	a := o.allocate()
	o.service("first")
	o.has("first", "192.0.2.1")
	o.event("first", "IPAllocated", "Assigned 192.0.2.1")
	o.poolIs("common", "1 given, 10 free")

	t.Log("Services of others are not touched")
	o.service("foreign", ofClass(new("example.com/other")))
	o.service("classless", ofClass(nil))
	o.service("wants", annotated(addressesAnnotation, "192.0.2.7"))
	o.service("field", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "192.0.2.8" })
	o.has("wants", "192.0.2.7")
	o.has("field", "192.0.2.8")
	o.has("foreign", "")
	o.has("classless", "")

	t.Log("conflicts are told")
	o.service("late", annotated(addressesAnnotation, "192.0.2.7"))
	o.has("late", "NoAddress: it asks for 192.0.2.7: Service default/wants has it")
	o.event("late", "AllocationFailed", "it asks for 192.0.2.7: Service default/wants has it")
	o.service("odd", annotated(addressesAnnotation, "192.0.2.300"))
	o.has("odd", `NoAddress: annotation troupe.dev/addresses: "192.0.2.300" is no address`)
	o.drop("wants")
	o.has("late", "192.0.2.7")

	t.Log("families come and go")
	o.patch("first", `{"spec":{"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv4","IPv6"]}}`)
	o.has("first", "192.0.2.1 2001:db8::1")
	o.patch("first", `{"spec":{"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4"],"clusterIPs":null}}`)
	o.has("first", "192.0.2.1")
	o.event("first", "ClearAssignment", "Released 2001:db8::1")
	o.service("six", func(s *corev1.Service) {
		s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = new(corev1.IPFamilyPolicyRequireDualStack), []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
	})
	o.has("six", "2001:db8::1 192.0.2.2")

	t.Log("shared addresses")
	o.service("shared-a", annotated(sharingAnnotation, "x"), annotated(addressesAnnotation, "192.0.2.5"))
	o.service("shared-b", annotated(sharingAnnotation, "x"), func(s *corev1.Service) { s.Spec.Ports[0].Port = 53 })
	o.has("shared-a", "192.0.2.5")
	o.has("shared-b", "192.0.2.5")
	o.patch("shared-b", `{"spec":{"ports":[{"name":"a","port":80}]}}`)
	o.has("shared-b", "192.0.2.3")

	t.Log("a type that changes releases")
	o.patch("first", `{"spec":{"type":"ClusterIP","loadBalancerClass":null,"externalTrafficPolicy":null,"allocateLoadBalancerNodePorts":null}}`)
	o.has("first", "")
	o.patch("first", `{"spec":{"type":"LoadBalancer","loadBalancerClass":"`+class+`"}}`)
	o.has("first", "192.0.2.1")
	stories(o)

	controlplane.Eventually(t, "ready", func() string {
		if _, err := a.get("/readyz"); err != nil {
			return err.Error()
		}
		return ""
	})
	text, err := a.get("/metrics")
	if err != nil || !strings.Contains(text, `troupe_addresses_pool_given{pool="moved"}`) || !strings.Contains(text, "troupe_addresses_services_without_address 1\n") {
		t.Errorf("metrics, %v:\n%s", err, text)
	}
	allowed, refused := o.Requests()
	if len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
	for _, r := range controlplane.RightsOf(o.Plane, namespace, account).All() {
		r.Resource = strings.Replace(r.Resource, "/status", "", 1) // the audit log has no subresource
		if allowed[r] == 0 {
			t.Errorf("no request to %s %s", r.Verb, r.Resource)
		}
	}
}

// stories are about pools.
func stories(o *town) {
	o.Log("pools that are wrong give nothing, take nothing away, and say why")
	o.pool("inside", "{addresses: [10.96.7.0/24], virtualRouters: 101-110}")
	o.poolIs("inside", "0 given, 0 free, Refused: invalid address pool inside: range 10.96.7.0-10.96.7.255 overlaps network 10.96.0.0/12 of the cluster")
	o.event("inside", "PoolRefused", "overlaps network 10.96.0.0/12")
	o.pool("inside", "{addresses: [198.51.100.0/24], virtualRouters: 100-110}")
	o.poolIs("inside", "0 given, 0 free, Refused: invalid address pool inside: virtual routers 100-110 overlap those of pool common, 1-100: divide 1-255 among the pools")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "198.51.100.7"}}}}
	if _, err := o.Admin.CoreV1().Nodes().Create(o.Context(), node, metav1.CreateOptions{}); err != nil {
		o.Fatal(err)
	}
	o.pool("inside", "{addresses: [198.51.100.0/24], virtualRouters: 101-110}")
	o.poolIs("inside", "0 given, 0 free, Refused: invalid address pool inside: range 198.51.100.0-198.51.100.255 overlaps address 198.51.100.7 of Node n1")
	if err := o.tryPool("typo", "{addresses: [192.0.2.0]}"); err == nil || !strings.Contains(err.Error(), "spec.addresses[0]") {
		o.Errorf("an address that is no range: %v", err)
	}
	o.has("first", "192.0.2.1")

	o.Log("a pool for Local Services: each has a virtual router for itself")
	o.pool("inside", "{addresses: [198.51.100.128-198.51.100.133], onRequest: true, virtualRouters: 101-103}")
	o.poolIs("inside", "0 given, 6 free")
	o.service("local", annotated(poolAnnotation, "inside"), local)
	o.has("local", "198.51.100.128")
	o.poolIs("inside", "1 given, 4 free")
	o.service("beside", annotated(poolAnnotation, "inside"))
	o.has("beside", "198.51.100.130")
	o.service("beside2", annotated(poolAnnotation, "inside"))
	o.has("beside2", "198.51.100.131")
	o.patch("beside2", `{"spec":{"externalTrafficPolicy":"Local"}}`)
	o.has("beside2", "198.51.100.131 LocalNotAlone: other Services have addresses of the virtual router of 198.51.100.131: nodes without an endpoint may own it, until the Service is made anew")
	o.event("beside2", "LocalNotAlone", "198.51.100.131")
	o.drop("beside2")
	o.drop("beside")

	o.Log("a namespace that the pool does not select; a Service that it does not select")
	o.pool("inside", "{addresses: [198.51.100.128-198.51.100.133], onRequest: true, virtualRouters: 101-103, namespaceSelector: {matchLabels: {team: shop}}}")
	o.has("local", "NoAddress: no pool gives an IPv4 address (common: the Service asks for another pool; inside: the pool does not select its namespace)")
	o.pool("inside", "{addresses: [198.51.100.128-198.51.100.133], onRequest: true, virtualRouters: 101-103, serviceSelector: {matchExpressions: [{key: a, operator: DoesNotExist}]}}")
	o.has("local", "198.51.100.128")

	o.Log("a pool that goes releases, another one gives anew")
	o.drop("shared-b")
	if err := o.pools().Delete(o.Context(), "common", metav1.DeleteOptions{}); err != nil {
		o.Fatal(err)
	}
	o.has("first", "NoAddress: no pool gives an IPv4 address (there is none)")
	o.pool("moved", "{addresses: [203.0.113.0/28], virtualRouters: 1-100}")
	o.has("first", "203.0.113.0")
	o.has("field", "NoAddress: it asks for 192.0.2.8: no pool has it")
	for _, name := range []string{"field", "late", "shared-a", "odd"} {
		o.drop(name)
	}
	o.has("six", "203.0.113.1 NoAddress: no pool gives an IPv6 address (there is none)")
}

// TestDefaultClass: Services without a class get addresses where the allocator is told so, and lose
// them where it is told so no more.
func TestDefaultClass(t *testing.T) {
	o := stage(t)
	o.pool("common", "{addresses: [192.0.2.0/28]}")
	a := o.allocate("--default-class")
	o.service("classless", ofClass(nil))
	o.service("foreign", ofClass(new("example.com/other")))
	o.has("classless", "192.0.2.0")
	o.has("foreign", "")
	a.Kill()
	s, err := o.Admin.CoreV1().Services("default").Get(t.Context(), "foreign", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1", IPMode: new(corev1.LoadBalancerIPModeVIP)}}
	if _, err := o.Admin.CoreV1().Services("default").UpdateStatus(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	o.service("b")
	o.allocate()
	o.has("b", "192.0.2.2") // the first one is in a status until the same round takes it out
	o.has("classless", "")
	o.has("foreign", "192.0.2.1")
}

package namespaces

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// node is the node with its two pods.
const node = `apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24, podCIDRs: [10.1.1.0/24, "fd00:1::/64"]}
status: {addresses: [{type: InternalIP, address: "2001:db8::1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p3, namespace: shop, uid: u3}
spec: {nodeName: n1, containers: [{name: c, image: x}]}
status: {phase: Running, podIP: "fd00:1::3", podIPs: [{ip: "fd00:1::3"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p4, namespace: shop, uid: u4}
spec: {nodeName: n1, containers: [{name: c, image: x}]}
status: {phase: Running, podIP: "fd00:1::4", podIPs: [{ip: "fd00:1::4"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  ipFamilies: [IPv6]
  clusterIP: "fd00:96::10"
  clusterIPs: ["fd00:96::10"]
  ports: [{name: http, port: 80, protocol: TCP, nodePort: 30080}, {name: dns, port: 53, protocol: UDP}]
status: {loadBalancer: {ingress: [{ip: "2001:db8:50::1"}]}}
---
`

// served are the objects with these endpoints.
func served(endpoints ...string) string {
	var all []string
	for _, e := range endpoints {
		all = append(all, fmt.Sprintf("{addresses: [%q], nodeName: n1}", e))
	}
	return node + `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv6
ports: [{name: http, port: 8080, protocol: TCP}, {name: dns, port: 5353, protocol: UDP}]
endpoints: [` + strings.Join(all, ", ") + "]\n"
}

// TestIPv6: clients of Linux to services of IPv6 through a real VPP; the agent is killed, VPP is
// killed, an endpoint goes.
func TestIPv6(t *testing.T) {
	s := newStage(t)
	s.apply(served("fd00:1::3"))
	s.startAgent()
	check := func() {
		t.Helper()
		for _, c := range []struct{ from, how, to, want string }{
			{"tr-pod4", "get", "[fd00:96::10]:80", "fd00:1::4"},
			{"tr-pod4", "udp", "[fd00:96::10]:53", "fd00:1::4"},
			{"tr-pod3", "get", "[fd00:96::10]:80", "fd00:1::ffff:ffff:ffff:fffe"}, // itself
			{"tr-pod4", "get", "[2001:db8::1]:30080", "fd00:1::4"},
			{"tr-out", "get", "[2001:db8::1]:30080", "2001:db8::fe"},
			{"tr-out", "get", "[2001:db8:50::1]:80", "2001:db8::fe"},
		} {
			s.reaches(c.from, c.how, c.to, "tr-pod3 saw "+c.want)
		}
	}
	check()
	// The address of the node, which is that of a node port, is found by neighbour discovery.
	s.run("ip", "-n", "tr-out", "-6", "neigh", "flush", "dev", "e0")
	s.reaches("tr-out", "get", "[2001:db8::1]:30080", "tr-pod3 saw 2001:db8::fe")

	open := s.hold("tr-pod4", "[fd00:96::10]:80")
	open.answers("tr-pod3 saw fd00:1::4")
	s.agent.Kill()
	open.answers("tr-pod3 saw fd00:1::4")
	check()
	s.startAgent()
	open.answers("tr-pod3 saw fd00:1::4")
	metrics, _ := s.ask("/metrics")
	if wrote := regexp.MustCompile(`(?m)^troupe_vpp_operations_total.* [1-9].*`).FindAllString(metrics, -1); len(wrote) > 0 {
		t.Errorf("the restart changed VPP: %s", wrote)
	}

	// Another endpoint comes: the connection stays. The first one goes: new connections lead to the
	// other one.
	s.apply(served("fd00:1::3", "fd00:1::4"))
	s.reaches("tr-out", "get", "[2001:db8::1]:30080", "tr-pod4 saw 2001:db8::fe")
	open.answers("tr-pod3 saw fd00:1::4")
	s.apply(served("fd00:1::4"))
	s.reaches("tr-pod3", "get", "[fd00:96::10]:80", "tr-pod4 saw fd00:1::3")
	s.apply(served("fd00:1::3"))
	s.reaches("tr-pod4", "get", "[fd00:96::10]:80", "tr-pod3 saw fd00:1::4")

	s.vpp.Kill()
	s.ready(false)
	s.startVPP()
	s.ready(true)
	check()
}

package process

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The cluster: two nodes, and three kinds of services. The calm ones never change; the endpoints of
// the busy ones come and go beside the first one, which stays; the wild ones appear and go, and
// change in every way.
const (
	thisNode = "n1"
	nodeIP   = "192.168.16.1"
	pods     = 6 // on each node
	calm     = 8
	busy     = 6
	wild     = 32
)

// service has the inputs of the manifest of a service.
type service struct {
	name      string
	number    int // decides the addresses
	kind      string
	protocol  string
	affinity  int
	local     bool // externalTrafficPolicy
	sources   string
	external  string
	balancer  string
	endpoints []string
}

// calmServices are one of every kind.
func calmServices() []service {
	endpoints := []string{pod(1, 0), pod(1, 1), pod(2, 0), pod(2, 1)}
	all := []service{
		{kind: "ClusterIP"},
		{kind: "NodePort"},
		{kind: "LoadBalancer", balancer: "203.0.113.12"},
		{kind: "LoadBalancer", balancer: "203.0.113.13", local: true},
		{kind: "ClusterIP", affinity: 600},
		{kind: "ClusterIP", protocol: "UDP"},
		{kind: "LoadBalancer", balancer: "203.0.113.16", sources: inside + "/24"},
		{kind: "ClusterIP", external: "198.51.100.17"},
	}
	for i := range all {
		all[i].name, all[i].number, all[i].endpoints = fmt.Sprint("calm-", i), i, endpoints
	}
	return all
}

// pinned is the endpoint of a busy service that stays.
func pinned(n int) string { return pod(1+n%2, n%pods) }

func busyService(n int, random *rand.Rand) service {
	kinds := []service{{kind: "ClusterIP"}, {kind: "NodePort"}, {kind: "LoadBalancer", balancer: fmt.Sprint("203.0.113.", 100+n)}}
	s := kinds[n%len(kinds)]
	s.name, s.number = fmt.Sprint("busy-", n), calm+n
	s.endpoints = append([]string{pinned(n)}, randomPods(random, 5)...)
	slices.Sort(s.endpoints)
	s.endpoints = slices.Compact(s.endpoints)
	return s
}

func wildService(n int, random *rand.Rand) service {
	s := service{
		name: fmt.Sprint("wild-", n), number: calm + busy + n, kind: []string{"ClusterIP", "NodePort", "LoadBalancer"}[random.IntN(3)],
		endpoints: randomPods(random, 4), affinity: []int{0, 0, 60}[random.IntN(3)], local: random.IntN(3) == 0,
		protocol: []string{"TCP", "TCP", "UDP"}[random.IntN(3)],
	}
	if random.IntN(4) == 0 {
		s.external = fmt.Sprint("198.51.100.", 200+random.IntN(3)) // others want it, too
	}
	if s.kind == "LoadBalancer" {
		s.balancer = fmt.Sprint("203.0.113.", 200+n)
		s.sources = []string{"", inside + "/24", inside + "/16, 172.16.0.0/12"}[random.IntN(3)]
	}
	return s
}

func randomPods(random *rand.Rand, most int) []string {
	var all []string
	for range random.IntN(most + 1) {
		all = append(all, pod(1+random.IntN(2), random.IntN(pods)))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func pod(node, n int) string { return fmt.Sprintf("10.1.%d.%d", node, 2+n) }

// port is the port of the endpoints. Each service has one of its own: VPP ends the connections of
// all services to an endpoint that leaves one.
func (s service) port() int { return 8000 + s.number }

func (s service) clusterIP() string { return fmt.Sprint("10.96.0.", 10+s.number) }

// manifest is the text of the Service and its EndpointSlice.
func (s service) manifest() string {
	protocol := s.protocol
	if protocol == "" {
		protocol = "TCP"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns, name: %s, uid: u-%s, creationTimestamp: \"2026-01-02T00:00:%02dZ\"}\n", s.name, s.name, s.number)
	fmt.Fprintf(&b, "spec:\n  type: %s\n  clusterIP: %s\n  clusterIPs: [%s]\n  ipFamilies: [IPv4]\n", s.kind, s.clusterIP(), s.clusterIP())
	if s.affinity > 0 {
		fmt.Fprintf(&b, "  sessionAffinity: ClientIP\n  sessionAffinityConfig: {clientIP: {timeoutSeconds: %d}}\n", s.affinity)
	}
	if s.local && s.kind != "ClusterIP" {
		fmt.Fprintln(&b, "  externalTrafficPolicy: Local")
	}
	if s.sources != "" {
		fmt.Fprintf(&b, "  loadBalancerSourceRanges: [%s]\n", s.sources)
	}
	if s.external != "" {
		fmt.Fprintf(&b, "  externalIPs: [%s]\n", s.external)
	}
	fmt.Fprintf(&b, "  ports:\n  - {name: p, port: 80, targetPort: %d, protocol: %s", s.port(), protocol)
	if s.kind == "NodePort" {
		fmt.Fprintf(&b, ", nodePort: %d", 30000+s.number)
	}
	fmt.Fprintln(&b, "}")
	if s.balancer != "" {
		fmt.Fprintf(&b, "status: {loadBalancer: {ingress: [{ip: %s}]}}\n", s.balancer)
	}
	fmt.Fprintf(&b, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: ns, name: %s-x, labels: {kubernetes.io/service-name: %s}}\n", s.name, s.name)
	fmt.Fprintf(&b, "addressType: IPv4\nports:\n- {name: p, port: %d, protocol: %s}\nendpoints:\n", s.port(), protocol)
	for _, address := range s.endpoints {
		fmt.Fprintf(&b, "- {addresses: [%s], conditions: {ready: true}, nodeName: n%c}\n", address, address[len("10.1.")])
	}
	return b.String()
}

// nodes is the manifest of the nodes and the pods of this one.
func nodes() string {
	var b strings.Builder
	for i, address := range []string{nodeIP, "192.168.16.2"} {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Node\nmetadata: {name: n%d, uid: u%d}\nspec: {podCIDR: 10.1.%d.0/24, podCIDRs: [10.1.%d.0/24]}\n", i+1, i+1, i+1, i+1)
		fmt.Fprintf(&b, "status: {addresses: [{type: InternalIP, address: %s}]}\n---\n", address)
	}
	for i := range pods {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata: {namespace: ns, name: p%d, uid: p%d}\nspec: {nodeName: n1}\n", i, i)
		fmt.Fprintf(&b, "status: {phase: Running, podIP: %s, podIPs: [{ip: %s}]}\n---\n", pod(1, i), pod(1, i))
	}
	return b.String()
}

// directory is where the manifests stand, one file a service.
type directory struct {
	*testing.T
	path   string
	random *rand.Rand
}

// put writes a file as editors do, so that the agent never reads a part of it.
func (d *directory) put(name, text string) {
	d.Helper()
	hidden := filepath.Join(d.path, "."+name)
	if err := os.WriteFile(hidden, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
	if err := os.Rename(hidden, filepath.Join(d.path, name+".yaml")); err != nil {
		d.Fatal(err)
	}
}

func (d *directory) remove(name string) {
	d.Helper()
	if err := os.Remove(filepath.Join(d.path, name+".yaml")); err != nil && !os.IsNotExist(err) {
		d.Fatal(err)
	}
}

// fill writes the whole cluster.
func (d *directory) fill() {
	d.put("nodes", nodes())
	for _, s := range calmServices() {
		d.put(s.name, s.manifest())
	}
	for n := range busy {
		s := busyService(n, d.random)
		d.put(s.name, s.manifest())
	}
	for n := range wild / 2 {
		s := wildService(n, d.random)
		d.put(s.name, s.manifest())
	}
}

// mutate makes one change, or very many.
func (d *directory) mutate() {
	switch n := d.random.IntN(wild); d.random.IntN(8) {
	case 0, 1, 2:
		s := busyService(d.random.IntN(busy), d.random)
		d.put(s.name, s.manifest())
	case 3, 4:
		s := wildService(n, d.random)
		d.put(s.name, s.manifest())
	case 5, 6:
		d.remove(fmt.Sprint("wild-", n))
	default:
		for n := range wild {
			s := wildService(n, d.random)
			if d.remove(s.name); d.random.IntN(3) > 0 {
				d.put(s.name, s.manifest())
			}
		}
	}
}

package acceptance_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
)

// Limits of the clusters of the random tests.
const (
	nodeName    = "n1"
	nodeAddress = "192.168.0.2"
	localPods   = 24 // 10.1.1.2 and up are pods of this node
)

// newCluster builds the only node of a cluster that this VPP serves, with the interfaces of its
// pods.
func newCluster(t *testing.T) *node {
	t.Helper()
	n := newNode(t, nodeName, service.Config{
		ClusterCIDRs: prefixes(t, []string{"10.1.0.0/16"}), ServiceCIDRs: prefixes(t, []string{"10.96.0.0/16"}),
	})
	n.build(vppOwns, []string{nodeAddress})
	n.zone("a")
	for i := range localPods {
		n.client(localPod(i))
	}
	return n
}

// zone moves the node into a zone, which is a label of it.
func (n *node) zone(zone string) {
	n.setNode(&messages.Node{Name: nodeName, Uid: "u1", Zone: zone, Addresses: []string{nodeAddress}, PodCidrs: []string{"10.1.1.0/24"}})
}

func localPod(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 1, byte(i + 2)}) }

func remotePod(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 2, byte(i + 2)}) }

// serviceSpec describes a service of one port; what is empty is not there.
type serviceSpec struct {
	name, ip string
	nodePort uint32
	external string
	affinity uint32
	etpLocal bool
	itpLocal bool
	portName string
	created  int64
}

// service makes the API object.
func (s serviceSpec) service() *messages.Service {
	out := &messages.Service{
		Namespace: "default", Name: s.name, Uid: "uid-" + s.name, Created: s.created, ClusterIps: []string{s.ip},
		IpFamilies: []messages.IPFamily{messages.IPFamily_IPV4}, AffinitySeconds: s.affinity,
		Ports: []*messages.ServicePort{{Name: s.portName, Protocol: messages.Protocol_TCP, Port: 80, NodePort: s.nodePort}},
	}
	if s.nodePort != 0 {
		out.Type = messages.ServiceType_NODE_PORT
	}
	if s.external != "" {
		out.ExternalIps = []string{s.external}
	}
	if s.etpLocal {
		out.ExternalPolicy = messages.TrafficPolicy_POLICY_LOCAL
	}
	if s.itpLocal {
		out.InternalPolicy = messages.TrafficPolicy_POLICY_LOCAL
	}
	return out
}

// slice makes an EndpointSlice of ready endpoints on a port.
func (s serviceSpec) slice(port uint32, endpoints ...netip.Addr) *messages.EndpointSlice {
	out := &messages.EndpointSlice{
		Namespace: "default", Name: s.name + "-1", Service: s.name, Family: messages.IPFamily_IPV4,
		Ports: []*messages.EndpointPort{{Name: s.portName, Protocol: messages.Protocol_TCP, Port: port}},
	}
	for _, a := range endpoints {
		out.Endpoints = append(out.Endpoints, endpointAt(a))
	}
	return out
}

// endpointAt is a ready endpoint; its address says where it is.
func endpointAt(a netip.Addr) *messages.Endpoint {
	where := "n2"
	if a.As4()[2] == 1 {
		where = nodeName
	}
	return &messages.Endpoint{Address: a.String(), Ready: true, Serving: true, Node: where}
}

// apply puts a service with its endpoints into the cluster.
func (n *node) apply(s serviceSpec, port uint32, endpoints ...netip.Addr) {
	n.Source.Change(func(store *kube.Store) {
		store.Set(s.service(), nil)
		store.Set(s.slice(port, endpoints...), nil)
	})
}

// Sizes of the random clusters: small, so that objects meet.
const (
	randomServices  = 7
	randomEndpoints = 6 // on this node, and as many elsewhere
)

// randomService makes a service with any combination of what NAT44 can serve.
func randomService(random *rand.Rand, i int) *messages.Service {
	s := serviceSpec{
		name: fmt.Sprint("s", i), ip: fmt.Sprint("10.96.0.", i+1), portName: "a", created: int64(random.IntN(3)),
		etpLocal: random.IntN(3) == 0, itpLocal: random.IntN(5) == 0,
	}
	if random.IntN(2) == 0 {
		s.nodePort = uint32(30000 + i)
	}
	switch random.IntN(8) {
	case 0, 1, 2, 3:
		s.external = fmt.Sprint("203.0.113.", random.IntN(3)+1) // contested
	case 4:
		s.external = s.ip
	case 5:
		// perhaps an endpoint of another service
		s.external = fmt.Sprint("10.96.0.", random.IntN(randomServices)+1)
	}
	if random.IntN(4) == 0 {
		s.affinity = 10800
	}
	out := s.service()
	if random.IntN(3) == 0 {
		out.Type = messages.ServiceType_LOAD_BALANCER
		out.LoadBalancer = []*messages.LoadBalancerIngress{{Ip: fmt.Sprint("203.0.113.", random.IntN(3)+1)}}
		out.SourceRanges = [][]string{nil, {"192.0.2.0/24"}, {"10.0.0.0/8", "198.51.100.0/25"}, {"0.0.0.0/0"}, {""}, {"", "192.168.0.0/24"}}[random.IntN(6)]
	}
	out.Headless = random.IntN(12) == 0
	if random.IntN(2) == 0 {
		out.Ports = append(out.Ports, &messages.ServicePort{Name: "b", Protocol: messages.Protocol_UDP, Port: 53})
	}
	return out
}

// randomSlice makes one of two slices of a service, with endpoints in any state.
func randomSlice(random *rand.Rand, i, k int) *messages.EndpointSlice {
	out := serviceSpec{name: fmt.Sprint("s", i), portName: "a"}.slice(uint32(8080 + random.IntN(2)))
	out.Name = fmt.Sprint("s", i, "-", k)
	if random.IntN(3) > 0 {
		out.Ports = append(out.Ports, &messages.EndpointPort{Name: "b", Protocol: messages.Protocol_UDP, Port: 53})
	}
	hinted := random.IntN(3) == 0
	for range random.IntN(5) {
		a := localPod(random.IntN(randomEndpoints))
		if random.IntN(2) == 0 {
			a = remotePod(random.IntN(randomEndpoints))
		}
		e := endpointAt(a)
		e.Ready = random.IntN(4) > 0
		e.Serving = e.Ready || random.IntN(2) == 0
		e.Terminating = !e.Ready && random.IntN(2) == 0
		if hinted {
			e.ZoneHints = []string{[]string{"a", "b"}[random.IntN(2)]}
		}
		out.Endpoints = append(out.Endpoints, e)
	}
	return out
}

// randomChange changes one object of a cluster.
func randomChange(random *rand.Rand) func(*kube.Store) {
	i, k := random.IntN(randomServices), random.IntN(2)
	switch random.IntN(10) {
	case 0, 1, 2:
		s := randomService(random, i)
		return func(store *kube.Store) { store.Set(s, nil) }
	case 3:
		return func(store *kube.Store) { store.Delete("Service", fmt.Sprint("default/s", i)) }
	case 4:
		return func(store *kube.Store) { store.Delete("EndpointSlice", fmt.Sprint("default/s", i, "-", k)) }
	default:
		s := randomSlice(random, i, k)
		return func(store *kube.Store) { store.Set(s, nil) }
	}
}

// tagPattern finds the name of the owner in the tag of a row.
var tagPattern = regexp.MustCompile(`troupe/[a-z2-7]+`)

// texts are the rows in VPP, complete and in order, without the owner in the tag, on which nothing
// depends while the row is right. The rules in front of them follow, with the number of their
// interfaces.
func (n *node) texts() []string {
	n.Helper()
	var all []string
	for _, r := range n.rows() {
		all = append(all, tagPattern.ReplaceAllString(r.text, "troupe/owner"))
	}
	slices.Sort(all)
	lists, err := acl.Read(n.Context(), n.link)
	must(n.T, err)
	for _, tag := range slices.Sorted(maps.Keys(lists.ACLs)) {
		for _, r := range lists.ACLs[tag].Rules {
			all = append(all, r.String())
		}
	}
	return append(all, fmt.Sprint(len(lists.Spare), " spare lists, on ", lists.Attached(), " interfaces"))
}

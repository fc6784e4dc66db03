package chaos

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// The simulated cluster has few names and addresses, so that services come back and contest
// addresses.
const (
	thisNode      = "n1"
	otherNode     = "n2"
	namespace     = "ns"
	nodeIP        = "192.168.16.1"
	servicePort   = 80
	endpointPort  = 8080
	serviceNames  = 8
	balancerIPs   = 3
	podsPerNode   = 4
	firstNodePort = 30000

	slicesOfService = 2
)

// service has the simulated fields of a Service.
type service struct {
	created  int64 // its age decides who gets a contested address
	external int   // number of its load-balancer address; -1 = none
	nodePort bool
	local    bool // externalTrafficPolicy Local
	affinity uint32
}

// slice is an EndpointSlice of a service.
type slice struct {
	service   int
	endpoints []netip.Addr // ready
	unready   []netip.Addr
	leaving   []netip.Addr // terminating, and still serving
}

// cluster is the state of the API server. Every change has a version of its own.
type cluster struct {
	services map[int]service
	slices   map[[2]int]slice // by service and number
	zone     string
	version  uint64
	touched  map[int]uint64 // by service: version of its last change
	ended    map[int]bool   // pods of this node that have ended
	ip6      bool           // everything has an IPv6 address, too
	// announces says that VPP answers for load-balancer addresses, which are in a network of VPP.
	announces bool
}

func newCluster() *cluster {
	return &cluster{services: map[int]service{}, slices: map[[2]int]slice{}, zone: "a", touched: map[int]uint64{}, ended: map[int]bool{}}
}

func serviceName(n int) string          { return fmt.Sprint("s", n) }
func serviceKey(n int) string           { return namespace + "/" + serviceName(n) }
func clusterIP(n int) netip.Addr        { return netip.AddrFrom4([4]byte{10, 96, 0, byte(10 + n)}) }
func balancerIP(n int) netip.Addr       { return netip.AddrFrom4([4]byte{203, 0, 113, byte(n)}) }
func podIP(node, n int) netip.Addr      { return netip.AddrFrom4([4]byte{10, 1, byte(node), byte(2 + n)}) }
func nodePort(n int) uint16             { return uint16(firstNodePort + n) }
func isLocal(pod netip.Addr) bool       { return pod.As4()[2] == 1 }
func (k *cluster) changed(n int)        { k.version++; k.touched[n] = k.version }
func (k *cluster) put(n int, s service) { k.services[n] = s; k.changed(n) }

func (k *cluster) remove(n int) {
	if _, found := k.services[n]; found {
		delete(k.services, n)
		k.changed(n)
	}
}

// collect removes the slices of a deleted service, as the garbage collector of Kubernetes does.
func (k *cluster) collect(n int) {
	for i := range slicesOfService {
		k.removeSlice(n, i)
	}
}

// erase removes some services with their slices.
func (k *cluster) erase(r *rand.Rand) {
	for n := range serviceNames {
		if r.IntN(3) == 0 {
			k.remove(n)
			k.collect(n)
		}
	}
}

// ordered are the services that plans change, ordered by name.
func (k *cluster) ordered() iter.Seq2[int, service] {
	return func(yield func(int, service) bool) {
		for n := range serviceNames {
			if s, exists := k.services[n]; exists && !yield(n, s) {
				return
			}
		}
	}
}

func (k *cluster) putSlice(n, i int, endpoints []netip.Addr) {
	k.slices[[2]int{n, i}] = slice{service: n, endpoints: endpoints}
	k.changed(n)
}

func (k *cluster) removeSlice(n, i int) {
	if _, found := k.slices[[2]int{n, i}]; found {
		delete(k.slices, [2]int{n, i})
		k.changed(n)
	}
}

// keys are the keys of all services, ordered.
func (k *cluster) keys() []string {
	var keys []string
	for n := range k.services {
		keys = append(keys, serviceKey(n))
	}
	slices.Sort(keys)
	return keys
}

// objects lists all objects, as the API server does.
func (k *cluster) objects() *normalize.Objects {
	all := &normalize.Objects{Nodes: []*messages.Node{
		{Name: thisNode, Uid: "u1", Zone: k.zone, Addresses: []string{nodeIP}, PodCidrs: []string{"10.1.1.0/24"}},
		{Name: otherNode, Uid: "u2", Zone: "b", Addresses: []string{"192.168.16.2"}, PodCidrs: []string{"10.1.2.0/24"}},
	}}
	if k.announces {
		all.AddressPools = append(all.AddressPools, addressPool())
	}
	for _, n := range slices.Sorted(maps.Keys(k.services)) {
		all.Services = append(all.Services, k.services[n].object(n))
	}
	for _, id := range slices.SortedFunc(maps.Keys(k.slices), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		all.Slices = append(all.Slices, k.slices[id].object(id[1]))
	}
	for i := range podsPerNode + 1 {
		if k.ended[i] {
			continue
		}
		all.Pods = append(all.Pods, &messages.Pod{Namespace: namespace, Name: fmt.Sprint("p", i), Node: thisNode, Addresses: []string{podIP(1, i).String()}})
	}
	if k.ip6 {
		addTwins(all)
	}
	return all
}

func (s service) object(n int) *messages.Service {
	o := &messages.Service{
		Namespace: namespace, Name: serviceName(n), Uid: fmt.Sprint("uid-", n), Created: s.created,
		ClusterIps: []string{clusterIP(n).String()}, IpFamilies: []messages.IPFamily{messages.IPFamily_IPV4},
		Ports:           []*messages.ServicePort{{Name: "http", Protocol: messages.Protocol_TCP, Port: servicePort}},
		AffinitySeconds: s.affinity,
	}
	if s.external >= 0 {
		o.Type, o.LoadBalancer = messages.ServiceType_LOAD_BALANCER, []*messages.LoadBalancerIngress{{Ip: balancerIP(s.external).String()}}
	}
	if s.nodePort {
		o.Type, o.Ports[0].NodePort = messages.ServiceType_NODE_PORT, uint32(nodePort(n))
	}
	if s.local {
		o.ExternalPolicy = messages.TrafficPolicy_POLICY_LOCAL
	}
	return o
}

func (s slice) object(i int) *messages.EndpointSlice {
	o := &messages.EndpointSlice{
		Namespace: namespace, Name: fmt.Sprint(serviceName(s.service), "-", i), Service: serviceName(s.service), Family: messages.IPFamily_IPV4,
		Ports: []*messages.EndpointPort{{Name: "http", Protocol: messages.Protocol_TCP, Port: endpointPort}},
	}
	add := func(all []netip.Addr, ready, leaving bool) {
		for _, a := range all {
			node := otherNode
			if isLocal(a) {
				node = thisNode
			}
			o.Endpoints = append(o.Endpoints, &messages.Endpoint{Address: a.String(), Ready: ready, Serving: ready || leaving, Terminating: leaving, Node: node})
		}
	}
	add(s.endpoints, true, false)
	add(s.unready, false, false)
	add(s.leaving, false, true)
	return o
}

// change is the kind of step that changes the cluster.
const change = "change"

// mutate makes one random change of the cluster.
func (k *cluster) mutate(r *rand.Rand, hot bool) {
	names := serviceNames
	if hot {
		names = 3
	}
	n := r.IntN(names)
	switch r.IntN(10) {
	case 0, 1, 2:
		k.put(n, randomService(r))
	case 3:
		k.remove(n)
		if r.IntN(2) == 0 {
			k.collect(n) // otherwise later, or the service comes back before
		}
	case 4, 5, 6, 7:
		k.putSlice(n, r.IntN(slicesOfService), randomEndpoints(r))
	case 8:
		k.removeSlice(n, r.IntN(slicesOfService))
	case 9:
		k.zone = []string{"a", "b"}[r.IntN(2)]
		k.version++
	}
}

func randomService(r *rand.Rand) service {
	s := service{created: int64(r.IntN(3)), external: r.IntN(2*balancerIPs) - balancerIPs, nodePort: r.IntN(3) == 0}
	s.local = r.IntN(4) == 0
	if r.IntN(5) == 0 {
		s.affinity = 60
	}
	return s
}

func randomEndpoints(r *rand.Rand) []netip.Addr {
	var all []netip.Addr
	for range r.IntN(5) {
		all = append(all, podIP(1+r.IntN(2), r.IntN(podsPerNode)))
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

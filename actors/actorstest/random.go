package actorstest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// Mutate makes one random change of the cluster, with both nodes in it. Names and external
// addresses are few, so that services come back and contend.
func (s *Source) Mutate(r *rand.Rand) {
	n := r.IntN(8)
	name := fmt.Sprint("s", n)
	s.Change(func(store *kube.Store) {
		switch r.IntN(10) {
		case 0, 1, 2:
			store.SetService(randomService(r, name, n), nil)
		case 3:
			store.DeleteService("default/" + name)
		case 4, 5, 6, 7:
			store.SetSlice(randomSlice(r, fmt.Sprint(name, "-", r.IntN(2)), name), nil)
		case 8:
			store.DeleteSlice(fmt.Sprint("default/", name, "-", r.IntN(2)))
		case 9:
			node := probe.ThisNode()
			node.Zone = []string{"a", "b"}[r.IntN(2)]
			node.Addresses = [][]string{{probe.UplinkAddress}, {"172.30.1.1", probe.UplinkAddress}, {"172.30.1.2"}}[r.IntN(3)]
			node.PodCidrs = [][]string{{"10.1.1.0/24"}, {"10.1.0.0/16"}}[r.IntN(2)]
			store.SetNode(node, nil)
			store.SetNode(probe.Peer([]string{"192.168.16.2", "203.0.113.2"}[r.IntN(2)]), nil)
		}
	})
}

// externalAddresses are few. One of them may belong to a host, one belongs to a node at times, and
// one to the peer at times.
var externalAddresses = []string{"203.0.113.0", "203.0.113.1", "203.0.113.2", "192.168.16.50", "172.30.1.1"}

func randomService(r *rand.Rand, name string, n int) *messages.Service {
	s := probe.Service(name, fmt.Sprint("10.96.0.", 10+n))
	s.Created = int64(r.IntN(3))
	if r.IntN(2) == 0 {
		s.ExternalIps = []string{externalAddresses[r.IntN(len(externalAddresses))]}
	}
	if r.IntN(3) == 0 {
		s.Type = messages.ServiceType_NODE_PORT
		s.Ports[0].NodePort = uint32(30000 + n)
	}
	if r.IntN(4) == 0 {
		s.ExternalPolicy = messages.TrafficPolicy_POLICY_LOCAL
	}
	if r.IntN(5) == 0 {
		s.AffinitySeconds = 60
	}
	if r.IntN(3) == 0 {
		s.Type = messages.ServiceType_LOAD_BALANCER
		s.LoadBalancer = []*messages.LoadBalancerIngress{{Ip: fmt.Sprint("203.0.113.", r.IntN(3))}}
		s.SourceRanges = [][]string{nil, {"192.0.2.0/24"}, {"10.0.0.0/8", "198.51.100.0/24"}, {"0.0.0.0/0"}}[r.IntN(4)]
	}
	return s
}

func randomSlice(r *rand.Rand, name, service string) *messages.EndpointSlice {
	var addresses []string
	for range r.IntN(4) {
		addresses = append(addresses, fmt.Sprintf("10.1.%d.%d", 1+r.IntN(2), 2+r.IntN(4)))
	}
	slices.Sort(addresses)
	s := probe.Slice(service, slices.Compact(addresses)...)
	s.Name = name
	return s
}

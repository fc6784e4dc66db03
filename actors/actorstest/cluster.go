package actorstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// Source is a cluster in memory and the kube.Source that reads it. Except in Hold, it keeps the
// contract of kube.Source. It outlives the processes that read it: a later Run delivers the changes
// made meanwhile.
type Source struct {
	wake chan struct{}           // of capacity one: Run has to deliver everything
	park func(ready func() bool) // lets Run wait in virtual time; nil = on the channel

	mu      sync.Mutex // held while the sink is called, which does not block
	store   *kube.Store
	sink    kube.Sink // of the present run; nil = no run
	held    string    // why the cluster cannot be seen; "" = it can
	partial bool      // an incomplete list is delivered
	listed  bool      // the sink has everything
	missed  bool      // a Snapshot was asked for while the cluster could not be seen
	told    bool      // the sink knows the health
}

var _ kube.Source = (*Source)(nil)

// NewSource returns the source of a node in an empty cluster.
func NewSource(node string) *Source {
	return &Source{store: kube.NewStore(node), wake: make(chan struct{}, 1)}
}

// Run satisfies kube.Source.
func (s *Source) Run(ctx context.Context, sink kube.Sink) error {
	select {
	case <-s.wake: // the first Snapshot is the answer to every earlier Refresh
	default:
	}
	s.locked(func() {
		s.sink, s.told, s.listed = sink, false, false
		s.deliver()
	})
	defer s.locked(func() { s.sink = nil })
	for s.wait(ctx) {
		s.locked(s.deliver)
	}
	return nil
}

// wait waits until a delivery is due; false = the context has ended.
func (s *Source) wait(ctx context.Context) bool {
	if s.park != nil {
		s.park(func() bool { return ctx.Err() != nil || len(s.wake) > 0 })
	}
	select {
	case <-ctx.Done():
		return false
	case <-s.wake:
		return true
	}
}

// deliver delivers everything to the sink. The lock is held.
func (s *Source) deliver() {
	switch {
	case s.held == "":
		s.store.Commit()
		s.sink.Snapshot(s.store.Snapshot())
		s.listed, s.missed = true, false
	case s.partial && !s.listed:
		s.store.Commit()
		incomplete := s.store.Snapshot()
		incomplete.Complete = false
		s.sink.Snapshot(incomplete)
	default:
		s.missed = true
	}
	s.tell()
}

// tell sends the sink the health, once. The lock is held.
func (s *Source) tell() {
	if !s.told {
		s.told = true
		s.sink.Health(kube.Health{OK: s.held == "", Reason: s.held})
	}
}

// Refresh satisfies kube.Source.
func (s *Source) Refresh() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Change changes the cluster. When it returns, the changes have been delivered, unless the source
// is held.
func (s *Source) Change(change func(*kube.Store)) {
	s.locked(func() {
		change(s.store)
		if s.sink != nil && s.held != "" {
			return
		}
		if changes := s.store.Commit(); s.sink != nil {
			changes.Deliver(s.sink)
		}
	})
}

// Hold begins an outage: the listener gets the reason, and no changes until Release. With partial,
// the next Run delivers an incomplete list, which only the mirror may do in production.
func (s *Source) Hold(reason string, partial bool) {
	s.locked(func() {
		s.told = s.told && s.held != "" // an outage is reported once
		s.held, s.partial = reason, partial
		if s.sink != nil {
			s.tell()
		}
	})
}

// Release ends the outage. A listener that had everything before gets the changes made meanwhile,
// another one gets everything.
func (s *Source) Release() {
	s.locked(func() {
		s.told = s.told && s.held == ""
		s.held = ""
		if s.sink != nil && s.listed && !s.missed {
			s.store.Commit().Deliver(s.sink)
			s.tell()
			return
		}
		s.Refresh()
	})
}

// Snapshot is the cluster as it was given out last.
func (s *Source) Snapshot() (snapshot *messages.Snapshot) {
	s.locked(func() { snapshot = s.store.Snapshot() })
	return snapshot
}

// Services are the inputs of all services that exist, by key, as they were given out last.
func (s *Source) Services() map[string]*messages.ServiceInput {
	inputs := map[string]*messages.ServiceInput{}
	for _, in := range s.Snapshot().GetServices() {
		if in.GetService() != nil {
			inputs[in.GetKey()] = in
		}
	}
	return inputs
}

func (s *Source) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// Serving are the settings of a cluster with one service network.
func Serving() service.Config {
	return service.Config{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}
}

// Serve adds a Service with endpoints to the cluster.
func (s *Source) Serve(name, ip string, addresses ...string) {
	s.Change(func(store *kube.Store) {
		store.Set(probe.Service(name, ip), nil)
		store.Set(probe.Slice(name, addresses...), nil)
	})
}

// Apply puts objects into the cluster.
func (s *Source) Apply(o *normalize.Objects) {
	s.Change(func(store *kube.Store) {
		for _, one := range o.Nodes {
			store.Set(one, nil)
		}
		for _, one := range o.Pods {
			store.Set(one, nil)
		}
		for _, one := range o.Services {
			store.Set(one, nil)
		}
		for _, one := range o.Slices {
			store.Set(one, nil)
		}
	})
}

// furnish puts the node and its pods into the cluster.
func (s *Source) furnish(ip6 bool) {
	o := &normalize.Objects{Nodes: []*messages.Node{probe.ThisNode()}}
	if ip6 {
		o.Nodes[0] = probe.DualNode()
	}
	for i := 2; i <= 5; i++ {
		o.Pods = append(o.Pods, probe.Pod(fmt.Sprint("p", i), fmt.Sprint("10.1.1.", i)))
	}
	s.Apply(o)
}

// Mutate makes one random change of the cluster, with both nodes in it. Names and external
// addresses are few, so that services come back and contend.
func (s *Source) Mutate(r *rand.Rand) {
	n := r.IntN(8)
	name := fmt.Sprint("s", n)
	s.Change(func(store *kube.Store) {
		switch r.IntN(10) {
		case 0, 1, 2:
			store.Set(randomService(r, name, n), nil)
		case 3:
			store.Delete(normalize.KindService, "default/"+name)
		case 4, 5, 6, 7:
			store.Set(randomSlice(r, fmt.Sprint(name, "-", r.IntN(2)), name), nil)
		case 8:
			store.Delete(normalize.KindEndpointSlice, fmt.Sprint("default/", name, "-", r.IntN(2)))
		case 9:
			node := probe.ThisNode()
			node.Zone = []string{"a", "b"}[r.IntN(2)]
			node.Addresses = [][]string{{probe.UplinkAddress}, {"172.30.1.1", probe.UplinkAddress}, {"172.30.1.2"}}[r.IntN(3)]
			node.PodCidrs = [][]string{{"10.1.1.0/24"}, {"10.1.0.0/16"}}[r.IntN(2)]
			store.Set(node, nil)
			store.Set(probe.Peer([]string{"192.168.16.2", "203.0.113.2"}[r.IntN(2)]), nil)
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

// nodeSync is a node sync that gives the node an ID at once. It can be run again, but not twice at
// a time.
type nodeSync struct {
	park    func(ready func() bool)
	running bool
}

func (n *nodeSync) Run(ctx context.Context, out func(*messages.ClusterState)) error {
	if n.running {
		return errTwice
	}
	n.running = true
	defer func() { n.running = false }()
	out(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 1})
	n.park(func() bool { return ctx.Err() != nil })
	return nil
}

func (*nodeSync) SetNodes(*messages.NodeInput) {}

func (*nodeSync) Publish([]string) {}

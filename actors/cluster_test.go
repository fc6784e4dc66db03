package actors

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// apiServer is what an API server knows. Sources watch it.
type apiServer struct {
	mu       sync.Mutex
	services map[string]*messages.Service
	slices   map[string]*messages.EndpointSlice
	node     *messages.Node
	peer     *messages.Node
	watchers map[*watcher]bool
}

func newAPIServer() *apiServer {
	return &apiServer{
		services: map[string]*messages.Service{}, slices: map[string]*messages.EndpointSlice{}, node: testNodeObject(), peer: peerNode("192.168.16.2"),
		watchers: map[*watcher]bool{},
	}
}

func peerNode(address string) *messages.Node {
	return &messages.Node{Name: "n2", Uid: "u2", Zone: "b", Addresses: []string{address}, PodCidrs: []string{"10.1.2.0/24"}}
}

// change changes the cluster and tells the sources.
func (k *apiServer) change(fn func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn()
	for w := range k.watchers {
		poke(w.changed)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// objects lists everything.
func (k *apiServer) objects() *normalize.Objects {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := &normalize.Objects{Nodes: []*messages.Node{k.node, k.peer}}
	for _, key := range sortedKeys(k.services) {
		all.Services = append(all.Services, k.services[key])
	}
	for _, key := range sortedKeys(k.slices) {
		all.Slices = append(all.Slices, k.slices[key])
	}
	for i := 2; i <= 5; i++ {
		all.Pods = append(all.Pods, &messages.Pod{Namespace: "ns", Name: fmt.Sprint("p", i), Node: testNode, Addresses: []string{fmt.Sprint("10.1.1.", i)}})
	}
	return all
}

// watcher is a source on an apiServer. Each run counts its generations from 1.
type watcher struct {
	cluster          *apiServer
	store            atomic.Pointer[kube.Store]
	changed, refresh chan struct{}
}

func (k *apiServer) source() *watcher {
	w := &watcher{cluster: k, changed: make(chan struct{}, 1), refresh: make(chan struct{}, 1)}
	w.store.Store(kube.NewStore(testNode))
	k.watchers[w] = true
	return w
}

// Run satisfies kube.Source.
func (w *watcher) Run(ctx context.Context, sink kube.Sink) error {
	store := kube.NewStore(testNode)
	store.Replace(w.cluster.objects(), nil)
	store.Commit()
	w.store.Store(store)
	sink.Snapshot(store.Snapshot())
	sink.Health(true, "")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.changed:
			store.Replace(w.cluster.objects(), nil)
			store.Commit().Deliver(sink)
		case <-w.refresh:
			sink.Snapshot(store.Snapshot())
		}
	}
}

// Refresh satisfies kube.Source.
func (w *watcher) Refresh() { poke(w.refresh) }

// Digest satisfies kube.Digester.
func (w *watcher) Digest() *messages.Digest { return w.store.Load().Digest() }

// mutate makes one random change. Names and external addresses are few, so that services come back and fight.
func (k *apiServer) mutate(r *rand.Rand) {
	n := r.IntN(8)
	name := fmt.Sprint("s", n)
	key := "ns/" + name
	k.change(func() {
		switch r.IntN(10) {
		case 0, 1, 2:
			k.services[key] = randomService(r, name, n)
		case 3:
			delete(k.services, key)
		case 4, 5, 6, 7:
			slice := fmt.Sprint(name, "-", r.IntN(2))
			k.slices["ns/"+slice] = randomSlice(r, slice, name)
		case 8:
			delete(k.slices, fmt.Sprint("ns/", name, "-", r.IntN(2)))
		case 9:
			node := testNodeObject()
			node.Zone = []string{"a", "b"}[r.IntN(2)]
			node.Addresses = [][]string{{"192.168.16.1"}, {"172.30.1.1", "192.168.16.1"}, {"172.30.1.2"}}[r.IntN(3)]
			node.PodCidrs = [][]string{{"10.1.1.0/24"}, {"10.1.0.0/16"}}[r.IntN(2)]
			k.node, k.peer = node, peerNode([]string{"192.168.16.2", "203.0.113.2"}[r.IntN(2)])
		}
	})
}

// externalAddresses are few; among them one that may be that of a host, one that nodes have at times, and one that the peer has at times.
var externalAddresses = []string{"203.0.113.0", "203.0.113.1", "203.0.113.2", "192.168.16.50", "172.30.1.1"}

func randomService(r *rand.Rand, name string, n int) *messages.Service {
	s := testService(name, fmt.Sprint("10.96.0.", 10+n))
	s.Namespace, s.Created = "ns", int64(r.IntN(3))
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
	s := testSlice(service, slices.Compact(addresses)...)
	s.Namespace, s.Name = "ns", name
	return s
}

// views resolves every service by itself.
func (k *apiServer) views(d *Deps) []*messages.ServiceView {
	snapshot := kube.Collect(testNode, k.objects(), nil)
	node := snapshot.GetNode().GetSelf()
	addresses := slices.Clone(node.GetAddresses())
	if !slices.Contains(addresses, uplinkAddress) {
		addresses = append(addresses, uplinkAddress)
	}
	var views []*messages.ServiceView
	for _, in := range snapshot.GetServices() {
		if in.GetService() != nil {
			views = append(views, service.Resolve(in, &messages.NodeContext{Node: node, Addresses: addresses}, d.Serving))
		}
	}
	return views
}

// uplinkAddress is what the uplink of the simulated VPP has.
const uplinkAddress = "192.168.16.1"

// refusals computes from scratch which routes VPP has to hold: the service networks, cluster IPs of which something is refused or, else,
// dropped, and external addresses of which something is refused and nothing dropped. Nothing for addresses of nodes, and what may be the
// address of a host gives way to it.
func (k *apiServer) refusals(d *Deps) map[netip.Prefix]routes.Route {
	want := map[netip.Prefix]routes.Route{}
	for _, network := range d.Serving.ServiceCIDRs {
		want[network] = routes.Route{Kind: routes.Reject, Rank: routes.Firm}
	}
	type wishes struct{ reject, drop, external bool }
	all := map[string]wishes{}
	for _, view := range k.views(d) {
		for _, f := range view.GetFrontends() {
			if f.GetScope() != messages.Scope_SCOPE_CLUSTER && f.GetScope() != messages.Scope_SCOPE_EXTERNAL {
				continue
			}
			w := all[f.GetAddress()]
			w.reject = w.reject || f.GetAction() == messages.Action_ACTION_REJECT
			w.drop = w.drop || f.GetAction() == messages.Action_ACTION_DROP
			w.external = f.GetScope() == messages.Scope_SCOPE_EXTERNAL // in these clusters an address is either
			all[f.GetAddress()] = w
		}
	}
	k.mu.Lock()
	hosts := slices.Concat([]string{uplinkAddress}, k.node.GetAddresses(), k.peer.GetAddresses())
	k.mu.Unlock()
	uplink := netip.MustParsePrefix(uplinkAddress + "/24")
	for address, w := range all {
		addr := netip.MustParseAddr(address)
		route := routes.Route{Kind: routes.Reject, Rank: routes.Firm}
		switch {
		case slices.Contains(hosts, address), !w.reject && !w.drop, w.external && w.drop:
			continue
		case !w.reject:
			route.Kind = routes.Drop
		case w.external && uplink.Contains(addr):
			route.Rank = routes.Yielding
		}
		want[netip.PrefixFrom(addr, 32)] = route
	}
	return want
}

// reference computes from scratch what VPP has to hold: every service resolved and planned by itself, a contested row given to the service
// that was created first, then to the smaller key, and none where somebody else has one. The rules are about the frontends that nobody else
// owns.
func (k *apiServer) reference(d *Deps, foreign map[frontend.Key]bool) (map[frontend.Key]nat44.Row, []acl.Rule) {
	type owner struct {
		created int64
		key     string
	}
	owners, rows := map[frontend.Key]owner{}, map[frontend.Key]nat44.Row{}
	rules := map[string][]acl.Rule{}
	config := d.NAT44
	config.Guarded = true
	for _, view := range k.views(d) {
		rules[view.GetKey()] = acl.Plan(view, acl.Config{}).Rules
		for _, row := range nat44.Plan(view, config).Rows {
			mine, other := owner{view.GetCreated(), view.GetKey()}, owners[row.Key]
			taken := other.key != "" && (other.created < mine.created || other.created == mine.created && other.key < mine.key)
			if !taken && !foreign[row.Key] {
				owners[row.Key], rows[row.Key] = mine, row
			}
		}
	}
	var counting []acl.Rule
	for key, own := range rules {
		for _, rule := range own {
			if owner, owned := owners[rule.Key()]; !foreign[rule.Key()] && (!owned || owner.key == key) {
				counting = append(counting, rule)
			}
		}
	}
	return rows, counting
}

// thisNode is this node as it is now.
func (k *apiServer) thisNode() *messages.Node {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.node
}

// existing are the keys of the services.
func (k *apiServer) existing() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.services))
}

package desired

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	webKey = "default/web"
	dbKey  = "default/db"
)

// stage has one actor of this package in a tree of probes.
type stage struct {
	*probe.Stage
	config *Config
	feed   *fakeFeed
	sync   *fakeSync
}

// perform plays with the actor at a path; each of the services has a probe of its own.
func perform(t *testing.T, path string, services []string, play func(s *stage)) {
	t.Helper()
	s := &stage{Stage: probe.New(t), feed: &fakeFeed{store: kube.NewStore(probe.Node)}}
	s.sync = &fakeSync{park: s.Sim.Park}
	s.config = &Config{
		NodeName: probe.Node, Feed: s.feed, Renderers: probe.Renderers, NodeSync: s.sync, NodeSyncRuns: runtime.NewExclusive(s.Sim.Park), Observer: report.None{},
		Staleness: time.Minute,
	}
	actors := map[string]func() runtime.Behaviour{
		address.Registry: func() runtime.Behaviour { return NewRegistry(s.config) },
		address.Nodes:    func() runtime.Behaviour { return NewNodes(s.config) },
	}
	if key, is := address.ServiceKey(path); is {
		actors[path] = func() runtime.Behaviour { return NewService(s.config, key) }
	}
	s.Start(path, probe.Actors{path: actors[path]}, services...)
	play(s)
}

// health is the last report of a part.
func (s *stage) health(part string) (last *messages.Health) {
	for _, h := range probe.All[*messages.Health](s.Stage, address.Healer) {
		if h.GetPart() == part {
			last = h
		}
	}
	return last
}

// spec is the last spec that a service was given.
func (s *stage) spec(key string) *messages.ServiceSpec {
	return probe.Latest[*messages.ServiceSpec](s.Stage, address.Service(key))
}

// begin is the last list that the renderer of rows was given.
func (s *stage) begin() *messages.Begin {
	return probe.Latest[*messages.Begin](s.Stage, address.Renderer("nat44"))
}

// fakeFeed is a feed whose deliveries the test decides. A listener gets a Snapshot when the test
// says so.
type fakeFeed struct {
	store             *kube.Store
	sink              kube.Sink // nil = no actor listens
	listened, refresh int
}

func (f *fakeFeed) Listen(sink kube.Sink) (leave func()) {
	f.listened++
	turn := f.listened
	f.sink = sink
	return func() {
		if f.listened == turn {
			f.sink = nil
		}
	}
}

func (f *fakeFeed) Refresh() { f.refresh++ }

// change changes the cluster and delivers it as changes.
func (f *fakeFeed) change(fn func(*kube.Store)) {
	fn(f.store)
	f.store.Commit().Deliver(f.sink)
}

// fakeSync is a node sync whose results the test decides.
type fakeSync struct {
	park      func(ready func() bool)
	states    []*messages.ClusterState // to be reported
	fails     bool
	runs      int
	nodes     *messages.NodeInput
	published [][]string
}

func (f *fakeSync) Run(ctx context.Context, out func(*messages.ClusterState)) error {
	f.runs++
	for {
		f.park(func() bool { return ctx.Err() != nil || f.fails || len(f.states) > 0 })
		switch {
		case ctx.Err() != nil:
			return nil
		case f.fails:
			f.fails = false
			return errors.New("gave up")
		}
		out(f.states[0])
		f.states = f.states[1:]
	}
}

func (f *fakeSync) SetNodes(n *messages.NodeInput) { f.nodes = n }

func (f *fakeSync) Publish(addresses []string) { f.published = append(f.published, addresses) }

// testNodeInput is what Kubernetes says of this node.
func testNodeInput(generation uint64) *messages.NodeInput {
	return &messages.NodeInput{Self: probe.ThisNode(), Nodes: map[string]*messages.Node{probe.Node: probe.ThisNode()}, Generation: generation}
}

// testInput is the input of a service with endpoints.
func testInput(name, ip string, generation uint64, addresses ...string) *messages.ServiceInput {
	return &messages.ServiceInput{
		Key: "default/" + name, Service: probe.Service(name, ip), Slices: []*messages.EndpointSlice{probe.Slice(name, addresses...)},
		Generation: generation,
	}
}

// snapshotOf is a complete list with this node.
func snapshotOf(generation uint64, services ...*messages.ServiceInput) *messages.Snapshot {
	return &messages.Snapshot{Services: services, Node: testNodeInput(1), Complete: true, Generation: generation}
}

// changedTo is a change of one service.
func changedTo(in *messages.ServiceInput) *messages.ServiceChanged {
	return &messages.ServiceChanged{Input: in}
}

// goneSince is the input of a service that is not there any more.
func goneSince(key string, generation uint64) *messages.ServiceInput {
	return &messages.ServiceInput{Key: key, Generation: generation}
}

// interfacesWith is the interface set of a VPP whose uplink has an address.
func interfacesWith(address string) *messages.InterfaceSet {
	return &messages.InterfaceSet{Generation: 1, NodeAddresses: []string{address}, Complete: true}
}

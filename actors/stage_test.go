package actors

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// stage is a small system in virtual time: one actor plays itself, everybody else of the tree is an extra who remembers what he was told.
type stage struct {
	*testing.T
	deps   *Deps
	source *fakeSource
	wire   *wire
	sync   *fakeSync
	sim    *runtime.Sim
	sys    *runtime.System
	path   string           // of the one that plays itself
	heard  map[string][]any // by path of the extra, oldest first
	faults []*messages.Fault
}

// perform sets the stage and plays: the actor at path is real. The services get extras of their own.
func perform(t *testing.T, path string, services []string, play func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, path: path, heard: map[string][]any{}, source: newFakeSource(), wire: newWire(), sync: newFakeSync()}
		s.deps = &Deps{
			NodeName: testNode, Source: s.source, Link: s.wire, NAT44: nat44.Config{Node: testNode, Pads: true}, Readiness: &Readiness{},
			NodeSync: s.sync, Log: slog.New(slog.DiscardHandler),
		}
		s.deps.prepare()
		s.sim = runtime.NewSim(runtime.SimOptions{Seed: 1, Bubble: true, StepLimit: 1_000_000})
		o := s.sim.Options()
		o.Go = func(_, _ string, run func()) { go run() }
		o.OnFault = func(f *messages.Fault) { s.faults = append(s.faults, f) }
		s.sys = runtime.NewSystem(o)
		if _, err := s.sys.SpawnRoot(RootName, s.cast(services)); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.sys.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			_ = s.wire.vpp.Close()
		}()
		s.run(100 * time.Millisecond)
		play(s)
	})
}

// cast is the tree with extras in it.
func (s *stage) cast(services []string) runtime.Spec {
	parts := map[string]func() runtime.Behaviour{
		PathJournal: newJournal, PathIntrospect: func() runtime.Behaviour { return newIntrospect(s.deps) },
		PathHealer: func() runtime.Behaviour { return &healer{deps: s.deps} }, PathLink: func() runtime.Behaviour { return newLink(s.deps) },
		PathInterfaces:         func() runtime.Behaviour { return newInterfaces(s.deps) },
		PathRenderer("nat44"):  func() runtime.Behaviour { return newRenderer(s.deps) },
		PathRenderer("routes"): func() runtime.Behaviour { return newRefuser(s.deps) },
		PathAudit:              func() runtime.Behaviour { return newAudit(s.deps) },
		PathSessions:           func() runtime.Behaviour { return newSessionKeeper(s.deps) },
		PathRegistry:           func() runtime.Behaviour { return newRegistry(s.deps) },
		PathExternal:           func() runtime.Behaviour { return newExternal(s.deps) },
		PathNodes:              func() runtime.Behaviour { return newNodes(s.deps) },
		PathWatch:              func() runtime.Behaviour { return newWatch(s.deps) },
	}
	child := func(path string) runtime.Child {
		spec := runtime.Spec{Kind: "extra", New: func() runtime.Behaviour { return &extra{s, path} }}
		if path == s.path {
			spec = runtime.Spec{Kind: "real", New: parts[path]}
		}
		name := runtime.UnescapeName(path[strings.LastIndexByte(path, '/')+1:])
		return runtime.Child{Name: name, Spec: spec, Reaction: runtime.ReactNone}
	}
	group := func(name string, children ...runtime.Child) runtime.Child {
		return runtime.Child{Name: name, Spec: runtime.Ordered(name, children, runtime.Policy{}), Reaction: runtime.ReactNone}
	}
	var members []runtime.Child
	for _, key := range services {
		c := child(PathService(key))
		if PathService(key) == s.path {
			c.Spec.New = func() runtime.Behaviour { return readyAtOnce{newService(s.deps, key)} }
		}
		members = append(members, c)
	}
	servicesChild := child(PathServices)
	if len(members) > 0 {
		servicesChild = group("services", members...)
	}
	return runtime.Ordered("root", []runtime.Child{
		child(PathJournal), child(PathIntrospect), child(PathHealer),
		group("dataplane", child(PathLink), child(PathInterfaces), child(PathRenderer("nat44")), child(PathRenderer("routes")), child(PathAudit),
			group("upkeep", child(PathSessions))),
		group("world", child(PathRegistry), child(PathNodes), servicesChild, child(PathWatch), child(PathExternal)),
	}, runtime.Policy{})
}

// readyAtOnce lets a service, which has a spawner otherwise, be a child of an ordered group.
type readyAtOnce struct{ runtime.Behaviour }

func (r readyAtOnce) Start(c *runtime.Context) {
	r.Behaviour.Start(c)
	c.Ready()
}

// extra stands in for an actor.
type extra struct {
	stage *stage
	path  string
}

func (e *extra) Start(c *runtime.Context) { c.Ready() }

func (e *extra) Receive(_ *runtime.Context, msg any) {
	e.stage.heard[e.path] = append(e.stage.heard[e.path], msg)
}

func (*extra) Stop(*runtime.Context) {}

// run lets virtual time pass.
func (s *stage) run(d time.Duration) {
	s.Helper()
	synctest.Wait() // goroutines of the actors come to rest before the simulation moves, and before anybody looks at them
	if err := s.sim.RunFor(d); err != nil {
		s.Fatal(err)
	}
	synctest.Wait()
}

// tell sends messages to the actor that plays itself and lets everybody come to rest.
func (s *stage) tell(msgs ...any) {
	s.Helper()
	for _, m := range msgs {
		s.sys.Send(s.sys.PID(s.path), m)
	}
	s.run(time.Millisecond)
}

// ask is a question from outside.
func (s *stage) ask(question any) any {
	s.Helper()
	answer, err := s.sys.Ask(context.Background(), s.path, question)
	if err != nil {
		s.Fatal(err)
	}
	return answer
}

// kill makes the actor fail and waits until its successor runs.
func (s *stage) kill() {
	s.Helper()
	if err := s.sys.Kill(s.path); err != nil {
		s.Fatal(err)
	}
	s.run(100 * time.Millisecond)
}

// forget forgets what was heard so far.
func (s *stage) forget() { clear(s.heard) }

// all are the messages of a type that somebody has heard, oldest first.
func all[M any](s *stage, path string) []M {
	var found []M
	for _, msg := range s.heard[path] {
		if m, ok := msg.(M); ok {
			found = append(found, m)
		}
	}
	return found
}

// latest is the last message of a type that somebody has heard; the zero value if there was none.
func latest[M any](s *stage, path string) (m M) {
	if found := all[M](s, path); len(found) > 0 {
		m = found[len(found)-1]
	}
	return m
}

// fakeSource is a source whose lines the test speaks. Like the real ones it delivers a snapshot first.
type fakeSource struct {
	lines   chan func(kube.Sink)
	store   *kube.Store
	runs    int
	refresh int
	digest  *messages.Digest // nil = what was delivered
}

func newFakeSource() *fakeSource {
	return &fakeSource{lines: make(chan func(kube.Sink), 1024), store: kube.NewStore(testNode)}
}

// Run satisfies kube.Source.
func (f *fakeSource) Run(ctx context.Context, sink kube.Sink) error {
	f.runs++
	for {
		select {
		case <-ctx.Done():
			return nil
		case line := <-f.lines:
			if line == nil {
				return fmt.Errorf("gave up")
			}
			line(sink)
		}
	}
}

// Refresh satisfies kube.Source.
func (f *fakeSource) Refresh() { f.refresh++ }

// Digest satisfies kube.Digester.
func (f *fakeSource) Digest() *messages.Digest {
	if f.digest != nil {
		return f.digest
	}
	return f.store.Digest()
}

// change changes the cluster and delivers it as changes.
func (f *fakeSource) change(fn func(*kube.Store)) {
	fn(f.store)
	changes := f.store.Commit()
	f.lines <- func(sink kube.Sink) { changes.Deliver(sink) }
}

// snapshot delivers everything.
func (f *fakeSource) snapshot() {
	snapshot := f.store.Snapshot()
	f.lines <- func(sink kube.Sink) { sink.Snapshot(snapshot) }
}

// fakeSync is a node sync whose results the test decides.
type fakeSync struct {
	states    chan *messages.ClusterState
	runs      int
	nodes     *messages.NodeInput
	published [][]string
}

func newFakeSync() *fakeSync { return &fakeSync{states: make(chan *messages.ClusterState, 16)} }

// Run satisfies NodeSync.
func (f *fakeSync) Run(ctx context.Context, out func(*messages.ClusterState)) error {
	f.runs++
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-f.states:
			if s == nil {
				return fmt.Errorf("gave up")
			}
			out(s)
		}
	}
}

// SetNodes satisfies NodeSync.
func (f *fakeSync) SetNodes(n *messages.NodeInput) { f.nodes = n }

// Publish satisfies NodeSync.
func (f *fakeSync) Publish(addresses []string) { f.published = append(f.published, addresses) }

// testService is a Service with one TCP port 80.
func testService(name, ip string) *messages.Service {
	return &messages.Service{
		Namespace: "default", Name: name, Uid: "uid-" + name, Created: 1, ClusterIps: []string{ip}, IpFamilies: []messages.IPFamily{messages.IPFamily_IPV4},
		Ports: []*messages.ServicePort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 80}},
	}
}

// testSlice is an EndpointSlice of ready endpoints on port 8080; 10.1.1.x are on this node.
func testSlice(service string, addresses ...string) *messages.EndpointSlice {
	s := &messages.EndpointSlice{
		Namespace: "default", Name: service + "-1", Service: service, Family: messages.IPFamily_IPV4,
		Ports: []*messages.EndpointPort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 8080}},
	}
	for _, a := range addresses {
		node := "n2"
		if strings.HasPrefix(a, "10.1.1.") {
			node = testNode
		}
		s.Endpoints = append(s.Endpoints, &messages.Endpoint{Address: a, Ready: true, Serving: true, Node: node})
	}
	return s
}

// testNodeObject is this node.
func testNodeObject() *messages.Node {
	return &messages.Node{Name: testNode, Uid: "u1", Zone: "a", Addresses: []string{"192.168.16.1"}, PodCidrs: []string{"10.1.1.0/24"}}
}

// testNodeInput is what Kubernetes says of this node.
func testNodeInput(generation uint64) *messages.NodeInput {
	return &messages.NodeInput{Self: testNodeObject(), Nodes: map[string]*messages.Node{testNode: testNodeObject()}, Generation: generation}
}

// testInput is the input of a service with endpoints.
func testInput(name, ip string, generation uint64, addresses ...string) *messages.ServiceInput {
	return &messages.ServiceInput{
		Key: "default/" + name, Service: testService(name, ip), Slices: []*messages.EndpointSlice{testSlice(name, addresses...)},
		Generation: generation,
	}
}

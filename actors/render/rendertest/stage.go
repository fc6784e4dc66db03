package rendertest

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Renderer is the one that is real.
type Renderer struct {
	// Name is that of its Kind.
	Name string
	// New returns an incarnation of it.
	New func(config *render.Config) runtime.Behaviour
	// View is a service that wants one object for each address.
	View func(key string, created int64, addresses ...string) *messages.ServiceView
}

// Adapted is the renderer of an adapter.
func Adapted[K render.Key, C any](
	adapter func(C) render.Adapter[K], settings C, view func(key string, created int64, addresses ...string) *messages.ServiceView,
) Renderer {
	return Renderer{
		adapter(settings).Kind().Name, func(config *render.Config) runtime.Behaviour { return render.New(config, adapter(settings)) }, view,
	}
}

// Stage is a small system: one renderer plays itself.
type Stage struct {
	*testing.T
	// Renderer is the one that plays itself.
	Renderer
	// VPP is at the other end of the connection.
	VPP *Wire
	// Config is that of the renderer.
	Config *render.Config
	// Observed is what the renderer counts.
	Observed Observed
	// Sim is the virtual time.
	Sim *runtime.Sim
	// Before is called instead of handing a message to the renderer, which it does by calling handle; nil = it is handed over.
	Before func(msg any, handle func(msg any))

	sys   *runtime.System
	heard map[string][]any // by path of the extra, oldest first

	incarnations int // of the renderer so far
}

// RoundTrip is how long VPP takes for a read or a batch. Messages between actors take no time, so extras hear everything that was sent before the answer.
const RoundTrip = 20 * time.Microsecond

// Play runs a test on a stage with these services. VPP is connected and its interfaces are known, as the sibling actors would report them.
func Play(t *testing.T, r Renderer, services []string, play func(s *Stage)) {
	t.Helper()
	s := &Stage{T: t, Renderer: r, heard: map[string][]any{}, Sim: runtime.NewSim(runtime.SimOptions{Seed: 1, StepLimit: 2_000_000})}
	s.VPP = newWire(s.Sim.Now)
	s.Config = &render.Config{
		VPP: s.VPP, Observer: &s.Observed, Tick: 900 * time.Millisecond, Backoff: time.Second, DriftCheckOverdue: time.Minute,
	}
	o := s.Sim.Options()
	o.Go = func(path, name string, run func()) { s.Sim.AfterFunc(RoundTrip, func() { s.Sim.Go(path, name, run) }) }
	s.sys = runtime.NewSystem(o)
	if _, err := s.sys.SpawnRoot(address.RootName, s.cast(services)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.sys.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		_ = s.VPP.VPP.Close()
	}()
	s.Run(100 * time.Millisecond)
	s.Connected()
	s.Found(1)
	play(s)
}

// Path is that of the renderer.
func (s *Stage) Path() string { return address.Renderer(s.Name) }

// cast is the tree with extras in it.
func (s *Stage) cast(services []string) runtime.Spec {
	child := func(path string) runtime.Child {
		spec := runtime.Spec{Kind: "extra", New: func() runtime.Behaviour { return &extra{s, path} }}
		if path == s.Path() {
			spec = runtime.Spec{Kind: "renderer", New: func() runtime.Behaviour {
				s.incarnations++
				return &watched{s.New(s.Config), s}
			}}
		}
		name := runtime.UnescapeName(path[strings.LastIndexByte(path, '/')+1:])
		return runtime.Child{Name: name, Spec: spec, Reaction: runtime.ReactNone}
	}
	group := func(name string, children ...runtime.Child) runtime.Child {
		return runtime.Child{Name: name, Spec: runtime.Ordered(name, children, runtime.Policy{}), Reaction: runtime.ReactNone}
	}
	var members []runtime.Child
	for _, key := range services {
		members = append(members, child(address.Service(key)))
	}
	world := []runtime.Child{child(address.Registry), child(address.External)}
	if len(members) > 0 {
		world = append(world, group("services", members...))
	}
	return runtime.Ordered("root", []runtime.Child{
		child(address.Journal), child(address.Introspect), child(address.Healer),
		group("dataplane", child(address.Link), child(address.Interfaces), child(s.Path()), child(address.Audit)), group("world", world...),
	}, runtime.Policy{})
}

// watched is the renderer, whose messages the test may change.
type watched struct {
	runtime.Behaviour
	stage *Stage
}

// later is a message that was held back.
type later struct{ msg any }

// Receive satisfies runtime.Behaviour.
func (w *watched) Receive(c *runtime.Context, msg any) {
	if l, ok := msg.(*later); ok {
		w.Behaviour.Receive(c, l.msg)
		return
	}
	if w.stage.Before == nil {
		w.Behaviour.Receive(c, msg)
		return
	}
	w.stage.Before(msg, func(msg any) { w.Behaviour.Receive(c, msg) })
}

// Later has the renderer receive a message after a while, past Before.
func (s *Stage) Later(d time.Duration, msg any) {
	s.Sim.AfterFunc(d, func() { s.sys.Send(s.sys.PID(s.Path()), &later{msg}) })
}

// extra stands in for an actor.
type extra struct {
	stage *Stage
	path  string
}

// Start satisfies runtime.Behaviour.
func (*extra) Start(c *runtime.Context) { c.Ready() }

// Receive satisfies runtime.Behaviour.
func (e *extra) Receive(_ *runtime.Context, msg any) {
	e.stage.heard[e.path] = append(e.stage.heard[e.path], msg)
}

// Stop satisfies runtime.Behaviour.
func (*extra) Stop(*runtime.Context) {}

// Run lets virtual time pass.
func (s *Stage) Run(d time.Duration) {
	s.Helper()
	if err := s.Sim.RunFor(d); err != nil {
		s.Fatal(err)
	}
}

// Send sends messages to the renderer.
func (s *Stage) Send(msgs ...any) {
	for _, m := range msgs {
		s.sys.Send(s.sys.PID(s.Path()), m)
	}
}

// Tell sends messages to the renderer and lets all actors come to rest.
func (s *Stage) Tell(msgs ...any) {
	s.Helper()
	s.Send(msgs...)
	s.Run(time.Millisecond)
}

// Ask is a question from outside.
func (s *Stage) Ask(question any) any {
	s.Helper()
	answer, err := s.sys.Ask(context.Background(), s.Path(), question)
	if err != nil {
		s.Fatal(err)
	}
	return answer
}

// Kill makes the renderer fail and waits until its next incarnation runs.
func (s *Stage) Kill() {
	s.Helper()
	s.Restarts(func() {
		if err := s.sys.Kill(s.Path()); err != nil {
			s.Fatal(err)
		}
	})
}

// Restarts does something of which the renderer fails and waits until its next incarnation runs: the supervisor waits longer after many failures.
func (s *Stage) Restarts(what func()) {
	s.Helper()
	before := s.incarnations
	what()
	for range 100 {
		if s.Run(100 * time.Millisecond); s.incarnations > before {
			return
		}
	}
	s.Fatal("the renderer does not come back")
}

// Forget forgets what the extras heard so far.
func (s *Stage) Forget() { clear(s.heard) }

// All are the messages of a type that an extra has heard, oldest first.
func All[M any](s *Stage, path string) []M {
	var found []M
	for _, msg := range s.heard[path] {
		if m, ok := msg.(M); ok {
			found = append(found, m)
		}
	}
	return found
}

// Latest is the last message of a type that an extra has heard; the zero value if there was none.
func Latest[M any](s *Stage, path string) (m M) {
	if found := All[M](s, path); len(found) > 0 {
		m = found[len(found)-1]
	}
	return m
}

// Observed counts what a renderer reports to metrics.
type Observed struct {
	// Full and Incremental count passes.
	Full, Incremental int
	// Done, Failed and Unknown count operations.
	Done, Failed, Unknown int
	// Drift counts objects that were modified outside of the agent.
	Drift int
	// Names are those of the renderers that have counted.
	Names map[string]bool
}

func (o *Observed) by(name string) {
	if o.Names == nil {
		o.Names = map[string]bool{}
	}
	o.Names[name] = true
}

// Synced satisfies report.Observer.
func (o *Observed) Synced(renderer string, _ time.Duration, full bool) {
	o.by(renderer)
	if full {
		o.Full++
	} else {
		o.Incremental++
	}
}

// Programmed satisfies report.Observer.
func (*Observed) Programmed(time.Duration) {}

// Operations satisfies report.Observer.
func (o *Observed) Operations(renderer string, succeeded, failed, unknown int) {
	o.by(renderer)
	o.Done, o.Failed, o.Unknown = o.Done+succeeded, o.Failed+failed, o.Unknown+unknown
}

// Healed satisfies report.Observer.
func (*Observed) Healed(string, string, int) {}

// Drifted satisfies report.Observer.
func (o *Observed) Drifted(renderer string, n int) {
	o.by(renderer)
	o.Drift += n
}

// InputErrors satisfies report.Observer.
func (*Observed) InputErrors(int) {}

// Node is the name of the node.
const Node = "n1"

// NodeObject is the node as Kubernetes has it, with a network of its pods.
func NodeObject(podCIDR string) *messages.Node {
	return &messages.Node{
		Name: Node, Uid: "u1", Zone: "a", Addresses: []string{"192.168.16.1"}, PodCidrs: []string{cmp.Or(podCIDR, "10.1.1.0/24")},
	}
}

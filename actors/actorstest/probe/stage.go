// Package probe is a stage for the tests of single actors. The actors under test are real and stand
// at their paths in the tree. At every other path stands a probe, which records its messages and
// answers nothing. So a test sees exactly the messages of an actor, and sends the messages of the
// others itself. The package also has the objects of all tests of actors: the node, its VPP, and
// the Services and pods of the cluster.
//
// A Stage runs in virtual time on the goroutine of the test. Functions of actors must wait with
// Stage.Sim (Park, Sleep). The end of the test stops the tree, and fails if a part of it does not
// end.
package probe

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Renderers are the names of the renderers in the tree of a new Stage.
var Renderers = []string{"nat44", "routes"}

// stepLimit ends a test whose actors send to each other for ever.
const stepLimit = 3_000_000

// Stage is a tree of probes with some real actors in it.
type Stage struct {
	*testing.T
	// Sim is the time and the scheduler.
	Sim *runtime.Sim
	// System has the tree, from Start on.
	System *runtime.System
	// Renderers are the names of the renderers in the tree.
	Renderers []string
	// Faults are the failures of actors, oldest first.
	Faults []*messages.Fault

	subject      string
	incarnations int              // of the subject so far
	heard        map[string][]any // by path, oldest first
}

// Actors makes real actors, by path.
type Actors map[string]func() runtime.Behaviour

// New returns a stage without actors. The configuration of the actors is made with its Sim.
func New(t *testing.T) *Stage {
	t.Helper()
	return &Stage{T: t, Renderers: Renderers, Sim: runtime.NewSim(runtime.SimOptions{Seed: 1, StepLimit: stepLimit}), heard: map[string][]any{}}
}

// Start starts the tree. Tell, Ask and Kill are about the actor at the path subject. Each of the
// services has an actor; without any, a probe stands in the place of the spawner.
func (s *Stage) Start(subject string, actors Actors, services ...string) {
	s.Helper()
	s.subject = subject
	o := s.Sim.Options()
	o.OnFault = func(f *messages.Fault) { s.Faults = append(s.Faults, f) }
	s.System = runtime.NewSystem(o)
	if _, err := s.System.SpawnRoot(address.RootName, s.tree(actors, services)); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := s.System.Shutdown(context.Background()); err != nil {
			s.Error(err)
		}
	})
	// every actor has started, and actors that wait for each other have answers
	s.Run(100 * time.Millisecond)
}

// tree has an actor at every path of the troupe.
func (s *Stage) tree(actors Actors, services []string) runtime.Spec {
	child := func(path string) runtime.Child {
		spec := runtime.Spec{Kind: "probe", New: func() runtime.Behaviour { return &recorder{s, path} }}
		if make := actors[path]; make != nil {
			spec = runtime.Spec{Kind: "real", New: func() runtime.Behaviour {
				if path == s.subject {
					s.incarnations++
				}
				return readyAtOnce{make()}
			}}
		}
		name := runtime.UnescapeName(path[strings.LastIndexByte(path, '/')+1:])
		return runtime.Child{Name: name, Spec: spec, Reaction: runtime.ReactNone}
	}
	group := func(name string, children ...runtime.Child) runtime.Child {
		return runtime.Child{Name: name, Spec: runtime.Ordered(name, children, runtime.Policy{}), Reaction: runtime.ReactNone}
	}
	dataplane := []runtime.Child{child(address.Link), child(address.Interfaces)}
	for _, name := range s.Renderers {
		dataplane = append(dataplane, child(address.Renderer(name)))
	}
	spawner := child(address.Services)
	if len(services) > 0 {
		var members []runtime.Child
		for _, key := range services {
			members = append(members, child(address.Service(key)))
		}
		spawner = group("services", members...)
	}
	return runtime.Ordered("root", []runtime.Child{
		child(address.Journal), child(address.Introspect), child(address.Healer),
		group("dataplane", append(dataplane, group("upkeep", child(address.Sessions)))...),
		group("world", child(address.Registry), child(address.Nodes), spawner, child(address.External)),
	}, runtime.Policy{})
}

// readyAtOnce lets an actor that never calls Ready, for example the actor of a service, be the
// child of an ordered group.
type readyAtOnce struct{ runtime.Behaviour }

func (r readyAtOnce) Start(c *runtime.Context) {
	r.Behaviour.Start(c)
	c.Ready()
}

func (r readyAtOnce) Inspect() any {
	if i, ok := r.Behaviour.(runtime.Inspector); ok {
		return i.Inspect()
	}
	return nil
}

// recorder stands in for an actor.
type recorder struct {
	stage *Stage
	path  string
}

func (*recorder) Start(c *runtime.Context) { c.Ready() }

func (r *recorder) Receive(_ *runtime.Context, msg any) {
	r.stage.heard[r.path] = append(r.stage.heard[r.path], msg)
}

func (*recorder) Stop(*runtime.Context) {}

// Run lets virtual time pass.
func (s *Stage) Run(d time.Duration) {
	s.Helper()
	if err := s.Sim.RunFor(d); err != nil {
		s.Fatal(err)
	}
}

// Send sends messages to the subject, in their order.
func (s *Stage) Send(msgs ...any) {
	for _, m := range msgs {
		s.System.Send(s.System.PID(s.subject), m)
	}
}

// Tell sends messages to the subject and lets a millisecond pass.
func (s *Stage) Tell(msgs ...any) {
	s.Helper()
	s.Send(msgs...)
	s.Run(time.Millisecond)
}

// Ask asks the subject and returns its answer, at most a virtual minute later.
func (s *Stage) Ask(question any) any {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := s.System.Ask(ctx, s.subject, question)
	if err != nil {
		s.Fatal(err)
	}
	return answer
}

// Kill makes the subject fail and waits until its next incarnation runs.
func (s *Stage) Kill() {
	s.Helper()
	s.Restarts(func() {
		if err := s.System.Kill(s.subject); err != nil {
			s.Fatal(err)
		}
	})
}

// Restarts makes the subject fail by calling what, and waits until its next incarnation runs. The
// supervisor waits longer after many failures.
func (s *Stage) Restarts(what func()) {
	s.Helper()
	before := s.incarnations
	what()
	for range 100 {
		if s.Run(100 * time.Millisecond); s.incarnations > before {
			return
		}
	}
	s.Fatal(s.subject, " does not come back")
}

// Heard returns all messages to the probe at a path, oldest first.
func (s *Stage) Heard(path string) []any { return s.heard[path] }

// Forget forgets the messages to all probes.
func (s *Stage) Forget() { clear(s.heard) }

// Record is a Stage, or a type that embeds one.
type Record interface {
	// Heard returns all messages to the probe at a path, oldest first.
	Heard(path string) []any
}

// All returns the messages of a type to the probe at a path, oldest first.
func All[M any](s Record, path string) (found []M) {
	for _, msg := range s.Heard(path) {
		if m, ok := msg.(M); ok {
			found = append(found, m)
		}
	}
	return found
}

// Latest returns the last message of a type to the probe at a path; the zero value = there was
// none.
func Latest[M any](s Record, path string) (m M) {
	if found := All[M](s, path); len(found) > 0 {
		m = found[len(found)-1]
	}
	return m
}

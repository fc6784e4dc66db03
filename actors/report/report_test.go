package report

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// part is an actor with a health.
type part struct {
	Health
	say func(p *part, c *runtime.Context)
}

func (p *part) Start(c *runtime.Context) {
	p.Health.Start(c)
	c.Ready()
}

func (*part) Stop(*runtime.Context) {}

func (p *part) Receive(c *runtime.Context, msg any) {
	switch msg.(type) {
	case *Beat:
		p.Beat(c)
	default:
		p.say(p, c)
	}
}

// listener remembers what it hears.
type listener struct{ heard *[]any }

func (*listener) Start(c *runtime.Context)                  { c.Ready() }
func (*listener) Stop(*runtime.Context)                     {}
func (l *listener) Receive(_ *runtime.Context, message any) { *l.heard = append(*l.heard, message) }

// withPart plays with the part "link", the healer, the journal and the interfaces actor, which the
// part also reports to.
func withPart(t *testing.T, say func(p *part, c *runtime.Context), play func(run func(time.Duration), heard func(path string) []any)) {
	t.Helper()
	heard := map[string]*[]any{}
	listen := func(path string) runtime.Child {
		heard[path] = &[]any{}
		name := path[strings.LastIndexByte(path, '/')+1:]
		return runtime.Child{Name: name, Spec: runtime.Spec{Kind: "listener", New: func() runtime.Behaviour { return &listener{heard[path]} }}}
	}
	link := runtime.Child{Name: "link", Spec: runtime.Spec{Kind: "part", New: func() runtime.Behaviour {
		return &part{Health{Part: "link", Also: address.Interfaces}, say}
	}}}
	dataplane := runtime.Ordered("dataplane", []runtime.Child{link, listen(address.Interfaces)}, runtime.Policy{})
	sim := runtime.NewSim(runtime.SimOptions{Seed: 1, StepLimit: 100000})
	sys := runtime.NewSystem(sim.Options())
	root := runtime.Ordered("root", []runtime.Child{
		listen(address.Journal), listen(address.Healer), {Name: "dataplane", Spec: dataplane},
	}, runtime.Policy{})
	if _, err := sys.SpawnRoot(address.RootName, root); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sys.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	run := func(d time.Duration) {
		t.Helper()
		if err := sim.RunFor(d); err != nil {
			t.Fatal(err)
		}
	}
	run(time.Second)
	sys.Send(sys.PID(address.Link), "say")
	run(time.Millisecond)
	play(run, func(path string) []any { return *heard[path] })
}

// TestHealthIsRepeated: every heartbeat, to both that have to know, once there is one.
func TestHealthIsRepeated(t *testing.T) {
	withPart(t, func(p *part, c *runtime.Context) {
		p.Interfaces, p.RefusedSet, p.RefusedWhy, p.Reach = 7, 8, "why", messages.Reach_REACH_OBJECT
		p.Report(c, false, "broken", 3)
	}, func(run func(time.Duration), heard func(string) []any) {
		run(10 * Heartbeat)
		for _, path := range []string{address.Healer, address.Interfaces} {
			all := heard(path)
			if len(all) < 10 || len(all) > 12 {
				t.Fatalf("%s heard %d reports in ten heartbeats", path, len(all))
			}
			h := all[len(all)-1].(*messages.Health)
			if h.GetPart() != "link" || h.GetOk() || h.GetReason() != "broken" || h.GetEpoch() != 3 || h.GetInterfaces() != 7 || h.GetRefusedSet() != 8 ||
				h.GetRolesRefused() != "why" || h.GetReach() != messages.Reach_REACH_OBJECT {
				t.Errorf("%s heard %v", path, h)
			}
		}
	})
	withPart(t, func(*part, *runtime.Context) {}, func(run func(time.Duration), heard func(string) []any) {
		if run(10 * Heartbeat); len(heard(address.Healer)) != 0 {
			t.Errorf("a part without health reports %v", heard(address.Healer))
		}
	})
}

// TestHealthIsCurrent: the same report would be no news.
func TestHealthIsCurrent(t *testing.T) {
	h := Health{}
	if h.Current(true, "") {
		t.Error("nothing was reported yet")
	}
	h.Last = &messages.Health{Ok: true, Reason: "warning", Interfaces: 4}
	h.Interfaces = 4
	for _, c := range []struct {
		ok      bool
		reason  string
		refused uint64
		want    bool
	}{{true, "warning", 0, true}, {true, "", 0, false}, {false, "warning", 0, false}, {true, "warning", 5, false}} {
		if h.RefusedSet = c.refused; h.Current(c.ok, c.reason) != c.want {
			t.Errorf("%+v: %t", c, !c.want)
		}
	}
	if h.RefusedSet, h.Interfaces = 0, 5; h.Current(true, "warning") {
		t.Error("another interface set is no news")
	}
}

// TestEventsAndSteps: the journal learns who sends, the healer what was done, unless that is
// nothing.
func TestEventsAndSteps(t *testing.T) {
	withPart(t, func(p *part, c *runtime.Context) {
		Event(c, &messages.Event{Kind: "link", Text: "connected"})
		TookStep(c, p.Part, StepKey, 0)
		TookStep(c, p.Part, StepObject, 2)
	}, func(_ func(time.Duration), heard func(string) []any) {
		if all := heard(address.Journal); len(all) != 1 || all[0].(*messages.Event).GetActor() != address.Link {
			t.Errorf("the journal heard %v", all)
		}
		if all := heard(address.Healer); len(all) != 1 || *all[0].(*Healed) != (Healed{"link", StepObject, 2}) {
			t.Errorf("the healer heard %v", all)
		}
	})
}

func TestStepWords(t *testing.T) {
	var words []string
	for s := StepKey; s <= NoStep; s++ {
		words = append(words, s.String())
	}
	if want := []string{"key", "object", "downstream", "full", "subtree", "exit", "none"}; !slices.Equal(words, want) {
		t.Errorf("%q, want %q", words, want)
	}
}

package runtime

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// orderedWorld is an Ordered supervisor whose children count what happens to them.
type orderedWorld struct {
	sim                *Sim
	sys                *System
	names              []string
	reactions          map[string]Reaction
	sent, done, lost   map[string]int
	serial             int
	began              map[string]int // serial of the last start of each child
	starts             map[string]int
	resyncs            map[string]int
	failures, upEvents int
	lastEvent          string
	faults             bool
	problems           []string
}

func (w *orderedWorld) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// newOrderedWorld makes children a, b, c... with the given reactions.
func newOrderedWorld(t *testing.T, seed uint64, reactions ...Reaction) *orderedWorld {
	w := &orderedWorld{
		sim:       NewSim(SimOptions{Seed: seed, MessageCost: 400 * time.Microsecond, StepLimit: 1_000_000}),
		reactions: map[string]Reaction{}, sent: map[string]int{}, done: map[string]int{}, lost: map[string]int{},
		began: map[string]int{}, starts: map[string]int{}, resyncs: map[string]int{}, faults: true,
	}
	w.sys = simulatedOn(t, w.sim, func(o *Options) { o.Faults = w.fault })
	w.sys.observer = w.observe
	var children []Child
	for i, reaction := range reactions {
		name := string(rune('a' + i))
		w.names = append(w.names, name)
		w.reactions[name] = reaction
		children = append(children, Child{Name: name, Spec: w.child(name), Reaction: reaction})
	}
	root(t, w.sys, "sup", Ordered("test", children, Policy{Budget: 1000, BackoffMax: 20 * time.Millisecond}))
	return w
}

// child fails in one of ten starts, becomes ready some time later, and counts its work.
func (w *orderedWorld) child(name string) Spec {
	return probeSpec(probe{
		silent: true,
		start: func(c *Context) {
			w.serial++
			w.began[name] = w.serial
			w.starts[name]++
			if w.faults && w.sim.Rand().IntN(10) == 0 {
				panic("injected in Start")
			}
			c.After(time.Duration(w.sim.Rand().IntN(5))*time.Millisecond, &boom{})
		},
		receive: func(c *Context, msg any) {
			switch msg.(type) {
			case *boom:
				c.Ready()
			case *work:
				w.done[name]++
			case *messages.Resync:
				w.resyncs[name]++
			}
		},
		stop: func(*Context) {
			if w.faults && w.sim.Rand().IntN(10) == 0 {
				panic("injected in Stop")
			}
		},
	})
}

func (w *orderedWorld) fault(m *Mailbox, msg any, phase Phase) {
	if _, ok := msg.(*work); ok && w.faults && w.sim.Rand().IntN(100) < 2 {
		if phase == Before {
			w.lost[baseName(m.Path())]++
		}
		panic("injected")
	}
}

// observe checks the order whenever all children are up: a child that is restarted with its elder
// siblings is younger than they are.
func (w *orderedWorld) observe(_, event string) {
	w.lastEvent = event
	switch {
	case strings.HasPrefix(event, "fail:"):
		w.failures++
	case event == "all-up":
		w.upEvents++
		for i, name := range w.names {
			for _, elder := range w.names[:i] {
				if w.reactions[name] == ReactRestart && w.began[elder] > w.began[name] {
					w.problem("%s is older than %s when all are up", name, elder)
				}
			}
		}
	}
}

// load sends messages to random children over the next 100 ms, lets them fail meanwhile, and then
// lets everything settle.
func (w *orderedWorld) load(t *testing.T) {
	run(t, w.sim, 0)
	for range 300 {
		name := w.names[w.sim.Rand().IntN(len(w.names))]
		w.sim.AfterFunc(time.Duration(w.sim.Rand().IntN(100))*time.Millisecond, func() {
			if box := w.sys.lookup("sup/" + name); box != nil {
				// there is no actor before the first start
				w.sent[name]++
				w.sys.Send(box.pid, &work{})
			}
		})
	}
	run(t, w.sim, 100*time.Millisecond)
	w.faults = false
	run(t, w.sim, 10*time.Second)
}

// check compares what was sent with what was handled, and requires that all are up.
func (w *orderedWorld) check(t *testing.T) {
	for _, name := range w.names {
		if w.done[name]+w.lost[name] != w.sent[name] {
			w.problem("%s was sent %d, handled %d, lost %d with panics", name, w.sent[name], w.done[name], w.lost[name])
		}
		if s := state(t, w.sys, "sup/"+name); s.State != StateIdle || s.Held || s.Suspended || s.Discarded != 0 {
			w.problem("%s at the end: %+v", name, s)
		}
	}
	if w.lastEvent != "all-up" {
		w.problem("last event: %s", w.lastEvent)
	}
	for _, p := range w.problems {
		t.Error(p)
	}
}

// TestOrderedSimulated: through random failures of handlers, starts and stops the order holds,
// everything comes up again, and only messages that a panicking child was handling are lost.
func TestOrderedSimulated(t *testing.T) {
	failures, all := 0, 0
	chains := [][]Reaction{
		{ReactRestart, ReactRestart, ReactRestart},
		{ReactRestart, ReactResync, ReactRestart, ReactNone, ReactRestart},
		{ReactRestart, ReactNone, ReactResync, ReactResync},
	}
	campaign(t, *seeds, func(t *testing.T, seed uint64) {
		w := newOrderedWorld(t, seed, chains[seed%uint64(len(chains))]...)
		w.load(t)
		w.check(t)
		failures += w.failures
		all += w.upEvents
	})
	t.Logf("%d seeds: %d failures, %d times all up", *seeds, failures, all)
}

// TestOrderedIndifferentChildren: a child with reaction none or resync is neither gated nor
// restarted by the failures of elder siblings.
func TestOrderedIndifferentChildren(t *testing.T) {
	for _, reaction := range []Reaction{ReactNone, ReactResync} {
		t.Run(reaction.String(), func(t *testing.T) {
			campaign(t, *seeds/10, func(t *testing.T, seed uint64) {
				w := newOrderedWorld(t, seed, ReactRestart, reaction)
				w.faults = false
				settle(t, w.sim)
				for range 50 {
					at := time.Duration(w.sim.Rand().IntN(200)) * time.Millisecond
					w.sim.AfterFunc(at, func() {
						if err := w.sys.Kill("sup/a"); err != nil {
							t.Error(err)
						}
					})
					w.sim.AfterFunc(at, func() {
						if s := state(t, w.sys, "sup/b"); s.Held || s.Suspended {
							t.Errorf("b while a fails: %+v", s)
						}
					})
				}
				run(t, w.sim, 10*time.Second)
				if w.starts["b"] != 1 || w.starts["a"] < 10 {
					t.Fatalf("starts %v", w.starts)
				}
				if want := reaction == ReactResync; w.resyncs["b"] > 0 != want || w.resyncs["b"] >= w.starts["a"] {
					t.Fatalf("%d resyncs, starts %v", w.resyncs["b"], w.starts)
				}
			})
		})
	}
}

// TestOrderedDeterminism: one seed, one trace.
func TestOrderedDeterminism(t *testing.T) {
	if testing.Short() {
		t.Skip("a simulation has one goroutine: the race detector has nothing to find")
	}
	hashes := map[uint64]bool{}
	for seed := range uint64(5) {
		var want uint64
		for i := range 5 {
			w := newOrderedWorld(t, seed, ReactRestart, ReactResync, ReactRestart)
			w.load(t)
			got := w.sim.TraceHash()
			if i > 0 && got != want {
				t.Fatalf("seed %d: trace %x, before %x", seed, got, want)
			}
			want = got
		}
		hashes[want] = true
	}
	if len(hashes) != 5 {
		t.Errorf("%d different traces of 5 seeds", len(hashes))
	}
}

// TestOrderedStopsWithoutFailing: a child that is stopped from outside is started again in its
// place, and later siblings react as to a failure.
func TestOrderedStopsWithoutFailing(t *testing.T) {
	campaign(t, *seeds/10, func(t *testing.T, seed uint64) {
		w := newOrderedWorld(t, seed, ReactRestart, ReactRestart, ReactNone, ReactRestart)
		w.faults = false
		settle(t, w.sim)
		for range 20 {
			name := w.names[w.sim.Rand().IntN(len(w.names))]
			w.sim.AfterFunc(time.Duration(w.sim.Rand().IntN(50))*time.Millisecond, func() {
				if box := w.sys.lookup("sup/" + name); box != nil {
					box.stop()
				}
			})
		}
		run(t, w.sim, 10*time.Second)
		w.check(t)
		if w.failures == 0 {
			t.Error("nothing happened")
		}
		if names := slices.Collect(actorNames(w.sys)); !slices.Equal(names, []string{"sup", "sup/a", "sup/b", "sup/c", "sup/d"}) {
			t.Errorf("actors %v", names)
		}
	})
}

// actorNames are the paths of all actors, ordered.
func actorNames(sys *System) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, s := range sys.Snapshot() {
			if !yield(s.Path) {
				return
			}
		}
	}
}

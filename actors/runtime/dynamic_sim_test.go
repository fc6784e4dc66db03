package runtime

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// TestDynamicSimulated: keys come and go while children, their starts and stops and the supervisor
// itself fail, children are stopped and killed from outside. In the end exactly the wanted children
// live, and each of them answers.
func TestDynamicSimulated(t *testing.T) {
	panics, quarantines := 0, 0
	campaign(t, *seeds, func(t *testing.T, seed uint64) {
		w := newDynamicWorld(t, seed)
		w.disturb(t)
		w.check(t)
		panics += w.panics
		quarantines += w.quarantines
	})
	t.Logf("%d seeds: %d panics, %d quarantines", *seeds, panics, quarantines)
}

type dynamicWorld struct {
	sim                 *Sim
	sys                 *System
	wanted              map[string]bool
	live                map[string]int // incarnations of each key that have started and not ended
	answered            map[string]bool
	faults              bool
	panics, quarantines int
}

func newDynamicWorld(t *testing.T, seed uint64) *dynamicWorld {
	w := &dynamicWorld{
		sim:    NewSim(SimOptions{Seed: seed, MessageCost: 400 * time.Microsecond, StepLimit: 1_000_000}),
		wanted: map[string]bool{}, live: map[string]int{}, answered: map[string]bool{}, faults: true,
	}
	w.sys = simulatedOn(t, w.sim, func(o *Options) {
		o.Faults = func(_ *Mailbox, _ any, phase Phase) {
			if (phase == Before || phase == After) && w.chance(100) {
				panic("injected")
			}
		}
		o.OnFault = func(f *messages.Fault) {
			w.panics++
			if f.GetDecision() == decisionQuarantine {
				w.quarantines++
			}
		}
	})
	services := Dynamic("services", w.member, Policy{BackoffMax: 50 * time.Millisecond, QuarantineFor: time.Second})
	root(t, w.sys, "root", Ordered("root", []Child{{Name: "services", Spec: services}}, Policy{Budget: -1}))
	return w
}

// chance is true once in n times as long as faults are injected.
func (w *dynamicWorld) chance(n int) bool { return w.faults && w.sim.Rand().IntN(n) == 0 }

// member counts the incarnations that have started and not stopped.
func (w *dynamicWorld) member(key string) Spec {
	return probeSpec(probe{
		start: func(*Context) {
			w.live[key]++
			if w.chance(10) {
				panic("injected in Start")
			}
		},
		receive: func(_ *Context, msg any) {
			switch msg.(type) {
			case *keyed:
				w.answered[key] = true
			case *work:
				if w.chance(4) {
					panic("poison")
				}
			}
		},
		stop: func(*Context) {
			w.live[key]--
			if w.chance(5) {
				panic("injected in Stop")
			}
		},
	})
}

func (w *dynamicWorld) randomKey() string { return fmt.Sprintf("ns/s%d", w.sim.Rand().IntN(8)) }

// act does one random thing.
func (w *dynamicWorld) act() {
	key := w.randomKey()
	path := "root/services/" + EscapeName(key)
	services := w.sys.PID("root/services")
	switch w.sim.Rand().IntN(8) {
	case 0, 1:
		w.wanted[key] = true
		w.sys.Send(services, ensure(key))
	case 2:
		delete(w.wanted, key)
		w.sys.Send(services, &messages.Release{Key: key})
	case 3: // released and ensured at once, in the extreme
		w.sys.Send(services, &messages.Release{Key: key})
		w.wanted[key] = true
		w.sys.Send(services, ensure(key))
	case 4:
		w.sys.Send(services, ensureAll(slices.Sorted(maps.Keys(w.wanted))...))
	case 5:
		if box := w.sys.lookup(path); box != nil {
			box.stop()
		}
	case 6:
		_ = w.sys.Kill(path) // it may not exist
		if w.wanted[key] {
			w.sys.Send(services, &messages.Nudge{Key: key, Generation: uint64(w.sim.Rand().IntN(5))})
		}
	case 7:
		w.sys.Send(w.sys.PID(path), &work{})
	}
}

// disturb lets things happen for a virtual second, and then lets them settle with a last complete
// Ensure.
func (w *dynamicWorld) disturb(t *testing.T) {
	run(t, w.sim, 0)
	for range 200 {
		w.sim.AfterFunc(time.Duration(w.sim.Rand().IntN(1000))*time.Millisecond, w.act)
	}
	run(t, w.sim, time.Second)
	w.faults = false
	run(t, w.sim, time.Second)
	w.sys.Send(w.sys.PID("root/services"), ensureAll(slices.Sorted(maps.Keys(w.wanted))...))
	run(t, w.sim, time.Minute)
}

// check wants no actor that is not wanted, one incarnation of each that is, and an answer from it.
func (w *dynamicWorld) check(t *testing.T) {
	want := []string{"root", "root/services"}
	for _, key := range slices.Sorted(maps.Keys(w.wanted)) {
		path := "root/services/" + EscapeName(key)
		want = append(want, path)
		w.sys.Send(w.sys.PID(path), &keyed{key, 1})
	}
	run(t, w.sim, time.Second)
	expectActors(t, w.sys, want...)
	for key, n := range w.live {
		if w.wanted[key] && n != 1 || !w.wanted[key] && n != 0 {
			t.Errorf("%s: %d incarnations live, wanted %t", key, n, w.wanted[key])
		}
	}
	for key := range w.wanted {
		if !w.answered[key] {
			t.Errorf("%s does not answer: %+v", key, state(t, w.sys, "root/services/"+EscapeName(key)))
		}
	}
}

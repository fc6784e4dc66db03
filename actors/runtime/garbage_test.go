package runtime

import (
	"context"
	goruntime "runtime"
	"runtime/debug"
	"testing"
	"time"
	"weak"

	"github.com/troupe-vpp/troupe/messages"
)

// stage is a way to run a system. Nothing of the system may be left afterwards.
type stage struct {
	sys   *System
	wait  func(ctx context.Context)                // what functions of actors wait with
	until func(what string, condition func() bool) // lets the actors work
}

func stageOnDispatcher(t *testing.T) stage {
	t.Helper()
	return stage{
		NewSystem(Options{}), func(ctx context.Context) { <-ctx.Done() },
		func(what string, condition func() bool) { eventually(t, what, condition) },
	}
}

func stageInSimulation(t *testing.T) stage {
	t.Helper()
	sim := NewSim(SimOptions{Seed: 1})
	return stage{
		NewSystem(sim.Options()), func(ctx context.Context) { sim.Park(func() bool { return ctx.Err() != nil }) },
		func(what string, condition func() bool) {
			if settle(t, sim); !condition() {
				t.Fatal("not reached: " + what)
			}
		},
	}
}

// live gives a system everything that could keep it in memory: failed, quarantined and ended
// children, timers that are due in an hour, waiting functions, questions, dead letters, and a grown
// queue. Then it shuts the system down and forgets it.
func live(t *testing.T, set func(t *testing.T) stage) (weak.Pointer[System], weak.Pointer[Mailbox]) {
	t.Helper()
	s := set(t)
	sys := s.sys
	one := probeSpec(probe{
		start: func(c *Context) {
			c.After(time.Hour, &work{})
			c.Go("wait", s.wait)
			c.Post()(&work{})
		},
		receive: func(_ *Context, msg any) {
			if _, is := msg.(*boom); is {
				panic("boom")
			}
		},
	})
	many := Dynamic("many", func(string) Spec { return one }, Policy{QuarantineAfter: 1, QuarantineFor: time.Hour})
	root(t, sys, "sup", Ordered("sup", []Child{{Name: "one", Spec: one}, {Name: "many", Spec: many}}, Policy{}))
	sys.Send(sys.PID("sup"), &work{})
	s.until("a tree", func() bool { return sys.lookup("sup/many") != nil })
	sys.Send(sys.PID("sup/many"), ensure("a", "b", "c"))
	s.until("children", func() bool { return len(sys.Snapshot()) == 6 })
	box := mailbox(t, sys, "sup/many/a")
	box.Hold()
	for n := range 4 * minNodes {
		sys.Send(box.pid, &work{n})
	}
	box.Release()
	sys.Send(sys.PID("sup/many/b"), &boom{})
	sys.Send(sys.PID("sup/many"), &messages.Release{Key: "c"})
	sys.Send(sys.PID("sup/many/none"), &work{})
	s.until("failures", func() bool {
		b, _ := sys.Actor("sup/many/b")
		return b.State == StateQuarantined && sys.lookup("sup/many/c") == nil
	})
	s.until("an answer", func() bool {
		_, err := sys.Inspect(t.Context(), "sup/one")
		return err == nil
	})
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	return weak.Make(sys), weak.Make(box)
}

// TestShutDownIsGarbage: nothing keeps a system in memory that was shut down, nor anything that
// belongs to it.
func TestShutDownIsGarbage(t *testing.T) {
	for name, set := range map[string]func(*testing.T) stage{"dispatcher": stageOnDispatcher, "simulation": stageInSimulation} {
		t.Run(name, func(t *testing.T) {
			const enough = 50 // collections
			sys, box := live(t, set)
			for n := 0; sys.Value() != nil || box.Value() != nil; n++ {
				if n == enough {
					t.Fatalf("after %d collections: system left %t, mailbox left %t", n, sys.Value() != nil, box.Value() != nil)
				}
				goruntime.Gosched()
				goruntime.GC()
			}
		})
	}
}

// TestShutDownIsGarbageAtOnce: the first collection takes it. Memory that only the second
// collection frees would count as in use when the collector plans its next round. The more such
// systems there are, the later that round would be. A system or two may hang on in what is left on
// the stack.
func TestShutDownIsGarbageAtOnce(t *testing.T) {
	const systems, stale = 10, 2
	var all []weak.Pointer[System]
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // no collection but the one below
	for range systems {
		sys, _ := live(t, stageInSimulation)
		all = append(all, sys)
	}
	goruntime.GC()
	left := 0
	for _, sys := range all {
		if sys.Value() != nil {
			left++
		}
	}
	if left > stale {
		t.Errorf("%d of %d systems were left by the first collection", left, systems)
	}
}

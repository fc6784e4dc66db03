package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// waiter runs a function that waits, and notes why it may go on.
func waiter(j *journal, sim *Sim, name string) Spec {
	return probeSpec(probe{
		start: func(c *Context) {
			post := c.Post()
			c.Go(name, func(ctx context.Context) {
				for turn := 0; ctx.Err() == nil; turn++ {
					sim.Sleep(time.Second, func() bool { return ctx.Err() != nil })
					post(fmt.Sprint(name, " ", turn))
				}
				j.add("%s over", name)
			})
		},
		receive: func(_ *Context, msg any) { j.add("%v", msg) },
	})
}

// TestSimStart: functions that wait take turns with the actors, in virtual time, and end with their
// incarnation.
func TestSimStart(t *testing.T) {
	if testing.Short() {
		t.Skip("a simulation has one goroutine: the race detector has nothing to find")
	}
	play := func(seed uint64) (string, uint64) {
		sim, j := NewSim(SimOptions{Seed: seed, MessageCost: time.Millisecond}), &journal{}
		sys := NewSystem(sim.Options())
		for _, name := range []string{"a", "b"} {
			root(t, sys, name, waiter(j, sim, name))
		}
		run(t, sim, 3500*time.Millisecond)
		if err := sys.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		return strings.Join(j.take(), ", "), sim.TraceHash()
	}
	events, hash := play(1)
	for _, want := range []string{"a 0", "a 2", "b 2", "a over", "b over"} {
		if !slices.Contains(strings.Split(events, ", "), want) {
			t.Errorf("%q is not among %s", want, events)
		}
	}
	for range 20 {
		if again, h := play(1); again != events || h != hash {
			t.Fatalf("the same seed: %s, then %s", events, again)
		}
	}
	if _, h := play(2); h == hash {
		t.Error("another seed has the same trace")
	}
}

// TestSimParkEndsWithTheActor: what a dead incarnation waits for does not keep it.
func TestSimParkEndsWithTheActor(t *testing.T) {
	sim, j := NewSim(SimOptions{Seed: 1}), &journal{}
	sys := NewSystem(sim.Options())
	root(t, sys, "a", probeSpec(probe{start: func(c *Context) {
		incarnation := c.Incarnation()
		c.Go("wait", func(ctx context.Context) {
			sim.Park(func() bool { return ctx.Err() != nil })
			j.add("over %d", incarnation)
		})
		c.Go("die", func(context.Context) {
			if incarnation == 1 {
				sim.Sleep(time.Second, nil)
				panic("die")
			}
		})
	}}))
	run(t, sim, 10*time.Second)
	if got := j.take(); !slices.Equal(got, []string{"over 1"}) {
		t.Errorf("%v", got)
	}
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := j.take(); !slices.Equal(got, []string{"over 2"}) {
		t.Errorf("%v", got)
	}
}

// TestSimParkOfAStep: only a function of Start can wait.
func TestSimParkOfAStep(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("parked")
		}
	}()
	NewSim(SimOptions{}).Park(func() bool { return true })
}

package runtime

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestSimTimers: by instant, then by age; a stopped one does not fire; one that is set by another
// fires in its turn.
func TestSimTimers(t *testing.T) {
	sim := NewSim(SimOptions{})
	var got []string
	add := func(s string) func() { return func() { got = append(got, s) } }
	sim.AfterFunc(2*time.Second, add("2a"))
	sim.AfterFunc(time.Second, func() {
		add("1")()
		sim.AfterFunc(-time.Hour, add("at once"))
		sim.AfterFunc(time.Second, add("2c"))
	})
	sim.AfterFunc(2*time.Second, add("2b"))
	stopped := sim.AfterFunc(time.Second, add("stopped"))
	if !stopped.Stop() || stopped.Stop() {
		t.Error("stop reports the wrong thing")
	}
	start := sim.Now()
	run(t, sim, 1500*time.Millisecond)
	if want := []string{"1", "at once"}; !slices.Equal(got, want) {
		t.Errorf("after 1.5 s: %v", got)
	}
	run(t, sim, time.Hour)
	if want := []string{"1", "at once", "2a", "2b", "2c"}; !slices.Equal(got, want) {
		t.Errorf("after an hour: %v", got)
	}
	if d := sim.Now().Sub(start); d != time.Hour+1500*time.Millisecond {
		t.Errorf("%v have passed", d)
	}
}

// pingPong are two actors that keep each other busy for ever.
func pingPong(t *testing.T, sys *System) {
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		root(t, sys, names[0], probeSpec(probe{receive: func(c *Context, msg any) { c.Send(c.PID(names[1]), msg) }}))
	}
	sys.Send(sys.PID("a"), &work{})
}

// TestSimStepLimit: a simulation that does not end is ended.
func TestSimStepLimit(t *testing.T) {
	sim := NewSim(SimOptions{StepLimit: 1000})
	sys := NewSystem(sim.Options())
	pingPong(t, sys)
	if err := sim.RunFor(time.Second); !errors.Is(err, ErrStepLimit) || sim.Steps() != 1000 {
		t.Errorf("%d steps, %v", sim.Steps(), err)
	}
	if err := sys.Shutdown(t.Context()); !errors.Is(err, ErrStepLimit) {
		t.Errorf("shutdown: %v", err)
	}
}

// TestSimMessageCost: with a cost the world moves on during a cascade.
func TestSimMessageCost(t *testing.T) {
	sim := NewSim(SimOptions{MessageCost: time.Millisecond})
	sys := simulatedOn(t, sim, nil)
	pingPong(t, sys)
	done, err := sim.RunUntil(func() bool { return sim.Steps() == 10_000 }, time.Minute)
	if d := sim.Now().Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); !done || err != nil || d < 4*time.Second || d > 6*time.Second {
		t.Errorf("10 000 messages took %v, %t, %v", d, done, err)
	}
	if err := sys.Kill("a"); err != nil { // loses the ball
		t.Error(err)
	}
}

// TestSimGo: goroutines of actors are steps of the simulation, or forbidden.
func TestSimGo(t *testing.T) {
	starter := func(j *journal) Spec {
		return probeSpec(probe{
			start: func(c *Context) {
				post := c.Post()
				c.Go("helper", func(ctx context.Context) {
					j.add("helper %v", ctx.Err())
					post(&work{1})
				})
				j.add("started")
			},
			receive: func(*Context, any) { j.add("work") },
		})
	}
	var j journal
	var trace []string
	sim := NewSim(SimOptions{Trace: func(s SimStep) { trace = append(trace, s.Actor+" "+s.Message) }})
	sys := simulatedOn(t, sim, nil)
	root(t, sys, "a", starter(&j))
	settle(t, sim)
	expect(t, &j, "started", "helper <nil>", "work")
	if want := []string{"a Started", "a go helper", "a work"}; !slices.Equal(trace, want) {
		t.Errorf("trace %v", trace)
	}

	fatal := ""
	sim, sys = simulated(t, 1, func(o *Options) {
		o.Go = nil
		o.OnFatal = func(reason string) { fatal = reason }
	})
	root(t, sys, "a", starter(&j))
	settle(t, sim)
	expect(t, &j)
	if f := mailbox(t, sys, "a").Failures(); fatal == "" || !errors.Is(&f[0], ErrNoGoroutines) {
		t.Errorf("goroutines are not forbidden: %q", fatal)
	}
}

// TestSimScheduler: another Scheduler can be written with Step alone.
func TestSimScheduler(t *testing.T) {
	var j journal
	fifo := &fifoScheduler{}
	sys := NewSystem(Options{Scheduler: fifo, Clock: NewSim(SimOptions{})})
	root(t, sys, "a", probeSpec(recorder(&j)))
	sys.Send(sys.PID("a"), &work{1})
	fifo.run()
	expect(t, &j, "work 1")
	if err := sys.Shutdown(canceled(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v", err)
	}
	fifo.run()
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// fifoScheduler is the simplest Scheduler.
type fifoScheduler struct{ ready []*Mailbox }

func (f *fifoScheduler) Ready(m *Mailbox) { f.ready = append(f.ready, m) }

func (f *fifoScheduler) run() {
	for f.step() {
	}
}

// step handles one message and reports false when there is none.
func (f *fifoScheduler) step() bool {
	if len(f.ready) == 0 {
		return false
	}
	m := f.ready[0]
	f.ready = f.ready[1:]
	if m.Step() {
		f.ready = append(f.ready, m)
	}
	return true
}

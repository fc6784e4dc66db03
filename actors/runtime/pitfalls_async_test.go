package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// This file goes on with the pitfalls of futures, timers, goroutines and names; see
// pitfalls_test.go.

// TestPitfallP14P15P16Futures: Ask uses none. A double or late reply is neither a race nor a result
// and an error at once, and nothing stays in the registry.
func TestPitfallP14P15P16Futures(t *testing.T) {
	sys := dispatched(t, Options{})
	root(t, sys, "a", probeSpec(probe{receive: func(c *Context, msg any) {
		for range 3 {
			c.Reply(msg)
		}
	}}))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
			defer cancel()
			reply, err := sys.Ask(ctx, "a", &work{i})
			if (reply == nil) == (err == nil) {
				t.Errorf("reply %v and error %v", reply, err)
			}
			if reply != nil && reply.(*work).n != i {
				t.Errorf("the reply of another request: %v", reply)
			}
		})
	}
	wg.Wait()
	eventually(t, "all is quiet", func() bool { return state(t, sys, "a").State == StateIdle })
	for _, bucket := range sys.proto.ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, id := range bucket.Keys() {
			if strings.HasPrefix(id, "ask") || strings.HasPrefix(id, "future") {
				t.Errorf("%s is left in the registry", id)
			}
		}
	}
}

// TestPitfallP17ReceiveTimeout: our own timers set, fire and cancel without a race; run it with the
// race detector.
func TestPitfallP17ReceiveTimeout(t *testing.T) {
	var fired atomic.Int64
	sys := dispatched(t, Options{})
	root(t, sys, "a", probeSpec(probe{receive: func(c *Context, msg any) {
		switch msg.(type) {
		case *work:
			cancel := c.After(10*time.Microsecond, &keyed{})
			c.After(time.Microsecond, &boom{})
			cancel()
		case *boom:
			fired.Add(1)
		case *keyed:
			t.Error("a cancelled timer fired")
		}
	}}))
	for range 1000 {
		sys.Send(sys.PID("a"), &work{})
	}
	eventually(t, "all timers have fired", func() bool { return fired.Load() == 1000 })
}

// TestPitfallP18ContextInGoroutine: goroutines have Post, which is safe while the actor handles
// messages and restarts.
func TestPitfallP18ContextInGoroutine(t *testing.T) {
	var got atomic.Int64
	sys := dispatched(t, Options{})
	root(t, sys, "sup", Ordered("sup", []Child{{Name: "a", Spec: probeSpec(probe{
		start: func(c *Context) {
			post := c.Post()
			c.Go("poster", func(ctx context.Context) {
				for ctx.Err() == nil {
					post(&work{})
					goruntime.Gosched()
				}
			})
		},
		receive: func(c *Context, _ any) { _ = c.Sender(); got.Add(1) },
	})}}, Policy{Budget: -1}))
	for n := range int64(20) {
		eventually(t, "messages", func() bool { return got.Load() > 10*n })
		_ = sys.Kill("sup/a")
	}
}

// TestPitfallP19Goexit: a handler that ends its goroutine (t.FailNow in a test) fails the actor;
// the mailbox goes on.
func TestPitfallP19Goexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		sys := dispatched(t, Options{})
		p := recorder(&j)
		p.receive = func(c *Context, msg any) {
			if msg.(*work).n == 1 {
				goruntime.Goexit()
			}
			j.add("%d gets %d", c.Incarnation(), msg.(*work).n)
		}
		root(t, sys, "a", probeSpec(p))
		sys.Send(sys.PID("a"), &work{1})
		sys.Send(sys.PID("a"), &work{2})
		synctest.Wait()
		expect(t, &j, "2 gets 2")
		if f := mailbox(t, sys, "a").Failures(); len(f) != 1 || !errors.Is(&f[0], ErrGoexit) {
			t.Errorf("failures: %+v", f)
		}
	})
}

// TestPitfallP20StaleClosures: what a dead incarnation has started, timer or goroutine, never runs
// in its successor nor while the actor is suspended.
func TestPitfallP20StaleClosures(t *testing.T) {
	var j journal
	release := make(chan struct{})
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		sys := dispatched(t, Options{})
		p := recorder(&j)
		p.start = func(c *Context) {
			if c.Incarnation() == 1 {
				post := c.Post()
				c.After(time.Second, &work{1})
				c.Go("reply", func(context.Context) { <-release; post(&work{2}) })
			}
		}
		policy := Policy{BackoffMin: time.Minute, BackoffMax: time.Minute}
		root(t, sys, "sup", Ordered("sup", []Child{{Name: "a", Spec: probeSpec(p)}}, policy))
		synctest.Wait()
		_ = sys.Kill("sup/a")
		synctest.Wait()
		close(release)
		time.Sleep(time.Hour)
		expect(t, &j)
		if s := state(t, sys, "sup/a"); s.Incarnation != 2 || s.State != StateIdle || s.Posted != 0 {
			t.Errorf("a: %+v", s)
		}
	})
}

// TestPitfallP22MessageOfAFailure: it is named without its envelope, and a failing Start as
// "Started".
func TestPitfallP22MessageOfAFailure(t *testing.T) {
	var got []string
	var j journal
	sim, sys := simulated(t, 1, func(o *Options) {
		o.OnFault = func(f *messages.Fault) { got = append(got, f.GetMessage()) }
	})
	p := recorder(&j)
	p.start = func(c *Context) {
		if c.Incarnation() == 1 {
			panic("in Start")
		}
	}
	root(t, sys, "a", probeSpec(p))
	settle(t, sim)
	sys.Send(sys.PID("a"), requestFrom(mailbox(t, sys, "a"), &boom{}))
	settle(t, sim)
	if len(got) != 2 || got[0] != "Started" || got[1] != "boom" {
		t.Errorf("messages: %q", got)
	}
}

// TestPitfallP23NameOfTheDead: a PID outlives its actor and reaches the next one of the name.
// Supervisors therefore compare PIDs as pointers and incarnations as numbers, and a Ready of the
// dead opens no barrier.
func TestPitfallP23NameOfTheDead(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	children := scripted(&j, "a")(Child{Name: "a"}, Child{Name: "b"})
	root(t, sys, "sup", Ordered("sup", children, Policy{}))
	settle(t, sim)
	dead := mailbox(t, sys, "sup/a")
	dead.stop()
	settle(t, sim)
	expect(t, &j, "start a 1", "stop a 1", "start a 2") // a new actor, but its numbers go on
	for _, ready := range []any{
		requestFrom(dead, &messages.Ready{Incarnation: 1}),
		requestFrom(dead, &messages.Ready{Incarnation: 2}),
		requestFrom(mailbox(t, sys, "sup/a"), &messages.Ready{Incarnation: 1}),
		&messages.Ready{Incarnation: 2},
	} {
		sys.Send(sys.PID("sup"), ready)
		settle(t, sim)
		expect(t, &j)
	}
	sys.Send(dead.pid, &keyed{}) // the old PID reaches the new actor, which is ready then
	settle(t, sim)
	expect(t, &j, "start b 1")
}

package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// TestAfter: timers fire in the order of their instants, unless they were cancelled.
func TestAfter(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	p := recorder(&j)
	p.start = func(c *Context) {
		c.After(3*time.Second, &work{3})
		c.After(time.Second, &work{1})
		cancel := c.After(2*time.Second, &work{2})
		c.After(1500*time.Millisecond, &work{15})
		cancel()
		cancel() // again is harmless
		c.After(0, &work{0})
	}
	root(t, sys, "a", probeSpec(p))
	run(t, sim, 10*time.Second)
	if got := j.take(); !slices.Equal(got, []string{"work 0", "work 1", "work 15", "work 3"}) {
		t.Errorf("received %v", got)
	}
}

// TestCancelReachesTheMailbox: after cancel the message is not delivered even if its time had come
// and it was waiting.
func TestCancelReachesTheMailbox(t *testing.T) {
	var j journal
	var cancel func()
	sim, sys := simulated(t, 1, nil)
	p := recorder(&j)
	p.start = func(c *Context) {
		cancel = c.After(time.Second, &keyed{"k", 1})
		c.After(time.Second, &work{1})
	}
	root(t, sys, "a", probeSpec(p))
	run(t, sim, 0)
	box := mailbox(t, sys, "a")
	box.Hold()
	run(t, sim, 2*time.Second)
	if p := box.Pending(); len(p) != 2 || p[0].Type != "keyed" || p[0].Key != "k" {
		t.Fatalf("pending: %+v", p)
	}
	cancel()
	box.Release()
	settle(t, sim)
	if got := j.take(); !slices.Equal(got, []string{"work 1"}) {
		t.Errorf("received %v", got)
	}
	if s := box.State(); s.Stale != 1 {
		t.Errorf("state: %+v", s)
	}
}

// TestNothingOfADeadIncarnationArrives: neither its timers nor what its goroutines post, and
// nothing new begins after its end.
func TestNothingOfADeadIncarnationArrives(t *testing.T) {
	var j journal
	var posts []func(any)
	sim, sys := simulated(t, 1, nil)
	p := recorder(&j)
	p.start = func(c *Context) {
		if c.Incarnation() == 1 {
			c.After(time.Second, &work{1})
			posts = append(posts, c.Post())
			c.Post()(&work{2})
			c.Fail(errors.New("enough"))
			c.Post()(&work{3})
		}
	}
	p.stop = func(c *Context) {
		c.After(0, &work{4})
		c.Post()(&work{5})
		c.Send(c.Self(), &work{6}) // like from any other sender: it waits for the next incarnation
	}
	root(t, sys, "a", probeSpec(p))
	settle(t, sim)
	posts[0](&work{7})
	run(t, sim, time.Minute)
	if got := j.take(); !slices.Equal(got, []string{"work 6"}) {
		t.Errorf("received %v", got)
	}
	if f := mailbox(t, sys, "a").Failures(); len(f) != 1 || f[0].Reason != "enough" || f[0].Message != "Started" || f[0].Stack != "" {
		t.Errorf("failures: %+v", f)
	}
}

// TestGo: the context of a goroutine ends with the incarnation, also with one that failed and waits
// for its restart.
func TestGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		sys := dispatched(t, Options{})
		p := recorder(&j)
		p.start = func(c *Context) {
			post, incarnation := c.Post(), c.Incarnation()
			c.Go("loop", func(ctx context.Context) {
				post(&work{int(incarnation)})
				<-ctx.Done()
				j.add("goroutine %d ends", incarnation)
				post(&work{-1})
			})
		}
		root(t, sys, "sup", Ordered("sup", []Child{{Name: "a", Spec: probeSpec(p)}}, Policy{BackoffMin: time.Hour, BackoffMax: time.Hour}))
		synctest.Wait()
		sys.Send(sys.PID("sup/a"), &boom{})
		synctest.Wait()
		if got := j.take(); !slices.Equal(got, []string{"work 1", "goroutine 1 ends"}) {
			t.Errorf("before the restart: %v", got)
		}
		time.Sleep(2 * time.Hour)
		if got := j.take(); !slices.Equal(got, []string{"work 2"}) {
			t.Errorf("after the restart: %v", got)
		}
	})
}

// TestPanicInGoroutine: it fails the actor with the goroutine's stack, and only the incarnation
// that it belongs to.
func TestPanicInGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var faults []*messages.Fault
		late := make(chan struct{})
		sys := dispatched(t, Options{OnFault: func(f *messages.Fault) { faults = append(faults, f) }})
		root(t, sys, "a", probeSpec(probe{start: func(c *Context) {
			if c.Incarnation() == 1 {
				c.Go("quick", func(context.Context) { panic("quick panic") })
				c.Go("late", func(context.Context) { <-late; panic("late panic") })
			}
		}}))
		synctest.Wait()
		close(late)
		synctest.Wait()
		if len(faults) != 1 || faults[0].GetReason() != "quick panic" || faults[0].GetMessage() != "goroutine quick" ||
			!strings.Contains(faults[0].GetStack(), "TestPanicInGoroutine") {
			t.Errorf("faults: %v", faults)
		}
		if s := state(t, sys, "a"); s.Incarnation != 2 || s.State != StateIdle {
			t.Errorf("state: %+v", s)
		}
	})
}

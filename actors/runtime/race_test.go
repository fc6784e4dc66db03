package runtime

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// TestOrderedOnDispatcher is the campaign of TestOrderedSimulated on protoactor's dispatcher and
// the real clock. The race detector finds races inside one message, which a simulation cannot see.
func TestOrderedOnDispatcher(t *testing.T) {
	const senders, each = 4, 1000
	var done, lost atomic.Int64
	var quiet atomic.Bool
	sys := dispatched(t, Options{Faults: func(_ *Mailbox, msg any, phase Phase) {
		if _, ok := msg.(*work); ok && phase == Before && !quiet.Load() && rand.IntN(1000) < 3 {
			lost.Add(1)
			panic("injected")
		}
	}})
	var up atomic.Bool
	sys.observer = func(_, event string) { up.Store(event == "all-up") }
	child := probeSpec(probe{receive: func(_ *Context, msg any) {
		if _, ok := msg.(*work); ok {
			done.Add(1)
		}
	}})
	names := []string{"a", "b", "c"}
	var children []Child
	for i, name := range names {
		children = append(children, Child{Name: name, Spec: child, Reaction: []Reaction{ReactRestart, ReactRestart, ReactResync}[i]})
	}
	root(t, sys, "sup", Ordered("sup", children, Policy{Budget: -1, BackoffMax: 2 * time.Millisecond}))
	eventually(t, "the chain is up", up.Load)

	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for i := range each {
				sys.Send(sys.PID("sup/"+names[i%len(names)]), &work{})
				if i%100 == 0 {
					sys.Snapshot()
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	quiet.Store(true)
	eventually(t, "every message is handled or lost with a panic", func() bool { return done.Load()+lost.Load() == senders*each })
	eventually(t, "the chain is up again", up.Load)
	t.Logf("sent %d, handled %d, lost with panics %d", senders*each, done.Load(), lost.Load())
}

// TestDynamicOnDispatcher: membership, failures, kills, stops from outside and inspection all at
// once. In the end exactly the wanted children are left (pitfalls P4 and P5 are races inside one
// message).
func TestDynamicOnDispatcher(t *testing.T) {
	const workers, each, keys = 4, 400, 12
	var quiet atomic.Bool
	sys := dispatched(t, Options{Faults: func(*Mailbox, any, Phase) {
		if !quiet.Load() && rand.IntN(300) == 0 {
			panic("injected")
		}
	}})
	member := probeSpec(probe{
		start: func(c *Context) { c.After(time.Millisecond, &work{}); c.Post()(&keyed{"own", 1}) },
		stop: func(*Context) {
			if !quiet.Load() && rand.IntN(20) == 0 {
				panic("injected in Stop")
			}
		},
	})
	services := Dynamic("services", func(string) Spec { return member }, Policy{BackoffMax: 2 * time.Millisecond, QuarantineFor: 5 * time.Millisecond})
	root(t, sys, "root", Ordered("root", []Child{{Name: "services", Spec: services}}, Policy{Budget: -1, BackoffMax: time.Millisecond}))
	path := func(i int) string { return fmt.Sprintf("root/services/s%d", i) }
	eventually(t, "the spawner is up", func() bool { _, ok := sys.Actor("root/services"); return ok })

	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range each {
				disturbDynamic(sys, path(rand.IntN(keys)))
				if i%50 == 0 {
					sys.Snapshot()
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	quiet.Store(true)
	want := []string{"s0", "s3", "s5"}
	eventually(t, "exactly the wanted children live and are idle", func() bool {
		sys.Send(sys.PID("root/services"), ensureAll(want...))
		states := sys.Snapshot()
		for _, s := range states {
			if s.Incarnation == 0 || s.Suspended || s.State == StateStopping {
				return false
			}
		}
		return len(states) == 2+len(want)
	})
}

func disturbDynamic(sys *System, path string) {
	services, key := sys.PID("root/services"), baseName(path)
	switch rand.IntN(7) {
	case 0, 1:
		sys.Send(services, ensure(key))
	case 2:
		sys.Send(services, &messages.Release{Key: key})
	case 3:
		_ = sys.Kill(path) // it may not exist
	case 4:
		if box := sys.lookup(path); box != nil {
			box.stop()
			box.Failures()
			box.Pending()
		}
	case 5:
		sys.Send(sys.PID(path), &keyed{key, 1})
	case 6:
		sys.Send(services, &messages.Nudge{Key: key, Generation: rand.Uint64N(5)})
	}
}

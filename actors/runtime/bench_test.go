package runtime

import (
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// countdown is a Behaviour that signals when it has received n messages.
type countdown struct {
	left int
	done chan<- struct{}
}

func (*countdown) Start(*Context) {}
func (*countdown) Stop(*Context)  {}

func (b *countdown) Receive(*Context, any) {
	if b.left--; b.left == 0 {
		b.done <- struct{}{}
	}
}

// BenchmarkOneToOne: one goroutine sends to one actor.
func BenchmarkOneToOne(b *testing.B) {
	b.ReportAllocs()
	sys := dispatched(b, Options{})
	done := make(chan struct{}, 1)
	root(b, sys, "a", Spec{Kind: "a", New: func() Behaviour { return &countdown{b.N, done} }})
	pid, msg := sys.PID("a"), &work{}
	b.ResetTimer()
	for range b.N {
		sys.Send(pid, msg)
	}
	<-done
}

// BenchmarkPingPong: two actors answer each other; each message wakes an idle actor.
func BenchmarkPingPong(b *testing.B) {
	b.ReportAllocs()
	sys := dispatched(b, Options{})
	done := make(chan struct{}, 1)
	left := b.N // owned by the actor that handles the message
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		root(b, sys, names[0], probeSpec(probe{receive: func(c *Context, msg any) {
			if left--; left <= 0 {
				done <- struct{}{}
				return
			}
			c.Send(c.PID(names[1]), msg)
		}}))
	}
	b.ResetTimer()
	sys.Send(sys.PID("a"), &work{})
	<-done
}

// BenchmarkOneToMany: one goroutine sends to ten thousand actors in turn.
func BenchmarkOneToMany(b *testing.B) {
	const receivers = 10_000
	b.ReportAllocs()
	sys := dispatched(b, Options{})
	var wg sync.WaitGroup
	wg.Add(b.N)
	spawnMany(b, sys, receivers, func(*Context, any) { wg.Done() })
	pids := children(b, sys, receivers)
	msg := &work{}
	b.ResetTimer()
	for i := range b.N {
		sys.Send(pids[i%receivers].pid, msg)
	}
	wg.Wait()
}

// BenchmarkCoalescing: a thousand keys are posted again and again to a mailbox that does not get
// round to it.
func BenchmarkCoalescing(b *testing.B) {
	b.ReportAllocs()
	sys := dispatched(b, Options{})
	root(b, sys, "a", probeSpec(probe{}))
	mailbox(b, sys, "a").Hold()
	renders := make([]*messages.Render, 1000)
	for i := range renders {
		renders[i] = &messages.Render{Key: fmt.Sprintf("default/svc-%d", i)}
	}
	pid := sys.PID("a")
	b.ResetTimer()
	for i := range b.N {
		sys.Send(pid, renders[i%len(renders)])
	}
	b.StopTimer()
	if s := state(b, sys, "a"); s.User > len(renders) {
		b.Errorf("%d messages wait", s.User)
	}
}

// spawnMany makes n children of a Dynamic supervisor and waits until they are idle.
func spawnMany(b *testing.B, sys *System, n int, receive func(*Context, any)) {
	b.Helper()
	root(b, sys, "services", Dynamic("services", func(string) Spec { return probeSpec(probe{receive: receive}) }, Policy{}))
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("default/svc-%d", i)
	}
	sys.Send(sys.PID("services"), ensureAll(keys...))
	for len(sys.boxesNow()) != n+1 || !allIdle(sys) {
		time.Sleep(100 * time.Microsecond)
	}
}

func (s *System) boxesNow() []*Mailbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	boxes := make([]*Mailbox, 0, len(s.boxes))
	for _, b := range s.boxes {
		boxes = append(boxes, b)
	}
	return boxes
}

func allIdle(sys *System) bool {
	for _, box := range sys.boxesNow() {
		if box.State().State != StateIdle {
			return false
		}
	}
	return true
}

func children(b *testing.B, sys *System, n int) []*Mailbox {
	b.Helper()
	boxes := make([]*Mailbox, n)
	for i := range boxes {
		boxes[i] = mailbox(b, sys, fmt.Sprintf("services/default~svc-%d", i))
	}
	return boxes
}

// BenchmarkSpawn10k: ten thousand service actors are spawned, and stopped again outside of the
// time.
func BenchmarkSpawn10k(b *testing.B) {
	const n = 10_000
	b.ReportAllocs()
	for range b.N {
		b.StopTimer()
		sys := NewSystem(Options{})
		b.StartTimer()
		spawnMany(b, sys, n, nil)
		b.StopTimer()
		if err := sys.Shutdown(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/actor")
}

// BenchmarkSnapshot10k: the statistics of ten thousand actors are read, ordered by path.
func BenchmarkSnapshot10k(b *testing.B) {
	b.ReportAllocs()
	sys := dispatched(b, Options{})
	spawnMany(b, sys, 10_000, nil)
	b.ResetTimer()
	for range b.N {
		if n := len(sys.Snapshot()); n != 10_001 {
			b.Fatal(n)
		}
	}
}

// BenchmarkIdleActor measures the memory of an idle service actor that has worked before.
func BenchmarkIdleActor(b *testing.B) {
	const n = 10_000
	for range b.N {
		sys := NewSystem(Options{})
		before := heapInUse()
		spawnMany(b, sys, n, nil)
		for _, box := range children(b, sys, n) {
			for i := range 20 {
				sys.Send(box.pid, &work{i})
			}
		}
		for !allIdle(sys) {
			time.Sleep(100 * time.Microsecond)
		}
		b.ReportMetric(float64(heapInUse()-before)/n, "B/actor")
		b.ReportMetric(float64(goruntime.NumGoroutine()), "goroutines")
		if err := sys.Shutdown(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func heapInUse() uint64 {
	for range 3 { // pools are emptied in two steps
		goruntime.GC()
	}
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

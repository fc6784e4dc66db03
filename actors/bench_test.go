package actors

import (
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// bigName is the name of the i-th service of a large cluster.
func bigName(i int) string { return fmt.Sprintf("svc%05d", i) }

// bigSlice is its slice of five endpoints, one of them on this node; every turn has another one.
func bigSlice(i, turn int) *messages.EndpointSlice {
	addresses := []string{fmt.Sprint("10.1.1.", 2+i%4)}
	for k := range 4 {
		addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d", 2+k, i/250%250, 1+i%250))
	}
	if turn > 0 {
		addresses[4] = fmt.Sprintf("10.9.%d.%d", turn/250%250, 1+turn%250)
	}
	return testSlice(bigName(i), addresses...)
}

// bigWorld is a node in a cluster of n services with five endpoints each. The troupe has the intervals of production.
func bigWorld(b *testing.B, n int) *world {
	b.Helper()
	w := newWorld(b)
	w.timing = Timing{}
	w.source.commit(func(s *kube.Store) {
		for i := range n {
			s.SetService(testService(bigName(i), fmt.Sprintf("10.%d.%d.%d", 100+i/62500, i/250%250, 1+i%250)), nil)
			s.SetSlice(bigSlice(i, 0), nil)
		}
	})
	return w
}

// ready waits until the node is.
func (w *world) ready() {
	w.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !w.readiness.Load().Ready; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not ready: %s", w.readiness.Load().Reasons())
		}
	}
}

// heap is what is alive.
func heap() uint64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkColdStart is an agent that meets an empty VPP: from the spawn of the root actor until every service is in VPP. B/service is what
// the troupe keeps in memory for each, without the source and VPP.
func BenchmarkColdStart(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			kept := uint64(0)
			for b.Loop() {
				b.StopTimer()
				w := bigWorld(b, n)
				b.StartTimer()
				w.start()
				w.ready()
				b.StopTimer()
				if rows := len(w.vpp.Rows()); rows != n {
					b.Fatalf("%d rows in VPP, want %d", rows, n)
				}
				with := heap()
				w.stop()
				w.system, w.deps = nil, nil
				kept += with - heap()
				_ = w.vpp.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(kept)/float64(b.N)/float64(n), "B/service")
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "services/s")
		})
	}
}

// BenchmarkWarmStart is an agent that is restarted on a VPP that has everything: nothing is written.
func BenchmarkWarmStart(b *testing.B) {
	w := bigWorld(b, 10_000)
	w.start()
	w.ready()
	w.stop()
	before := w.vpp.Counters().Mutating()
	b.ReportAllocs()
	for b.Loop() {
		w.start()
		w.ready()
		b.StopTimer()
		w.stop()
		b.StartTimer()
	}
	if n := w.vpp.Counters().Mutating() - before; n != 0 {
		b.Errorf("%d messages changed VPP, want 0", n)
	}
}

// finished is an observer that says when VPP has carried out a batch.
type finished chan struct{}

func (finished) Synced(string, time.Duration, bool) {}
func (finished) Programmed(time.Duration)           {}
func (f finished) Operations(string, int, int, int) { f <- struct{}{} }
func (finished) InputErrors(int)                    {}
func (finished) Healed(string, string, int)         {}
func (finished) Drifted(string, int)                {}

// BenchmarkChange is one changed endpoint among many services: from the source until VPP has acknowledged it.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := bigWorld(b, n)
			batches := make(finished, 1000)
			w.observer = batches
			w.start()
			w.ready()
			for len(batches) > 0 {
				<-batches
			}
			turn := 0
			b.ReportAllocs()
			for b.Loop() {
				turn++
				w.change(func(s *kube.Store) { s.SetSlice(bigSlice(n/2, turn), nil) })
				<-batches
			}
		})
	}
}

// BenchmarkRendererRestart is a renderer that dies among 10,000 services: until it is in sync again. Nothing is written.
func BenchmarkRendererRestart(b *testing.B) {
	w := bigWorld(b, 10_000)
	w.start()
	w.ready()
	before := w.vpp.Counters().Mutating()
	b.ReportAllocs()
	for b.Loop() {
		epoch := w.rendererEpoch()
		if err := w.system.Kill(PathRenderer(nat)); err != nil {
			b.Fatal(err)
		}
		for w.rendererEpoch() == epoch || !w.readiness.Load().Ready {
			time.Sleep(time.Millisecond)
		}
	}
	if n := w.vpp.Counters().Mutating() - before; n != 0 {
		b.Errorf("%d messages changed VPP, want 0", n)
	}
}

// rendererEpoch is the epoch that readiness speaks of.
func (w *world) rendererEpoch() uint64 {
	for _, part := range w.readiness.Load().Parts {
		if part.Name == nat {
			return part.Epoch
		}
	}
	return 0
}

package actors_test

import (
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
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
	return probe.Slice(bigName(i), addresses...)
}

// inBoth gives the i-th service IPv6 besides: a cluster IP and a slice of five endpoints.
func inBoth(s *kube.Store, i int) {
	service := probe.Service(bigName(i), fmt.Sprintf("10.%d.%d.%d", 100+i/62500, i/250%250, 1+i%250))
	service.ClusterIps = append(service.ClusterIps, fmt.Sprintf("fd00:96::%x", 16+i))
	service.IpFamilies = []messages.IPFamily{messages.IPFamily_IPV4, messages.IPFamily_IPV6}
	s.Set(service, nil)
	slice := bigSlice(i, 0)
	slice.Name, slice.Family = slice.GetName()+"-6", messages.IPFamily_IPV6
	for k, e := range slice.GetEndpoints() {
		e.Address = fmt.Sprintf("fd00:%x::%x", 1+k, 2+i)
	}
	s.Set(slice, nil)
}

// bigWorld is a node in a cluster of n services with five endpoints each, dual: of each family. The
// troupe has the intervals of production; the observer may be nil.
func bigWorld(b *testing.B, n int, dual bool, observer report.Observer) *actorstest.World {
	b.Helper()
	w := actorstest.New(b, actorstest.Config{IPv6: dual, Deps: func(d *actors.Deps) { d.Timing, d.Observer = actors.Timing{}, observer }})
	w.Source.Change(func(s *kube.Store) {
		for i := range n {
			s.Set(probe.Service(bigName(i), fmt.Sprintf("10.%d.%d.%d", 100+i/62500, i/250%250, 1+i%250)), nil)
			s.Set(bigSlice(i, 0), nil)
			if dual {
				inBoth(s, i)
			}
		}
	})
	return w
}

// ready waits until the node is.
func ready(w *actorstest.World) {
	w.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !w.Readiness.Load().Ready; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("not ready: %s", w.Readiness.Load().Reasons())
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

// BenchmarkColdStart is an agent that meets an empty VPP: from the spawn of the root actor until
// every service is in VPP. B/service is what the troupe keeps in memory for each, without the
// source and VPP.
func BenchmarkColdStart(b *testing.B) {
	for _, c := range []struct {
		n    int
		dual bool
	}{{1000, false}, {5000, false}, {5000, true}, {10_000, false}} {
		n, name := c.n, fmt.Sprint(c.n)
		if c.dual {
			name += " of both families"
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			kept := uint64(0)
			for b.Loop() {
				b.StopTimer()
				w := bigWorld(b, n, c.dual, nil)
				b.StartTimer()
				w.Start()
				ready(w)
				b.StopTimer()
				if rows := len(w.VPP.Rows()); rows != n {
					b.Fatalf("%d rows in VPP, want %d", rows, n)
				}
				with := heap()
				w.Stop()
				w.System, w.Deps = nil, nil
				kept += with - heap()
				_ = w.VPP.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(kept)/float64(b.N)/float64(n), "B/service")
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "services/s")
		})
	}
}

// BenchmarkWarmStart is an agent that is restarted on a VPP that has everything: nothing is
// written.
func BenchmarkWarmStart(b *testing.B) {
	w := bigWorld(b, 10_000, false, nil)
	w.Start()
	ready(w)
	w.Stop()
	before := w.Writes()
	b.ReportAllocs()
	for b.Loop() {
		w.Start()
		ready(w)
		b.StopTimer()
		w.Stop()
		b.StartTimer()
	}
	if n := w.Writes() - before; n != 0 {
		b.Errorf("%d messages changed VPP, want 0", n)
	}
}

// finished is an observer that says when VPP has carried out a batch.
type finished struct {
	report.None
	done chan struct{}
}

func (f finished) Operations(string, int, int, int) { f.done <- struct{}{} }

// BenchmarkChange is one changed endpoint among many services: from the source until VPP has
// acknowledged it.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			batches := finished{done: make(chan struct{}, 1000)}
			w := bigWorld(b, n, false, batches)
			w.Start()
			ready(w)
			for len(batches.done) > 0 {
				<-batches.done
			}
			turn := 0
			b.ReportAllocs()
			for b.Loop() {
				turn++
				w.Source.Change(func(s *kube.Store) { s.Set(bigSlice(n/2, turn), nil) })
				<-batches.done
			}
		})
	}
}

// BenchmarkRendererRestart is a renderer that dies among 10,000 services: until it is in sync
// again. Nothing is written.
func BenchmarkRendererRestart(b *testing.B) {
	w := bigWorld(b, 10_000, false, nil)
	w.Start()
	ready(w)
	before := w.Writes()
	b.ReportAllocs()
	for b.Loop() {
		epoch := rendererEpoch(w)
		if err := w.System.Kill(address.Renderer("nat44")); err != nil {
			b.Fatal(err)
		}
		for rendererEpoch(w) == epoch || !w.Readiness.Load().Ready {
			time.Sleep(time.Millisecond)
		}
	}
	if n := w.Writes() - before; n != 0 {
		b.Errorf("%d messages changed VPP, want 0", n)
	}
}

// rendererEpoch is the epoch that readiness speaks of.
func rendererEpoch(w *actorstest.World) uint64 {
	for _, part := range w.Readiness.Load().Parts {
		if part.Name == "nat44" {
			return part.Epoch
		}
	}
	return 0
}

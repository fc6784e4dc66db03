package actors_test

import (
	"fmt"
	"net/netip"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// greedy is a service of a tenant with so many frontends, ports times external addresses, and its slice of two endpoints.
func greedy(name, ip string, ports, addresses int, first netip.Addr) (*messages.Service, *messages.EndpointSlice) {
	s, slice := probe.Service(name, ip), probe.Slice(name, "10.1.1.2", "10.1.1.3")
	s.Namespace, slice.Namespace = "evil", "evil"
	s.Ports, slice.Ports = nil, nil
	for i := range ports {
		port := fmt.Sprint("p", i)
		s.Ports = append(s.Ports, &messages.ServicePort{Name: port, Protocol: messages.Protocol_TCP, Port: uint32(1 + i)})
		slice.Ports = append(slice.Ports, &messages.EndpointPort{Name: port, Protocol: messages.Protocol_TCP, Port: 8080})
	}
	for range addresses {
		s.ExternalIps = append(s.ExternalIps, first.String())
		first = first.Next()
	}
	return s, slice
}

// BenchmarkGreedyTenant is a namespace that asks for very many frontends at once while an endpoint of another one changes: how long that takes from the
// source until VPP has it, and how much memory the process takes, the simulated VPP and the source included.
func BenchmarkGreedyTenant(b *testing.B) {
	limits := service.Limits{Service: service.Size{Frontends: 4096, Backends: 262_144}, Namespace: service.Size{Frontends: 65_536, Backends: 1_048_576}}
	for name, tt := range map[string]struct {
		limits                     service.Limits
		services, ports, addresses int
		rows                       int
	}{
		"one service, limited":       {limits, 1, 500, 500, 0},
		"a namespace at its limits":  {limits, 62, 64, 63, 16 * 4096},
		"one service without limits": {service.Limits{}, 1, 500, 499, 250_000},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				serving := actorstest.Serving()
				serving.Limits = tt.limits
				w := actorstest.New(b, actorstest.Config{Serving: serving, Deps: func(d *actors.Deps) { d.Timing = actors.Timing{} }})
				w.Source.Serve("web", "10.96.0.10", "10.1.1.3")
				w.Start()
				ready(w)
				b.StartTimer()
				greed(b, w, tt.services, tt.ports, tt.addresses, tt.rows)
				b.StopTimer()
				w.Stop()
				_ = w.VPP.Close()
				b.StartTimer()
			}
		})
	}
}

// greed applies the services of the greedy tenant, changes an endpoint of the other one again and again until VPP holds what it should of all, and
// reports the longest time that took.
func greed(b *testing.B, w *actorstest.World, services, ports, addresses, rows int) {
	first := netip.MustParseAddr("203.0.0.1")
	w.Source.Change(func(s *kube.Store) {
		for i := range services {
			one, slice := greedy(fmt.Sprintf("greedy%03d", i), fmt.Sprint("10.97.0.", 1+i), ports, addresses, first)
			s.SetService(one, nil)
			s.SetSlice(slice, nil)
			for range addresses {
				first = first.Next()
			}
		}
	})
	began := time.Now()
	var longest, all time.Duration
	var memory uint64
	for turn := 0; turn < 3 || all == 0; turn++ {
		asked := time.Now()
		endpoint := fmt.Sprint("10.1.1.", 100+turn%100)
		w.Source.Change(func(s *kube.Store) { s.SetSlice(probe.Slice("web", endpoint), nil) })
		for port := uint16(20_000); ; port++ {
			from, to := netip.AddrPortFrom(netip.MustParseAddr("10.1.1.2"), port), netip.MustParseAddrPort("10.96.0.10:80")
			v := w.VPP.Send(simulator.Packet{In: "pod2", Src: from, Dst: to, Proto: simulator.ProtoTCP})
			if v.Dst.Addr() == netip.MustParseAddr(endpoint) {
				break
			}
			time.Sleep(10 * time.Millisecond)
			if time.Since(asked) > time.Minute {
				b.Fatalf("the other tenant waits for more than a minute: %s", w.Readiness.Load().Reasons())
			}
		}
		longest = max(longest, time.Since(asked))
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		memory = max(memory, m.Sys-m.HeapReleased)
		if all == 0 && int(w.VPP.Counters().Of("nat44_add_del_lb_static_mapping")) > rows {
			all = time.Since(began)
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.ReportMetric(longest.Seconds(), "s/change")
	b.ReportMetric(all.Seconds(), "s/all")
	b.ReportMetric(float64(memory)/(1<<20), "MB")
}

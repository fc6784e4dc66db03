package actors_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// TestChurnOfATenantIsNoIllness: many ports and endpoints of a service change twice a second,
// faster than VPP takes the changes. The service is never in sync; yet no change waits for long, so
// the node stays healthy and ready. When VPP hangs, the clock runs.
func TestChurnOfATenantIsNoIllness(t *testing.T) {
	if testing.Short() {
		t.Skip("a simulation has one goroutine: the race detector has nothing to find")
	}
	waits := &status.PendingSince{}
	stuck := false
	config := actorstest.Config{Deps: func(d *actors.Deps) { d.Timing, d.Pending = actors.Timing{}, waits }}
	actorstest.Simulate(t, 1, config, func(w *actorstest.World) {
		w.Settled()
		s, slice := greedy("greedy", "10.97.0.1", 40, 0, netip.Addr{})
		w.Source.Change(func(store *kube.Store) { store.Set(s, nil) })
		w.Settled()
		w.Stream.Veto = func(req api.Message) error {
			switch {
			case !virtual.Changes(req):
			case stuck:
				w.Sim.Sleep(time.Hour, func() bool { return !stuck })
			default:
				// A turn would take 1.6 s of VPP, three times its length: 40 rows
				// with ten endpoints that come (two messages), drain (two) and go
				// (four). Without drains that were 2 ms for each of 800 messages.
				w.Sim.Sleep(500*time.Microsecond, nil)
			}
			return nil
		}
		behind := func() time.Duration {
			var longest time.Duration
			for _, since := range []time.Time{waits.Oldest(nil), w.Readiness.Load().Behind("watch", "nodes")} {
				if !since.IsZero() {
					longest = max(longest, w.Sim.Now().Sub(since))
				}
			}
			return longest
		}
		synced := 0
		for turn := range 240 {
			slice.Endpoints = nil
			for i := range 10 {
				endpoint := fmt.Sprintf("10.1.%d.%d", 2+i, 1+turn%250)
				slice.Endpoints = append(slice.Endpoints, &messages.Endpoint{Address: endpoint, Ready: true, Serving: true, Node: probe.Node})
			}
			copied := &messages.EndpointSlice{
				Namespace: slice.GetNamespace(), Name: slice.GetName(), Service: slice.GetService(), Family: slice.GetFamily(), Ports: slice.GetPorts(),
				Endpoints: slice.GetEndpoints(),
			}
			w.Source.Change(func(store *kube.Store) { store.Set(copied, nil) })
			if err := w.Sim.RunFor(500 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if status := w.Statuses()["evil/greedy"]; len(status.GetRenders()) == 2 && status.GetRenders()[0].GetState() == messages.RenderState_RENDER_IN_SYNC {
				synced++
			}
			if got := behind(); got > 10*time.Second || !w.Readiness.Load().Ready {
				t.Fatalf("turn %d: a change has waited for %v: %s", turn, got, w.Readiness.Load().Reasons())
			}
		}
		if synced > 10 {
			t.Errorf("in sync after %d of 240 changes: the story is about a service that never is", synced)
		}
		stuck = true
		if err := w.Sim.RunFor(time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := behind(); got < 50*time.Second {
			t.Errorf("VPP does nothing for a minute, and the oldest change has waited for %v", got)
		}
		stuck, w.Stream.Veto = false, nil
		w.Settled()
		if _, alive := w.System.Actor(address.Renderer("nat44")); !alive {
			t.Error("the renderer is gone")
		}
	})
}

// greedy is a service of a tenant with so many frontends, ports times external addresses, and its
// slice of two endpoints.
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

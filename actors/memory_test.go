package actors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// hungry gives a namespace services of 1,000 ports each, with ClientIP affinity and 16 endpoints:
// each row takes 9 KB of VPP's memory.
func hungry(s *kube.Store, namespace string, first, services int) {
	for i := range services {
		name := fmt.Sprintf("hungry-%d", i)
		service := &messages.Service{
			Namespace: namespace, Name: name, Uid: namespace + name, Created: int64(1000 + i), AffinitySeconds: 600,
			ClusterIps: []string{fmt.Sprintf("fd00:96::%x", first+i)}, IpFamilies: []messages.IPFamily{messages.IPFamily_IPV6},
		}
		slice := &messages.EndpointSlice{Namespace: namespace, Name: name + "-1", Service: name, Family: messages.IPFamily_IPV6}
		for p := range uint32(1000) {
			port := fmt.Sprint("p", p)
			service.Ports = append(service.Ports, &messages.ServicePort{Name: port, Protocol: messages.Protocol_TCP, Port: 1 + p})
			slice.Ports = append(slice.Ports, &messages.EndpointPort{Name: port, Protocol: messages.Protocol_TCP, Port: 8080})
		}
		for e := range 16 {
			slice.Endpoints = append(slice.Endpoints, &messages.Endpoint{
				Address: fmt.Sprintf("fd00:9::%x", 1+e), Ready: true, Serving: true, Node: "n2",
			})
		}
		s.Set(service, nil)
		s.Set(slice, nil)
	}
}

// TestVPPsMemoryIsNotUsedUp: services that need more than VPP's heap are served in part and report
// this. The node stays ready, VPP lives, and the service of another tenant changes as before.
// Without a reserve VPP dies.
func TestVPPsMemoryIsNotUsedUp(t *testing.T) {
	const heap = 100 << 20 // 66 MiB are used, 34 MiB hold 3,900 of 5,000 rows
	serve := func(reserve int) *actorstest.World {
		w := actorstest.New(t, actorstest.Config{
			IPv6: true, VPP: simulator.Options{Heap: heap, AutoRestart: true}, Deps: func(d *actors.Deps) { d.HeapReserve = reserve },
		})
		w.Source.Serve("db", "10.96.0.99", "10.1.1.4")
		w.Start()
		w.Settled()
		w.Source.Change(func(s *kube.Store) { hungry(s, "evil", 0x1000, 5) })
		return w
	}
	t.Run("without a reserve", func(t *testing.T) {
		w := serve(0)
		w.Await("death of VPP", func() bool { return w.VPP.Incarnation() > 1 })
	})
	t.Run("with a reserve", func(t *testing.T) {
		w := serve(15)
		w.Await("shortage", func() bool {
			failed := 0
			for key, s := range w.Statuses() {
				for _, ack := range s.GetRenders() {
					if strings.HasPrefix(key, "evil/") && strings.Contains(ack.GetError(), "VPP's memory is nearly used up") {
						failed++
					}
				}
			}
			return failed > 0
		})
		w.Ready()
		w.Source.Change(func(s *kube.Store) { s.Set(probe.Slice("db", "10.1.1.4", "10.1.1.5"), nil) })
		w.Await("change of another tenant", func() bool { return w.Backends("10.96.0.99:80/TCP") == 2 })
		if n := w.VPP.Incarnation(); n != 1 {
			t.Errorf("VPP has started %d times, want once", n)
		}
		rows := w.VPP.Translations()
		if rows < 1500 || rows > 2500 {
			t.Errorf("%d translations, want about 2,100: 19 MiB of 9 KB", rows)
		}
		w.Source.Change(func(s *kube.Store) {
			for i := range 3 {
				s.Delete("Service", fmt.Sprintf("evil/hungry-%d", i))
			}
		})
		w.Until("room again", func() string { return w.NotInSync(w.Statuses()["evil/hungry-4"]) })
	})
}

// TestRoomOfTheNode: two namespaces that ask for more than services may take of VPP have the same
// share of it, one that asks for little has all.
func TestRoomOfTheNode(t *testing.T) {
	serving := actorstest.Serving()
	serving.Limits.Node.VPP = 40 << 20
	w := actorstest.New(t, actorstest.Config{IPv6: true, Serving: serving})
	w.Start()
	w.Source.Change(func(s *kube.Store) {
		hungry(s, "a", 0x1000, 4)
		hungry(s, "b", 0x2000, 4)
		hungry(s, "small", 0x3000, 1)
	})
	w.Settled()
	served := map[string]int{}
	for key, s := range w.Statuses() {
		namespace, _, _ := strings.Cut(key, "/")
		switch why := s.GetView().GetRefused(); {
		case why == "":
			served[namespace]++
		case !strings.Contains(why, "services.limits.vppMemory"):
			t.Errorf("%s: %s", key, why)
		}
	}
	if served["a"] != 2 || served["b"] != 2 || served["small"] != 1 {
		t.Errorf("served %v, want 2, 2 and 1 of 8 MiB each", served)
	}
}

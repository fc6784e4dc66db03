package routes_test

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/actors/render/routes"
	"github.com/troupe-vpp/troupe/messages"
	routesvpp "github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// withRenderer plays with the services "a/a" and "b/b"; 10.96.0.0/16 is the service network.
func withRenderer(t *testing.T, play func(s *rendertest.Stage)) {
	t.Helper()
	config := routes.Config{Networks: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}
	rendertest.Play(t, rendertest.Adapted(routes.New, config, rendertest.Rejecting), []string{"a/a", "b/b"}, play)
}

// held are the agent's routes in VPP as "prefix kind", ordered by prefix.
func held(s *rendertest.Stage) (all []string) {
	s.Helper()
	state, err := routesvpp.Read(context.Background(), s.VPP.Reader(), nil, nil)
	if err != nil {
		s.Fatal(err)
	}
	kinds := map[netip.Prefix]string{}
	for place, kind := range state.Routes {
		kinds[place.Prefix] = kind.String()
	}
	for _, p := range slices.SortedFunc(maps.Keys(kinds), netip.Prefix.Compare) {
		all = append(all, p.String()+" "+kinds[p])
	}
	return all
}

func expect(s *rendertest.Stage, when string, want ...string) {
	s.Helper()
	if d := cmp.Diff(want, held(s), cmpopts.EquateEmpty()); d != "" {
		s.Errorf("%s: routes in VPP (-want +got):\n%s", when, d)
	}
}

// told compares what a service is told of frontends that are not refused as Kubernetes asks.
func told(s *rendertest.Stage, when, key string, want ...string) {
	s.Helper()
	var said []string
	for _, a := range s.Ack(key).GetApproximations() {
		said = append(said, a.GetFrontend()+" "+a.GetRendered()+" "+a.GetWhy())
	}
	if d := cmp.Diff(want, said, cmpopts.EquateEmpty()); d != "" {
		s.Errorf("%s: %s is told (-want +got):\n%s", when, key, d)
	}
}

// external is a service without endpoints, or one that drops, with load-balancer addresses.
func external(key string, action messages.Action, addresses ...string) *messages.ServiceView {
	v := rendertest.Rejecting(key, 1, addresses...)
	for _, f := range v.Frontends {
		f.Scope, f.Kind, f.Action = messages.Scope_SCOPE_EXTERNAL, messages.FrontendKind_KIND_LOAD_BALANCER_IP, action
	}
	return v
}

const network = "10.96.0.0/16 reject"

// TestRoutesWaitForTheAddressesOfHosts: without the list of services these are not known, and an
// address of a host never gets a route.
func TestRoutesWaitForTheAddressesOfHosts(t *testing.T) {
	withRenderer(t, func(s *rendertest.Stage) {
		expect(s, "before the list")
		s.Render(1, external("a/a", messages.Action_ACTION_REJECT, "192.168.16.1", "192.168.16.9", "203.0.113.2", "203.0.113.7"))
		begin := rendertest.BeginMessage(1, "a/a")
		begin.NodeAddresses = []string{"203.0.113.2"}
		s.Tell(begin)
		// 192.168.16.9 may be a neighbour of VPP
		expect(s, "with the addresses of the cluster", network, "203.0.113.7/32 reject")
		set := s.Interfaces(2, "uplink0", "pod2")
		set.Interfaces[0].Addresses = []string{"203.0.113.7/32"}
		s.Tell(set)
		expect(s, "203.0.113.7 is an address of VPP", network)
		begin = rendertest.BeginMessage(2, "a/a")
		s.Tell(begin)
		expect(s, "203.0.113.2 is not an address of a host", network, "203.0.113.2/32 reject")
	})
}

// TestContestedAddressesWaitForTheBarrier: an external address may belong to another service; a
// cluster IP and a service network do not. A route of an earlier run stays until every service has
// rendered.
func TestContestedAddressesWaitForTheBarrier(t *testing.T) {
	withRenderer(t, func(s *rendertest.Stage) {
		s.Begin(1, "a/a", "b/b")
		expect(s, "the list", network)
		both := rendertest.Rejecting("a/a", 1, "10.96.0.1")
		both.Frontends = append(both.Frontends, external("a/a", messages.Action_ACTION_REJECT, "203.0.113.7").Frontends...)
		s.Render(1, both)
		expect(s, "before the barrier", network, "10.96.0.1/32 reject")
		if s.State("a/a") != rendertest.Pending {
			s.Errorf("acknowledged %v", s.Ack("a/a"))
		}
		s.Render(1, rendertest.Rejecting("b/b", 1, "10.96.0.2"))
		expect(s, "after the barrier", network, "10.96.0.1/32 reject", "10.96.0.2/32 reject", "203.0.113.7/32 reject")
		s.Kill()
		s.Connected()
		s.Found(2)
		s.Begin(1, "a/a", "b/b")
		s.Render(2, rendertest.Rejecting("a/a", 1, "10.96.0.3"))
		expect(s, "an earlier run", network, "10.96.0.1/32 reject", "10.96.0.2/32 reject", "10.96.0.3/32 reject", "203.0.113.7/32 reject")
		s.Render(2, external("b/b", messages.Action_ACTION_DROP, "203.0.113.7"))
		expect(s, "every service has rendered", network, "10.96.0.3/32 reject")
	})
}

// TestTheMirrorDoesNotRefuse: that a service has no endpoints is only known from the cluster; the
// service networks are refused all the same.
func TestTheMirrorDoesNotRefuse(t *testing.T) {
	withRenderer(t, func(s *rendertest.Stage) {
		provisional := rendertest.BeginMessage(1, "a/a")
		provisional.Provisional = true
		s.Tell(provisional)
		s.Serve("a/a", 1, "10.96.0.1")
		s.Run(time.Second)
		expect(s, "on the list of the mirror", network)
		if h := s.Health(); !h.GetOk() || h.GetReason() == "" {
			s.Errorf("health %v", h)
		}
		s.Begin(2, "a/a")
		expect(s, "on the list of the cluster", network, "10.96.0.1/32 reject")
	})
}

// TestServicesShareARoute: it stays for the other one, and the strongest wish counts.
func TestServicesShareARoute(t *testing.T) {
	withRenderer(t, func(s *rendertest.Stage) {
		s.Begin(1, "a/a", "b/b")
		s.Render(1, external("a/a", messages.Action_ACTION_REJECT, "203.0.113.7"))
		s.Render(1, external("b/b", messages.Action_ACTION_REJECT, "203.0.113.7"))
		expect(s, "both", network, "203.0.113.7/32 reject")
		told(s, "both", "a/a", "203.0.113.7:80/TCP reject: host unreachable VPP's session layer is off: "+
			"VPP answers with ICMP host unreachable on every port of the address: TCP clients fail at once, UDP clients only time out")
		before := s.Writes()
		s.Serve("a/a", 2)
		if expect(s, "one", network, "203.0.113.7/32 reject"); s.Writes() != before || s.State("a/a") != rendertest.Retired {
			s.Errorf("%d writes, acknowledged %v", s.Writes()-before, s.Ack("a/a"))
		}
		// it is served elsewhere
		s.Render(3, external("a/a", messages.Action_ACTION_DROP, "203.0.113.7"))
		expect(s, "one leaves the address to the network", network)
		told(s, "one leaves the address to the network", "b/b", "203.0.113.7:80/TCP no row: the packet follows the routes of VPP another service has the address, or a host may have it")
		if s.State("a/a") != rendertest.InSync || s.State("b/b") != rendertest.InSync {
			s.Errorf("acknowledged %v and %v", s.Ack("a/a"), s.Ack("b/b"))
		}
	})
}

// TestPacketsAreRefused: what clients see.
func TestPacketsAreRefused(t *testing.T) {
	withRenderer(t, func(s *rendertest.Stage) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.96.0.1")
		for dst, want := range map[string]simulator.Action{"10.96.0.1:80": simulator.Rejected, "10.96.7.7:80": simulator.Rejected, "203.0.113.7:80": simulator.Delivered} {
			got := s.VPP.VPP.Send(simulator.Packet{
				In: "pod2", Src: netip.MustParseAddrPort("10.1.1.2:40000"), Dst: netip.MustParseAddrPort(dst), Proto: simulator.ProtoTCP, Flags: simulator.SYN,
			})
			if got.Action != want {
				s.Errorf("a packet to %s: %s, want %s", dst, got, want)
			}
		}
	})
}

// TestVPPRefuses: session layer, and what the interfaces say => kind of the routes, the number of
// writes, and what the service is told. Routes change in place.
func TestVPPRefuses(t *testing.T) {
	const tables, tables6 = "interface pod2 is in table 2", "VPP has the IPv6 table 2"
	const off, unreachable = routesvpp.NoSessionLayer, ": VPP answers with ICMP host unreachable: TCP clients fail at once, UDP clients only time out"
	withRenderer(t, func(s *rendertest.Stage) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.96.0.1", "fd96::1")
		layer, before := false, s.Writes()
		for i, c := range []struct {
			name                    string
			layer                   bool
			unanswered, unanswered6 string
			writes                  int
			why, why6               string // "" = the route is local
		}{
			{"no session layer", false, "", "", 0, off, off},
			{"no session layer, and tables", false, tables, tables6, 0, off, off},
			{"the session layer is on", true, "", "", 4, "", ""},
			{"a pod comes in another table", true, tables, "", 3, tables, tables},
			{"the same", true, tables, "", 0, tables, tables},
			{"the other reason alone", true, "", tables6, 2, "", tables6},
			{"it leaves", true, "", "", 1, "", ""},
			{"the session layer is off", false, "", "", 4, off, off},
		} {
			if c.layer != layer {
				layer = c.layer
				s.VPP.VPP.SetSessionLayer(layer)
				s.Crash()
				s.Reconnect(uint64(2 + 2*i))
			}
			set := s.Interfaces(uint64(3+2*i), "uplink0", "pod2")
			set.Unanswered, set.Unanswered6 = c.unanswered, c.unanswered6
			s.Tell(set)
			kind := func(why string) string { return map[bool]string{true: "local", false: "reject"}[why == ""] }
			expect(s, c.name, "10.96.0.0/16 "+kind(c.why), "10.96.0.1/32 "+kind(c.why), "fd96::1/128 "+kind(c.why6))
			var want []string
			for frontend, why := range map[string]string{"10.96.0.1:80/TCP": c.why, "[fd96::1]:80/TCP": c.why6} {
				if why != "" {
					want = append(want, frontend+" reject: host unreachable "+why+unreachable)
				}
			}
			slices.Sort(want)
			told(s, c.name, "a/a", want...)
			if got := s.Writes() - before; got != c.writes || s.State("a/a") != rendertest.InSync {
				s.Errorf("%s: %d writes, want %d; acknowledged %v", c.name, got, c.writes, s.Ack("a/a"))
			}
			before = s.Writes()
		}
	})
}

// TestARefusedExternalAddress: the session layer refuses its other ports as well.
func TestARefusedExternalAddress(t *testing.T) {
	withRenderer(t, func(s *rendertest.Stage) {
		s.VPP.VPP.SetSessionLayer(true)
		s.Crash()
		s.Reconnect(2)
		s.Begin(1, "a/a")
		s.Render(1, external("a/a", messages.Action_ACTION_REJECT, "203.0.113.7"))
		expect(s, "with the session layer", "10.96.0.0/16 local", "203.0.113.7/32 local")
		told(s, "with the session layer", "a/a", "203.0.113.7:80/TCP reject: connection refused on every port of the address one route answers on every port of the address")
	})
}

// TestAVPPWithoutRoutes: it is no failure of single routes. The renderer is ready with a warning,
// services are acknowledged with an approximation, and another VPP may have them.
func TestAVPPWithoutRoutes(t *testing.T) {
	withRenderer(t, func(s *rendertest.Stage) {
		s.Lacks = "fib_source"
		s.Crash()
		s.Reconnect(2)
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.96.0.1")
		before := s.Writes()
		s.Run(5 * time.Minute)
		ack := s.Ack("a/a")
		if a := ack.GetApproximations(); len(a) != 1 || a[0].GetFrontend() != "10.96.0.1" || a[0].GetWanted() != "reject" || ack.GetState() != rendertest.InSync {
			s.Errorf("acknowledged %v", ack)
		}
		if h := s.Health(); !h.GetOk() || !strings.HasSuffix(h.GetReason(), ": nothing is refused") || s.Writes() != before {
			s.Errorf("%v, %d writes", h, s.Writes()-before)
		}
		if d := s.Ask(&render.DiffQuery{}).(*render.DiffPage); d.Err != nil || len(d.Operations) != 0 {
			s.Errorf("diff %+v", d)
		}
		s.Lacks = ""
		s.Crash()
		s.Reconnect(3)
		expect(s, "another VPP", network, "10.96.0.1/32 reject")
		if h := s.Health(); len(s.Ack("a/a").GetApproximations()) != 1 || !h.GetOk() || h.GetReason() != "" {
			s.Errorf("acknowledged %v, %v", s.Ack("a/a"), h)
		}
	})
}

// TestARouteOfAnotherClient: it is left alone. The agent's route is in VPP nevertheless, and takes
// effect when the other one is removed.
func TestARouteOfAnotherClient(t *testing.T) {
	withRenderer(t, func(s *rendertest.Stage) {
		theirs := simulator.Route{Prefix: netip.MustParsePrefix("10.96.0.1/32"), Interface: "uplink0", NextHop: netip.MustParseAddr("192.168.16.254")}
		if err := s.VPP.VPP.AddRoute(theirs); err != nil {
			s.Fatal(err)
		}
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.96.0.1")
		before := s.Writes()
		for range 3 {
			s.Tell(&messages.Verify{Reason: "test"})
		}
		if s.State("a/a") != rendertest.InSync || !s.Health().GetOk() || s.Writes() != before {
			s.Errorf("acknowledged %v, %v, %d writes", s.Ack("a/a"), s.Health(), s.Writes()-before)
		}
		if err := s.VPP.VPP.DelRoute(theirs.Prefix); err != nil {
			s.Fatal(err)
		}
		expect(s, "theirs is gone", network, "10.96.0.1/32 reject")
	})
}

package nat44_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/render/nat44"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	natvpp "github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestNoApproximationsBeforeTheNodeIsKnown: the hairpin address comes with the node; an
// approximation for want of it would be a Kubernetes Event.
func TestNoApproximationsBeforeTheNodeIsKnown(t *testing.T) {
	withRenderer(t, func(s scene) {
		v := rendertest.Forwarding("a/a", 1, "10.0.0.1")
		v.Frontends[0].AffinitySeconds = 60
		s.Render(1, v)
		for _, ack := range probe.All[*messages.RenderAck](s, address.Service("a/a")) {
			if len(ack.GetApproximations()) > 0 {
				t.Errorf("before the node is known: %v", ack)
			}
		}
		s.Begin(1, "a/a")
		s.Run(time.Second)
		if got := s.Ack("a/a").GetApproximations(); len(got) != 1 {
			t.Errorf("afterwards: %v", got)
		}
	})
}

// TestAnEndpointAtItsFrontend: an endpoint in the host's network can have the address and port of a
// node port or external IP of its service. The row shows it, and nothing where it has left and the
// row leads back.
func TestAnEndpointAtItsFrontend(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Keeps = true
		s.Begin(1, "a/a")
		serve := func(generation uint64, endpoints ...string) (wanted, held []string) {
			v := served("a/a", "192.168.0.2", tcp, endpoints...)
			v.Frontends[0].Port = 8080
			s.Render(generation, v)
			s.settled(strings.Join(endpoints, " "), "a/a")
			text := func(rows []*messages.RowState) (all []string) {
				for _, r := range rows {
					for _, l := range r.GetLocals() {
						all = append(all, l.GetAddress())
					}
				}
				return all
			}
			page := s.Ask(&render.RowsQuery{Service: "a/a"}).(*render.RowsPage)
			return text(page.Wanted), text(page.Held)
		}
		for i, c := range []struct{ endpoints, want []string }{
			{[]string{"10.1.1.3", "192.168.0.2"}, []string{"10.1.1.3:8080", "192.168.0.2:8080"}},
			{[]string{"192.168.0.2", "10.1.1.3-"}, []string{"192.168.0.2:8080"}},
			{[]string{"10.1.1.3-"}, nil},
			{[]string{"192.168.0.2"}, []string{"192.168.0.2:8080"}},
		} {
			if wanted, held := serve(uint64(i+1), c.endpoints...); !slices.Equal(wanted, c.want) || !slices.Equal(held, c.want) {
				t.Errorf("%v: %v is wanted and %v held, want %v", c.endpoints, wanted, held, c.want)
			}
		}
	})
}

// TestRolesFollowInterfaces: roles follow the interface set, and the health says which set is in
// VPP.
func TestRolesFollowInterfaces(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		set := s.Interfaces(3, "uplink0", "pod2", "pod3")
		set.Interfaces[2].Frontend, set.Interfaces[2].Backend = false, true
		s.Tell(set)
		if state := s.VPP.VPP.State(); !strings.Contains(state, "pod3 in out") || !s.Health().GetOk() || s.Health().GetInterfaces() != 3 {
			t.Errorf("%v\n%s", s.Health(), state)
		}
		if told := probe.Latest[*messages.Health](s, address.Interfaces); told.GetInterfaces() != 3 {
			t.Errorf("the interfaces actor was told %v", told)
		}
		detached := s.Interfaces(4, "uplink0", "pod2", "pod3")
		detached.Interfaces[2] = &messages.Interface{SwIfIndex: set.Interfaces[2].GetSwIfIndex(), Name: "pod3", Detached: true}
		s.Tell(detached)
		if state := s.VPP.VPP.State(); strings.Contains(state, "pod3 in out") || s.Health().GetInterfaces() != 4 {
			t.Errorf("%v\n%s", s.Health(), state)
		}
	})
}

// TestRefusedRolesAreReported: with the interface set that they are of, until VPP takes them.
func TestRefusedRolesAreReported(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1)
		s.Refuse = func(req api.Message) error {
			if _, role := req.(*nat44_ed.Nat44InterfaceAddDelFeature); role {
				return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
			}
			return nil
		}
		s.Tell(s.Interfaces(3, "uplink0", "pod2", "pod3"))
		s.Run(5 * time.Second)
		if h := s.Health(); h.GetOk() || h.GetRefusedSet() != 3 || h.GetRolesRefused() == "" || h.GetInterfaces() == 3 {
			t.Errorf("health %v", h)
		}
		s.Refuse = nil
		s.Run(time.Minute)
		if h := s.Health(); !h.GetOk() || h.GetRefusedSet() != 0 || h.GetRolesRefused() != "" || h.GetInterfaces() != 3 {
			t.Errorf("health %v", h)
		}
	})
}

// TestHairpinAddressFollowsTheNode: the one before goes.
func TestHairpinAddressFollowsTheNode(t *testing.T) {
	withConfig(t, natvpp.Config{Node: probe.Node, Pads: true}, nil, func(s scene) {
		for i, cidr := range []string{"10.1.1.0/24", "10.1.2.0/24"} {
			node := probe.ThisNode()
			node.PodCidrs = []string{cidr}
			s.Tell(&messages.Begin{Generation: uint64(i + 1), Node: &messages.NodeContext{Node: node}})
		}
		if state := s.VPP.VPP.State(); !strings.Contains(state, "10.1.2.254 twice-nat") || strings.Contains(state, "10.1.1.254 twice-nat") {
			t.Errorf("VPP:\n%s", state)
		}
	})
}

// TestARowOfTheOldestService: VPP has the backends of the oldest service, and only it holds the
// row.
func TestARowOfTheOldestService(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a", "b/b")
		young, old := rendertest.Forwarding("a/a", 20, "10.0.0.1"), rendertest.Forwarding("b/b", 10, "10.0.0.1")
		old.Frontends[0].Backends[0].Address = "10.1.1.3"
		s.Render(1, young)
		s.Render(2, old)
		if c := s.Ack("a/a").GetConflicts(); len(c) != 1 || c[0].GetOwner() != "b/b" || c[0].GetFrontend() != "10.0.0.1:80/TCP" || !strings.Contains(probe.Rows(s.VPP.VPP)[0], "10.1.1.3") {
			t.Errorf("conflicts %v, VPP %q", c, probe.Rows(s.VPP.VPP))
		}
		if rows := s.Ack("a/a").GetRows(); len(rows) != 1 || rows[0].GetInSync() || rows[0].GetError() == "" {
			t.Errorf("rows of the loser %v", rows)
		}
		loser, owner := s.Ask(&render.RowsQuery{Service: "a/a"}).(*render.RowsPage), s.Ask(&render.RowsQuery{Service: "b/b"}).(*render.RowsPage)
		if len(loser.Wanted) != 1 || len(loser.Held) != 0 || len(owner.Held) != 1 || owner.Held[0].GetVip() != "10.0.0.1:80/TCP" {
			t.Errorf("VPP holds of a/a %v, of b/b %v", loser.Held, owner.Held)
		}
		s.Serve("b/b", 3)
		if !strings.Contains(probe.Rows(s.VPP.VPP)[0], "10.1.1.2") || s.State("b/b") != rendertest.Retired {
			t.Errorf("b/b was acknowledged %v, VPP %q", s.State("b/b"), probe.Rows(s.VPP.VPP))
		}
		s.settled("after the older one went", "a/a")
	})
}

// TestARowOfAnotherClient: it came after the last read, so VPP refuses the agent's row. Then VPP is
// read and the row is left alone.
func TestARowOfAnotherClient(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a")
		foreign := simulator.ForeignRow{VIP: netip.MustParseAddrPort("10.0.0.1:80"), Proto: 6, Tag: "theirs", Backends: []simulator.Backend{
			{Addr: netip.MustParseAddrPort("10.9.9.1:80"), Weight: 1}, {Addr: netip.MustParseAddrPort("10.9.9.2:80"), Weight: 1},
		}}
		s.Serve("a/a", 1, "10.0.0.2")
		if _, err := s.VPP.VPP.ForeignAdd(foreign); err != nil {
			t.Fatal(err)
		}
		s.Serve("a/a", 2, "10.0.0.1", "10.0.0.2")
		s.Run(time.Millisecond)
		if c := s.Ack("a/a").GetConflicts(); len(c) != 1 || !strings.Contains(c[0].GetOwner(), "theirs") {
			t.Errorf("conflicts %v", c)
		}
		if !s.Health().GetOk() || len(s.VPP.VPP.Rows()) != 2 {
			t.Errorf("%v, VPP holds %q", s.Health(), s.VPP.VPP.Rows())
		}
		if _, err := s.VPP.VPP.ForeignRemove(foreign.VIP, 6); err != nil {
			t.Fatal(err)
		}
		s.Tell(&messages.Verify{Reason: "test"})
		s.expect("it went", "10.0.0.1:80/6", "10.0.0.2:80/6")
	})
}

// TestARowOfAnotherServiceWaitsForTheBarrier: the service that VPP has a row of may still render
// and own it; a new frontend need not wait.
func TestARowOfAnotherServiceWaitsForTheBarrier(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a", "b/b")
		owner, other := rendertest.Forwarding("a/a", 1, "10.0.0.1"), rendertest.Forwarding("b/b", 2, "10.0.0.1", "10.0.0.2")
		s.Render(1, owner)
		s.Kill()
		s.Connected()
		s.Found(2)
		s.Begin(1, "a/a", "b/b")
		before := probe.Rows(s.VPP.VPP)
		s.Render(1, other)
		if after := probe.Rows(s.VPP.VPP); len(after) != 2 || after[0] != before[0] {
			t.Errorf("before the barrier VPP holds %q, before that %q", after, before)
		}
		s.Render(1, owner)
		if after := probe.Rows(s.VPP.VPP); len(after) != 2 || after[0] != before[0] || len(s.Ack("b/b").GetConflicts()) != 1 {
			t.Errorf("VPP holds %q, b/b was acknowledged %v", after, s.Ack("b/b"))
		}
	})
}

// TestAnAddressThatSeveralMayClaim: its first row waits until all services have rendered, also with
// a list of the local mirror. The idle load balancer owns the address. Its clients must not be sent
// to backends of the other service, which has rendered first.
func TestAnAddressThatSeveralMayClaim(t *testing.T) {
	for _, provisional := range []bool{false, true} {
		withRenderer(t, func(s scene) {
			idle, other := rendertest.Rejecting("a/a", 1, "203.0.113.1"), rendertest.Forwarding("b/b", 2, "203.0.113.1", "203.0.113.2", "10.0.0.1")
			idle.Frontends[0].Kind = messages.FrontendKind_KIND_LOAD_BALANCER_IP
			for _, f := range other.Frontends[:2] {
				f.Kind = messages.FrontendKind_KIND_EXTERNAL_IP
			}
			begin := rendertest.BeginMessage(1, "a/a", "b/b")
			begin.Provisional = provisional
			s.Tell(begin)
			s.Render(1, other)
			if rows := probe.Rows(s.VPP.VPP); len(rows) != 1 || !strings.Contains(rows[0], "10.0.0.1") {
				t.Errorf("before all have rendered VPP holds %q", rows)
			}
			s.Render(1, idle)
			if rows := probe.Rows(s.VPP.VPP); len(rows) != 2 || !strings.Contains(rows[1], "203.0.113.2") {
				t.Errorf("VPP holds %q", rows)
			}
		})
	}
}

// TestDamagedSettingsAreRepaired: roles that another client has taken away count as drift,
// addresses that NAT44 has left behind do not.
func TestDamagedSettingsAreRepaired(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		index := s.VPP.VPP.Interfaces()["pod2"]
		for _, flags := range []uint8{0x10, 0x20} {
			req := &nat44_ed.Nat44InterfaceAddDelFeature{SwIfIndex: interface_types.InterfaceIndex(index), Flags: nat_types.NatConfigFlags(flags)}
			if _, err := s.VPP.VPP.Exec(req); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(s.VPP.VPP.State(), "pod2 in out") {
			t.Fatal("the roles are still there")
		}
		s.Tell(&messages.Verify{Reason: "test"})
		if !strings.Contains(s.VPP.VPP.State(), "pod2 in out") || !s.Health().GetOk() || s.Verified().GetDifferences() == 0 || s.Observed.Drift == 0 {
			t.Errorf("%v, %v\n%s", s.Health(), s.Verified(), s.VPP.VPP.State())
		}
		s.Forget()
		s.Tell(&messages.Verify{Reason: "test"})
		if s.Verified().GetDifferences() != 0 {
			t.Errorf("found %v although it is repaired", s.Verified())
		}
	})
}

// TestDryRun: what would be acknowledged if VPP were connected and empty.
func TestDryRun(t *testing.T) {
	views := []*messages.ServiceView{rendertest.Forwarding("a/a", 20, "10.0.0.1", "10.0.0.3"), rendertest.Forwarding("b/b", 10, "10.0.0.1")}
	begin := &messages.Begin{Node: &messages.NodeContext{Node: probe.ThisNode()}}
	acks := render.DryRun(nat44.New(natvpp.Config{Node: probe.Node, Pads: true}), begin, views)
	if len(acks) != 2 || len(acks[0].GetConflicts()) != 1 || acks[0].GetConflicts()[0].GetOwner() != "b/b" || len(acks[1].GetConflicts()) != 0 {
		t.Fatalf("%v", acks)
	}
	for _, ack := range acks {
		if ack.GetRenderer() != nat44.Name || len(ack.GetRows()) == 0 {
			t.Errorf("%v", ack)
		}
	}
	if rows := acks[0].GetRows(); len(rows) != 1 || rows[0].GetVip() != "10.0.0.3:80/TCP" || len(rows[0].GetLocals()) != 1 {
		t.Errorf("rows of the loser %v", rows)
	}
}

// TestWorkers: with several workers the first one does NAT and rows have pads; where all of them
// do, rows have none.
func TestWorkers(t *testing.T) {
	for _, all := range []bool{false, true} {
		config := testConfig
		config.AllWorkers = all
		withConfig(t, config, []string{"a/a"}, func(s scene) {
			s.Begin(1, "a/a")
			s.Serve("a/a", 1, "10.0.0.1")
			pads := func(when string, want bool, workers int) {
				t.Helper()
				state, err := natvpp.Read(t.Context(), s.VPP.Reader())
				if err != nil {
					t.Fatal(err)
				}
				if len(state.Rows) != 1 || state.Workers != workers {
					t.Errorf("%s: %d rows, %d workers for NAT, want 1 and %d", when, len(state.Rows), state.Workers, workers)
				}
				for _, row := range state.Rows {
					if row.Pads != want {
						t.Errorf("%s: a row has pads: %t, want %t", when, row.Pads, want)
					}
				}
				s.settled(when, "a/a")
			}
			pads("without workers", true, 0)
			s.VPP.VPP.SetWorkers(4)
			if err := s.VPP.VPP.Restart(); err != nil {
				t.Fatal(err)
			}
			s.Reconnect(2)
			s.Run(time.Minute)
			if all {
				pads("all workers", false, 4)
			} else {
				pads("the first of 4 workers", true, 1)
			}
		})
	}
}

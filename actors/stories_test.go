package actors_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

const lbDump = "nat44_lb_static_mapping_dump"

// web brings up a node that serves two services.
func web(t *testing.T, config actorstest.Config) *actorstest.World {
	t.Helper()
	w := actorstest.New(t, config)
	w.Source.Serve("web", "10.96.0.10", "10.1.1.2", "10.1.1.3", "10.1.2.9")
	w.Source.Serve("db", "10.96.0.11", "10.1.1.4")
	w.Start()
	w.Settled()
	return w
}

// hasRoles reports whether VPP has given an interface both roles.
func hasRoles(w *actorstest.World, name string) bool {
	return strings.Contains(w.VPP.State(), name+" in out")
}

// undisturbed runs something that must not make any actor write to VPP, and returns how often the
// agent has read the rows meanwhile.
func undisturbed(w *actorstest.World, what func()) (reads uint64) {
	w.Helper()
	w.Quiet()
	before, agent, asked := w.VPP.Counters(), w.Meter, w.Meter.Usage()
	what()
	w.Quiet()
	after := w.VPP.Counters()
	if n := after.Mutating() - before.Mutating(); n != 0 {
		w.Errorf("%d messages changed VPP, want 0:\n%s", n, after.String())
	}
	if agent != w.Meter {
		return w.Meter.Usage().RowReads
	}
	return w.Meter.Usage().RowReads - asked.RowReads
}

func TestServicesReachVPP(t *testing.T) {
	w := web(t, actorstest.Config{})
	rows := w.Rows()
	if len(rows) != 2 {
		t.Fatalf("rows in VPP: %q, want 2", rows)
	}
	status := w.Statuses()["default/web"]
	if got := w.Backends(status.GetRenders()[0].GetRows()[0].GetVip()); got != 3 {
		t.Errorf("default/web has %d backends in VPP, want 3", got)
	}
}

func TestAgentRestartWritesNothing(t *testing.T) {
	w := web(t, actorstest.Config{})
	undisturbed(w, func() {
		w.Stop()
		w.Start()
		w.Settled()
	})
}

func TestAgentRestartRemovesWhatWentMeanwhile(t *testing.T) {
	w := web(t, actorstest.Config{})
	w.Stop()
	w.Source.Change(func(s *kube.Store) { s.Delete("Service", "default/db") })
	before := w.VPP.Counters()
	w.Start()
	w.Settled()
	w.Await("one row left", func() bool { return len(w.Rows()) == 1 })
	if n := w.Writes() - before.Mutating(); n != 1 {
		t.Errorf("%d messages changed VPP, want 1", n)
	}
}

func TestDeadServiceActorCostsNothing(t *testing.T) {
	w := web(t, actorstest.Config{})
	reads := undisturbed(w, func() { w.Kill(address.Service("default/web")) })
	if reads != 0 {
		t.Errorf("VPP's rows were read %d times, want 0", reads)
	}
}

func TestDeadRendererReadsOnceAndWritesNothing(t *testing.T) {
	w := web(t, actorstest.Config{})
	reads := undisturbed(w, func() { w.Kill(address.Renderer("nat44")) })
	if reads != 1 {
		t.Errorf("VPP's rows were read %d times, want once", reads)
	}
}

func TestDeadRoutesRendererWritesNothing(t *testing.T) {
	w := web(t, actorstest.Config{})
	w.Source.Change(func(s *kube.Store) { s.Set(probe.Service("empty", "10.96.0.77"), nil) })
	w.Settled()
	reads := undisturbed(w, func() { w.Kill(address.Renderer("routes")) })
	if reads != 0 {
		t.Errorf("VPP's rows were read %d times, want 0", reads)
	}
}

func TestDeadActorsWriteNothing(t *testing.T) {
	w := web(t, actorstest.Config{})
	for _, path := range []string{
		address.Registry, address.Nodes, address.Services, address.Interfaces, address.Link,
		address.Journal, address.Introspect, address.Healer,
	} {
		undisturbed(w, func() { w.Kill(path) })
	}
}

func TestVPPRestartBringsEveryRowBackOnce(t *testing.T) {
	w := web(t, actorstest.Config{})
	rows := w.Rows()
	before := w.VPP.Counters()
	w.VPP.Crash()
	w.Await("noticed", func() bool { return !w.Readiness.Load().Ready })
	w.Settled()
	if got := w.Rows(); !slices.Equal(got, rows) {
		t.Errorf("rows after the restart:\n%s\nbefore:\n%s", strings.Join(got, "\n"), strings.Join(rows, "\n"))
	}
	after := w.VPP.Counters()
	const add = "nat44_add_del_lb_static_mapping"
	if n := after.Of(add) - before.Of(add); n != uint64(len(rows)) {
		t.Errorf("%d rows were added, want each of %d once", n, len(rows))
	}
}

// TestOneChangedEndpointAmongManyCostsTwoMessages: its entry takes the place of an empty slot's.
func TestOneChangedEndpointAmongManyCostsTwoMessages(t *testing.T) {
	w := actorstest.New(t, actorstest.Config{})
	const services = 1000
	w.Source.Change(func(s *kube.Store) {
		for i := range services {
			name := fmt.Sprint("svc", i)
			s.Set(probe.Service(name, fmt.Sprintf("10.97.%d.%d", i/250, i%250+1)), nil)
			s.Set(probe.Slice(name, "10.1.1.2", "10.1.2.9", "10.1.2.10"), nil)
		}
	})
	w.Start()
	w.Settled()
	w.Quiet()
	before := w.VPP.Counters()
	w.Source.Change(func(s *kube.Store) {
		s.Set(probe.Slice("svc7", "10.1.1.2", "10.1.1.3", "10.1.2.9", "10.1.2.10"), nil)
	})
	w.Await("fourth backend", func() bool {
		rows := w.Statuses()["default/svc7"].GetRenders()
		return len(rows) == len(w.Deps.Renderers()) && len(rows[0].GetRows()) == 1 && rows[0].GetRows()[0].GetInSync() && w.Backends("10.97.0.8:80/TCP") == 4
	})
	w.Quiet()
	after := w.VPP.Counters()
	if n := after.Mutating() - before.Mutating(); n != 2 {
		t.Errorf("%d messages changed VPP, want 2", n)
	}
	if n := after.Of("nat44_lb_static_mapping_add_del_local") - before.Of("nat44_lb_static_mapping_add_del_local"); n != 2 {
		t.Errorf("%d entries were changed, want 2", n)
	}
}

// TestAddressOfAServiceThatWentIsRefused: also when a pod has come since, for which NAT44 made the
// address of every service one of VPP.
func TestAddressOfAServiceThatWentIsRefused(t *testing.T) {
	w := web(t, actorstest.Config{})
	w.Source.Change(func(s *kube.Store) {
		s.Set(probe.Pod("late", "10.1.1.9"), nil)
	})
	if _, err := w.VPP.AddPod("late", netip.MustParseAddr("10.1.1.9")); err != nil {
		t.Fatal(err)
	}
	w.Await("roles of the new pod", func() bool { return hasRoles(w, "late") })
	knock := func(port uint16) simulator.Verdict {
		return w.VPP.Send(simulator.Packet{
			In: "late", Src: netip.MustParseAddrPort("10.1.1.9:20000"), Dst: netip.AddrPortFrom(netip.MustParseAddr("10.96.0.11"), port), Proto: rule.TCP,
		})
	}
	if got := knock(81); got.Action != simulator.Local {
		t.Errorf("another port of the service: %v; the story is about an address of VPP", got)
	}
	before := w.VPP.Counters()
	w.Source.Change(func(s *kube.Store) { s.Delete("Service", "default/db") })
	w.Await("row gone", func() bool { return len(w.Rows()) == 1 })
	w.Settled()
	if got := knock(80); got.Action != simulator.Rejected {
		t.Errorf("a client of the service that went: %v, want a refusal", got)
	}
	if n := w.Writes() - before.Mutating(); n != 2 {
		t.Errorf("%d messages changed VPP, want 2: the row and the address", n)
	}
}

func TestServiceGoesAndItsActorWithIt(t *testing.T) {
	w := web(t, actorstest.Config{})
	w.Source.Change(func(s *kube.Store) { s.Delete("Service", "default/web") })
	w.Await("row gone", func() bool { return len(w.Rows()) == 1 })
	w.Await("actor gone", func() bool {
		_, ok := w.System.Actor(address.Service("default/web"))
		return !ok
	})
	w.Source.Change(func(s *kube.Store) { s.Set(probe.Service("web", "10.96.0.10"), nil) })
	w.Await("row back", func() bool { return len(w.Rows()) == 2 })
	w.Settled()
}

func TestContestedAddressHasOneOwner(t *testing.T) {
	w := web(t, actorstest.Config{})
	external := func(name, ip string, created int64) *messages.Service {
		s := probe.Service(name, ip)
		s.Created, s.ExternalIps = created, []string{"203.0.113.7"}
		return s
	}
	w.Source.Change(func(s *kube.Store) {
		s.Set(external("web", "10.96.0.10", 200), nil)
		s.Set(external("db", "10.96.0.11", 100), nil)
	})
	conflicts := func(key string) []*messages.Conflict {
		if s := w.Statuses()[key]; len(s.GetRenders()) == len(w.Deps.Renderers()) {
			return s.GetRenders()[0].GetConflicts() // nat44's
		}
		return nil
	}
	w.Await("younger one loses", func() bool { return len(conflicts("default/web")) == 1 && len(conflicts("default/db")) == 0 })
	if owner := conflicts("default/web")[0].GetOwner(); owner != "default/db" {
		t.Errorf("owner is %q, want default/db", owner)
	}
	w.Source.Change(func(s *kube.Store) { s.Set(probe.Service("db", "10.96.0.11"), nil) })
	w.Await("younger one takes over", func() bool { return len(conflicts("default/web")) == 0 && len(w.Rows()) == 3 })
	w.Settled()
}

func TestBadInputIsShownAndHarmsNoOtherService(t *testing.T) {
	w := web(t, actorstest.Config{})
	w.Source.Change(func(s *kube.Store) {
		broken := probe.Service("broken", "10.96.0.12")
		s.Set(broken, []*messages.ObjectError{{Source: "test", Kind: "Service", Object: "default/broken", Field: "spec.externalIPs[0]", Message: "not an IP"}})
		s.Set(probe.Slice("broken", "10.1.1.5"), nil)
	})
	w.Await("error is shown", func() bool { return len(w.Statuses()["default/broken"].GetErrors()) == 1 })
	w.Settled()
	if got := len(w.Rows()); got != 3 {
		t.Errorf("%d rows in VPP, want 3: the good part of the broken one and the others", got)
	}
}

func TestNothingIsDeletedBeforeAllServicesHaveRendered(t *testing.T) {
	w := web(t, actorstest.Config{})
	w.Stop()
	before := w.VPP.Counters()
	w.Source.Hold("no answer", false)
	w.Start()
	w.Await("VPP read", func() bool { return w.VPP.Counters().Of(lbDump) > before.Of(lbDump) })
	if got := len(w.Rows()); got != 2 {
		t.Errorf("%d rows in VPP while no service has rendered, want 2", got)
	}
	if w.Readiness.Load().Ready {
		t.Error("ready without a snapshot")
	}
}

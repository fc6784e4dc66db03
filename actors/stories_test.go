package actors

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

const lbDump = "nat44_lb_static_mapping_dump"

// web brings up a node that serves two services.
func web(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.source.commit(func(s *kube.Store) {
		s.SetService(testService("web", "10.96.0.10"), nil)
		s.SetSlice(testSlice("web", "10.1.1.2", "10.1.1.3", "10.1.2.9"), nil)
		s.SetService(testService("db", "10.96.0.11"), nil)
		s.SetSlice(testSlice("db", "10.1.1.4"), nil)
	})
	w.start()
	w.settled()
	return w
}

// undisturbed runs something that must not make anybody write to VPP, and returns how often the agent that is there then
// has read the rows for it.
func (w *world) undisturbed(what func()) (reads uint64) {
	w.t.Helper()
	w.quiet()
	before, agent, asked := w.vpp.Counters(), w.meter, w.meter.Usage()
	what()
	w.quiet()
	after := w.vpp.Counters()
	if n := after.Mutating() - before.Mutating(); n != 0 {
		w.t.Errorf("%d messages changed VPP, want 0:\n%s", n, after.String())
	}
	if agent != w.meter {
		return w.meter.Usage().RowReads
	}
	return w.meter.Usage().RowReads - asked.RowReads
}

func TestServicesReachVPP(t *testing.T) {
	w := web(t)
	rows := w.rowsIn()
	if len(rows) != 2 {
		t.Fatalf("rows in VPP: %q, want 2", rows)
	}
	status := w.status("default/web")
	if got := len(status.GetRenders()[0].GetRows()[0].GetLocals()); got != 3 {
		t.Errorf("default/web has %d backends in VPP, want 3", got)
	}
}

func TestAgentRestartWritesNothing(t *testing.T) {
	w := web(t)
	w.undisturbed(func() {
		w.stop()
		w.start()
		w.settled()
	})
}

func TestAgentRestartRemovesWhatWentMeanwhile(t *testing.T) {
	w := web(t)
	w.stop()
	w.source.commit(func(s *kube.Store) { s.DeleteService("default/db") })
	before := w.vpp.Counters()
	w.start()
	w.settled()
	w.until("one row left", func() bool { return len(w.rowsIn()) == 1 })
	if n := w.vpp.Counters().Mutating() - before.Mutating(); n != 1 {
		t.Errorf("%d messages changed VPP, want 1", n)
	}
}

func TestDeadServiceActorCostsNothing(t *testing.T) {
	w := web(t)
	reads := w.undisturbed(func() { w.kill(PathService("default/web")) })
	if reads != 0 {
		t.Errorf("VPP's rows were read %d times, want 0", reads)
	}
}

func TestDeadRendererReadsOnceAndWritesNothing(t *testing.T) {
	w := web(t)
	reads := w.undisturbed(func() { w.kill(PathRenderer("nat44")) })
	if reads != 1 {
		t.Errorf("VPP's rows were read %d times, want once", reads)
	}
}

func TestDeadRoutesRendererWritesNothing(t *testing.T) {
	w := web(t)
	w.change(func(s *kube.Store) { s.SetService(testService("empty", "10.96.0.77"), nil) })
	w.settled()
	reads := w.undisturbed(func() { w.kill(PathRenderer(refusing)) })
	if reads != 0 {
		t.Errorf("VPP's rows were read %d times, want 0", reads)
	}
}

func TestDeadActorsWriteNothing(t *testing.T) {
	w := web(t)
	for _, path := range []string{
		PathRegistry, PathWatch, PathNodes, PathServices, PathInterfaces, PathLink, PathAudit,
		PathJournal, PathIntrospect, PathHealer,
	} {
		w.undisturbed(func() { w.kill(path) })
	}
}

func TestVPPRestartBringsEveryRowBackOnce(t *testing.T) {
	w := web(t)
	rows := w.rowsIn()
	before := w.vpp.Counters()
	w.vpp.Crash()
	w.until("noticed", func() bool { return !w.readiness.Load().Ready })
	w.settled()
	if got := w.rowsIn(); !slices.Equal(got, rows) {
		t.Errorf("rows after the restart:\n%s\nbefore:\n%s", strings.Join(got, "\n"), strings.Join(rows, "\n"))
	}
	after := w.vpp.Counters()
	const add = "nat44_add_del_lb_static_mapping"
	if n := after.Of(add) - before.Of(add); n != uint64(len(rows)) {
		t.Errorf("%d rows were added, want each of %d once", n, len(rows))
	}
}

func TestOneChangedEndpointAmongManyCostsOneMessage(t *testing.T) {
	w := newWorld(t)
	const services = 1000
	w.source.commit(func(s *kube.Store) {
		for i := range services {
			name := fmt.Sprint("svc", i)
			s.SetService(testService(name, fmt.Sprintf("10.97.%d.%d", i/250, i%250+1)), nil)
			s.SetSlice(testSlice(name, "10.1.1.2", "10.1.2.9"), nil)
		}
	})
	w.start()
	w.settled()
	w.quiet()
	before := w.vpp.Counters()
	w.change(func(s *kube.Store) { s.SetSlice(testSlice("svc7", "10.1.1.2", "10.1.1.3", "10.1.2.9"), nil) })
	w.until("third backend", func() bool {
		rows := w.status("default/svc7").GetRenders()
		return len(rows) == len(Renderers()) && len(rows[0].GetRows()) == 1 && len(rows[0].GetRows()[0].GetLocals()) == 3 && rows[0].GetRows()[0].GetInSync()
	})
	w.quiet()
	after := w.vpp.Counters()
	if n := after.Mutating() - before.Mutating(); n != 1 {
		t.Errorf("%d messages changed VPP, want 1", n)
	}
	if n := after.Of("nat44_lb_static_mapping_add_del_local") - before.Of("nat44_lb_static_mapping_add_del_local"); n != 1 {
		t.Errorf("%d backends were added, want 1", n)
	}
}

// TestAddressOfAServiceThatWentIsRefused: also when a pod has come since, for which NAT44 made the address of every service one of VPP.
func TestAddressOfAServiceThatWentIsRefused(t *testing.T) {
	w := web(t)
	w.change(func(s *kube.Store) {
		s.SetPod(&messages.Pod{Namespace: "default", Name: "late", Node: testNode, Addresses: []string{"10.1.1.9"}}, nil)
	})
	if _, err := w.vpp.AddPod("late", netip.MustParseAddr("10.1.1.9")); err != nil {
		t.Fatal(err)
	}
	w.until("roles of the new pod", func() bool { return w.roles("late") })
	knock := func(port uint16) simulator.Verdict {
		return w.vpp.Send(simulator.Packet{
			In: "late", Src: netip.MustParseAddrPort("10.1.1.9:20000"), Dst: netip.AddrPortFrom(netip.MustParseAddr("10.96.0.11"), port), Proto: frontend.TCP,
		})
	}
	if got := knock(81); got.Action != simulator.Local {
		t.Errorf("another port of the service: %v; the story is about an address of VPP", got)
	}
	before := w.vpp.Counters()
	w.change(func(s *kube.Store) { s.DeleteService("default/db") })
	w.until("row gone", func() bool { return len(w.rowsIn()) == 1 })
	w.settled()
	if got := knock(80); got.Action != simulator.Rejected {
		t.Errorf("a client of the service that went: %v, want a refusal", got)
	}
	if n := w.vpp.Counters().Mutating() - before.Mutating(); n != 2 {
		t.Errorf("%d messages changed VPP, want 2: the row and the address", n)
	}
}

func TestServiceGoesAndItsActorWithIt(t *testing.T) {
	w := web(t)
	w.change(func(s *kube.Store) { s.DeleteService("default/web") })
	w.until("row gone", func() bool { return len(w.rowsIn()) == 1 })
	w.until("actor gone", func() bool {
		_, ok := w.system.Actor(PathService("default/web"))
		return !ok
	})
	w.change(func(s *kube.Store) { s.SetService(testService("web", "10.96.0.10"), nil) })
	w.until("row back", func() bool { return len(w.rowsIn()) == 2 })
	w.settled()
}

func TestContestedAddressHasOneOwner(t *testing.T) {
	w := web(t)
	external := func(name, ip string, created int64) *messages.Service {
		s := testService(name, ip)
		s.Created, s.ExternalIps = created, []string{"203.0.113.7"}
		return s
	}
	w.change(func(s *kube.Store) {
		s.SetService(external("web", "10.96.0.10", 200), nil)
		s.SetService(external("db", "10.96.0.11", 100), nil)
	})
	conflicts := func(key string) []*messages.Conflict {
		if s := w.status(key); len(s.GetRenders()) == len(Renderers()) {
			return s.GetRenders()[0].GetConflicts() // nat44's
		}
		return nil
	}
	w.until("younger one loses", func() bool { return len(conflicts("default/web")) == 1 && len(conflicts("default/db")) == 0 })
	if owner := conflicts("default/web")[0].GetOwner(); owner != "default/db" {
		t.Errorf("owner is %q, want default/db", owner)
	}
	w.change(func(s *kube.Store) { s.SetService(testService("db", "10.96.0.11"), nil) })
	w.until("younger one takes over", func() bool { return len(conflicts("default/web")) == 0 && len(w.rowsIn()) == 3 })
	w.settled()
}

func TestBadInputIsShownAndHarmsNobodyElse(t *testing.T) {
	w := web(t)
	w.change(func(s *kube.Store) {
		broken := testService("broken", "10.96.0.12")
		s.SetService(broken, []*messages.ObjectError{{Source: "test", Kind: "Service", Object: "default/broken", Field: "spec.externalIPs[0]", Message: "not an IP"}})
		s.SetSlice(testSlice("broken", "10.1.1.5"), nil)
	})
	w.until("error is shown", func() bool { return len(w.status("default/broken").GetErrors()) == 1 })
	w.settled()
	if got := len(w.rowsIn()); got != 3 {
		t.Errorf("%d rows in VPP, want 3: the good part of the broken one and the others", got)
	}
}

func TestNothingIsDeletedBeforeEverybodyHasSpoken(t *testing.T) {
	w := web(t)
	w.stop()
	before := w.vpp.Counters()
	w.startWith(silent{})
	w.until("VPP read", func() bool { return w.vpp.Counters().Of(lbDump) > before.Of(lbDump) })
	if got := len(w.rowsIn()); got != 2 {
		t.Errorf("%d rows in VPP while nobody has spoken, want 2", got)
	}
	if w.readiness.Load().Ready {
		t.Error("ready without a snapshot")
	}
}

package actors

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// chart is an Observer that counts what was done about what is wrong.
type chart struct {
	mu      sync.Mutex
	taken   map[string]int // by "part rung"
	drifted int
}

func (*chart) Synced(string, time.Duration, bool) {}
func (*chart) Programmed(time.Duration)           {}
func (*chart) Operations(string, int, int, int)   {}
func (*chart) InputErrors(int)                    {}

func (n *chart) Healed(part, rung string, times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taken[part+" "+rung] += times
}

func (n *chart) Drifted(_ string, times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drifted += times
}

// hospital is a house whose healing is counted.
type hospital struct {
	*house
	*chart
	faults map[string]int // failures of actors, by path
	fatal  []error
}

// inHospital plays when all is well.
func inHospital(t *testing.T, play func(h *hospital)) {
	t.Helper()
	admitted(t, func(*house) {}, func(h *hospital) {
		h.serve("web", "10.96.0.10", "10.1.1.2", "10.1.2.9")
		h.serve("db", "10.96.0.11", "10.1.1.3")
		h.settle(time.Minute)
		play(h)
	})
}

// admitted builds a hospital and plays in it; with may change what it is built of.
func admitted(t *testing.T, with func(h *house), play func(h *hospital)) {
	t.Helper()
	h := &hospital{chart: &chart{taken: map[string]int{}}, faults: map[string]int{}}
	inHouse(t, 1, func(house *house, o *runtime.Options) {
		h.house = house
		house.deps.Observer = h.chart
		house.deps.Fatal = func(err error) { h.fatal = append(h.fatal, err) }
		o.OnFault = func(f *messages.Fault) { h.faults[f.GetActor()]++ }
		with(house)
	}, func(*house) { play(h) })
}

// refuses has VPP refuse messages of a name whose text has something in it.
func (h *hospital) refuses(name string, about func(api.Message) bool) (mend func()) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	h.wire.refuse = func(m api.Message) error {
		if strings.HasPrefix(m.GetMessageName(), name) && (about == nil || about(m)) {
			return &link.RetvalError{Message: m.GetMessageName(), Retval: -1}
		}
		return nil
	}
	return func() {
		h.wire.mu.Lock()
		defer h.wire.mu.Unlock()
		h.wire.refuse = nil
	}
}

// expect checks how often rungs were taken; what is not named was not.
func (h *hospital) expect(want map[string][2]int) {
	h.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, between := range want {
		if n := h.taken[name]; n < between[0] || n > between[1] {
			h.Errorf("%s: %d times, want %d to %d", name, n, between[0], between[1])
		}
	}
	for name, n := range h.taken {
		if _, wanted := want[name]; !wanted {
			h.Errorf("%s: %d times, want none", name, n)
		}
	}
}

const addRow = "nat44_add_del_lb_static_mapping"

// TestOneBadObjectMakesNoStorm: VPP refuses one row for an hour. It is tried once a second, which costs one message; VPP is read for it more and
// more seldom; nothing else happens to anybody, and when VPP takes the row all is well at once.
func TestOneBadObjectMakesNoStorm(t *testing.T) {
	inHospital(t, func(h *hospital) {
		mend := h.refuses(addRow, nil)
		h.serve("bad", "10.96.0.66", "10.1.1.4")
		writes, reads := h.wire.counts()
		h.run(time.Hour)
		written, after := h.wire.counts()
		if report := h.deps.Readiness.Load(); report.Ready || !strings.Contains(report.Reasons(), "nat44: 1 rows refused by VPP, first 10.96.0.66:80/TCP") {
			t.Errorf("readiness %v: %s", report.Ready, report.Reasons())
		}
		h.expect(map[string][2]int{"nat44 key": {3500, 3750}, "nat44 object": {35, 50}})
		if n := written - writes; n > 3750 {
			t.Errorf("VPP was written to %d times in an hour", n)
		}
		if n := after - reads; n < 35 || n > 50 {
			t.Errorf("VPP was read %d times in an hour", n)
		}
		if len(h.faults) > 0 || len(h.fatal) > 0 {
			t.Errorf("failures %v, %v", h.faults, h.fatal)
		}
		for key, other := range map[string]messages.RenderState{"ns/web": inSync, "ns/db": inSync, "ns/bad": failed} {
			if got := h.status(key).GetRenders()[0].GetState(); got != other {
				t.Errorf("%s is %s", key, got)
			}
		}
		mend()
		h.run(1100 * time.Millisecond)
		h.settle(0)
	})
}

// status is what introspection knows of a service.
func (h *hospital) status(key string) *messages.ServiceStatus {
	h.Helper()
	answer, err := h.sys.Ask(context.Background(), PathIntrospect, &StatusQuery{Key: key})
	if err != nil || len(answer.(*StatusPage).Services) == 0 {
		h.Fatalf("%s: %v, %v", key, answer, err)
	}
	return answer.(*StatusPage).Services[0]
}

// TestRungKey: what VPP refuses twice and then takes costs two tries and no reading.
func TestRungKey(t *testing.T) {
	inHospital(t, func(h *hospital) {
		refused := 0
		mend := h.refuses(addRow, func(api.Message) bool { refused++; return refused <= 2 })
		defer mend()
		_, reads := h.wire.counts()
		h.serve("new", "10.96.0.12", "10.1.1.4")
		h.run(10 * time.Second)
		if _, after := h.wire.counts(); after != reads {
			t.Errorf("VPP was read %d times", after-reads)
		}
		h.settle(time.Second)
		h.expect(map[string][2]int{"nat44 key": {2, 2}})
	})
}

// TestRungObject: a row that VPP refuses because it is there already is found by reading VPP once.
func TestRungObject(t *testing.T) {
	inHospital(t, func(h *hospital) {
		key := frontend.Key{Addr: netip.MustParseAddr("10.96.0.12"), Port: 80, Proto: 6}
		h.occupy(key, true)
		h.serve("new", "10.96.0.12", "10.1.1.4")
		h.settle(20 * time.Second)
		if !strings.Contains(h.status("ns/new").GetRenders()[0].GetConflicts()[0].GetOwner(), "VPP") {
			t.Errorf("%v", h.status("ns/new"))
		}
		h.expect(map[string][2]int{"nat44 object": {1, 1}})
	})
}

// illSettings makes a new renderer meet a VPP that refuses its settings, for some time.
func illSettings(h *hospital, lasts time.Duration) {
	h.wire.crash()
	h.wire.connect()
	mend := h.refuses("nat44_interface_add_del_feature", nil)
	h.run(lasts)
	if h.deps.Readiness.Load().Ready {
		h.Error("ready while VPP refuses the settings")
	}
	mend()
	h.settle(2 * time.Minute)
	h.quiet()
}

func TestRungDownstream(t *testing.T) {
	inHospital(t, func(h *hospital) {
		illSettings(h, 40*time.Second)
		h.expect(map[string][2]int{"nat44 downstream": {1, 2}}) // it takes until the next try
	})
}

func TestRungFull(t *testing.T) {
	inHospital(t, func(h *hospital) {
		illSettings(h, 135*time.Second)
		h.expect(map[string][2]int{"nat44 downstream": {3, 3}, "nat44 full": {1, 1}})
		if h.faults[PathRenderer(nat)] != 1 || h.faults[PathDataplane] != 0 {
			t.Errorf("failures %v", h.faults)
		}
	})
}

func TestRungSubtree(t *testing.T) {
	inHospital(t, func(h *hospital) {
		illSettings(h, 225*time.Second)
		h.expect(map[string][2]int{"nat44 downstream": {3, 3}, "nat44 full": {3, 3}, "nat44 subtree": {1, 1}})
		if h.faults[PathDataplane] != 1 || len(h.fatal) > 0 {
			t.Errorf("failures %v, %v", h.faults, h.fatal)
		}
	})
}

func TestRungExit(t *testing.T) {
	inHospital(t, func(h *hospital) {
		illSettings(h, 275*time.Second)
		h.expect(map[string][2]int{"nat44 downstream": {3, 3}, "nat44 full": {3, 3}, "nat44 subtree": {2, 2}, "nat44 exit": {1, 2}}) // in a test the process goes on
		if len(h.fatal) == 0 || !strings.Contains(h.fatal[0].Error(), "nat44 has not been well for 4m") {
			t.Fatalf("fatal %v", h.fatal)
		}
		if k, _ := classify(h.fatal[0]); k != classProcess {
			t.Errorf("it is of class %s", k)
		}
	})
}

// TestFailedResyncClimbs: VPP can not be read.
func TestFailedResyncClimbs(t *testing.T) {
	inHospital(t, func(h *hospital) {
		h.wire.mu.Lock()
		h.wire.unreadable = errors.New("no dump")
		h.wire.mu.Unlock()
		h.kill(PathRenderer(nat))
		h.run(135 * time.Second)
		if reasons := h.deps.Readiness.Load().Reasons(); !strings.Contains(reasons, "nat44: "+causeUnknown) || !strings.Contains(reasons, "no dump") {
			t.Errorf("readiness: %s", reasons)
		}
		h.expect(map[string][2]int{"nat44 downstream": {3, 3}, "nat44 full": {1, 1}})
		h.wire.mu.Lock()
		h.wire.unreadable = nil
		h.wire.mu.Unlock()
		h.settle(2 * time.Minute)
		h.run(healthRepeat)
		page := h.healing()
		if len(page.Cases) != 0 || page.Counts["nat44"]["full"] != 1 {
			t.Errorf("%+v", page)
		}
	})
}

// TestSleepIsNoIllness: the machine sleeps while something is wrong. Nobody could do anything about it meanwhile, so nobody is restarted for that.
func TestSleepIsNoIllness(t *testing.T) {
	inHospital(t, func(h *hospital) {
		unreadable := func(err error) {
			h.wire.mu.Lock()
			defer h.wire.mu.Unlock()
			h.wire.unreadable = err
		}
		unreadable(errors.New("no dump"))
		h.kill(PathRenderer(nat))
		h.run(10 * time.Second)
		if page := h.healing(); len(page.Cases) != 1 {
			t.Fatalf("cases %+v", page.Cases)
		}
		unreadable(nil)
		h.sim.Skip(3 * h.deps.Timing.Patience)
		h.settle(time.Minute)
		h.run(time.Minute)
		h.expect(map[string][2]int{})
	})
}

// healing asks the healer.
func (h *hospital) healing() *HealingPage {
	h.Helper()
	answer, err := h.sys.Ask(context.Background(), PathHealer, &HealingQuery{})
	if err != nil {
		h.Fatal(err)
	}
	return answer.(*HealingPage)
}

// kill makes an actor fail.
func (h *hospital) kill(path string) {
	h.Helper()
	if err := h.sys.Kill(path); err != nil {
		h.Fatal(err)
	}
	h.run(time.Second)
}

// TestWhoHangsIsRestarted: nobody can be asked for anything who does not listen.
func TestWhoHangsIsRestarted(t *testing.T) {
	inHospital(t, func(h *hospital) {
		box, _ := h.sys.Mailbox(PathInterfaces)
		box.Hold()
		h.run(healthStale + 20*time.Second)
		if reasons := h.deps.Readiness.Load().Reasons(); !strings.Contains(reasons, "interfaces: silent for") {
			t.Errorf("readiness: %s", reasons)
		}
		h.expect(nil)
		h.run(20 * time.Second)
		h.expect(map[string][2]int{"interfaces subtree": {1, 1}})
		h.settle(10 * time.Second)
	})
}

// TestWhatIsOutsideIsWaitedFor: neither a VPP that is away nor a cluster that does not answer is a reason to restart anybody.
func TestWhatIsOutsideIsWaitedFor(t *testing.T) {
	inHospital(t, func(h *hospital) {
		h.wire.disconnect()
		h.run(30 * time.Minute)
		h.expect(nil)
		if h.deps.Readiness.Load().Ready || len(h.faults) > 0 {
			t.Errorf("failures %v", h.faults)
		}
		h.wire.connect()
		h.settle(time.Minute)
	})
}

// TestANodeThatKubernetesDoesNotHaveIsWaitedFor: it may be about to register, or an operator gave another name; readiness says which, and no
// restart would help.
func TestANodeThatKubernetesDoesNotHaveIsWaitedFor(t *testing.T) {
	var node *messages.Node
	admitted(t, func(h *house) { node, h.cluster.node = h.cluster.node, nil }, func(h *hospital) {
		h.serve("web", "10.96.0.10", "10.1.1.2")
		h.run(30 * time.Minute)
		h.expect(nil)
		if page := h.deps.Readiness.Load(); page.Ready || !strings.Contains(page.Reasons(), "registry: Kubernetes has no node "+testNode) {
			t.Errorf("readiness: %s", page.Reasons())
		}
		h.cluster.change(func() { h.cluster.node = node })
		h.settle(time.Minute)
		h.cluster.change(func() { h.cluster.node = nil })
		h.run(30 * time.Minute)
		h.expect(nil)
		if page := h.deps.Readiness.Load(); !page.Ready || len(h.wire.rows()) == 0 {
			t.Errorf("after the node has gone: %s, rows %v", page.Reasons(), h.wire.rows())
		}
		if len(h.faults)+len(h.fatal) > 0 {
			t.Errorf("failures %v, %v", h.faults, h.fatal)
		}
	})
}

// steal has somebody remove a row of ours.
func (h *hospital) steal(k frontend.Key) {
	h.Helper()
	if retval, err := h.wire.vpp.ForeignRemove(netip.AddrPortFrom(k.Addr, k.Port), k.Proto); err != nil || retval != 0 {
		h.Fatalf("steal %s: %d, %v", k, retval, err)
	}
}

// forge has somebody add a row that looks like one of ours.
func (h *hospital) forge(k frontend.Key) {
	h.Helper()
	backends := []simulator.Backend{
		{Addr: netip.MustParseAddrPort("10.9.9.1:80"), Weight: 7}, {Addr: netip.MustParseAddrPort("10.9.9.2:80"), Weight: 7},
	}
	retval, err := h.wire.vpp.ForeignAdd(simulator.ForeignRow{
		VIP: netip.AddrPortFrom(k.Addr, k.Port), Proto: k.Proto, Tag: "troupe/spkmuihwv64l2gc3/w7", Backends: backends,
	})
	if err != nil || retval != 0 {
		h.Fatalf("forge %s: %d, %v", k, retval, err)
	}
}

// alter has somebody put other backends behind a row of ours.
func (h *hospital) alter(k frontend.Key) {
	h.steal(k)
	h.forge(k)
}

// unrole has somebody take a role from an interface.
func (h *hospital) unrole(name string, role nat_types.NatConfigFlags) {
	h.Helper()
	index := interface_types.InterfaceIndex(h.wire.vpp.Interfaces()[name])
	if _, err := h.wire.vpp.Exec(&nat44_ed.Nat44InterfaceAddDelFeature{SwIfIndex: index, Flags: role}); err != nil {
		h.Fatal(err)
	}
}

// retime has somebody change how long sessions live.
func (h *hospital) retime() {
	h.Helper()
	if _, err := h.wire.vpp.Exec(&nat44_ed.NatSetTimeouts{UDP: 5, TCPEstablished: 5, TCPTransitory: 5, ICMP: 5}); err != nil {
		h.Fatal(err)
	}
}

// TestHalfDoneIsNoDrift: VPP takes one of the two roles of an interface and refuses the other. Nobody else has been there.
func TestHalfDoneIsNoDrift(t *testing.T) {
	inHospital(t, func(h *hospital) {
		mend := h.refuses("nat44_interface_add_del_feature", func(m api.Message) bool {
			return m.(*nat44_ed.Nat44InterfaceAddDelFeature).Flags == nat_types.NAT_IS_OUTSIDE
		})
		h.unrole("uplink0", nat_types.NAT_IS_INSIDE)
		h.unrole("uplink0", nat_types.NAT_IS_OUTSIDE)
		h.run(5 * time.Second)
		mend()
		h.run(time.Minute)
		if wrong := h.wrong(); wrong != "" || h.drifted != 1 {
			t.Errorf("%d differences counted, want 1; VPP lacks %q", h.drifted, wrong)
		}
	})
}

// TestDriftIsRepaired: what others do to our rows, settings and interfaces is found by the periodic check and mended, as much as was damaged and no more.
func TestDriftIsRepaired(t *testing.T) {
	inHospital(t, func(h *hospital) {
		web := frontend.Key{Addr: netip.MustParseAddr("10.96.0.10"), Port: 80, Proto: 6}
		forged := frontend.Key{Addr: netip.MustParseAddr("10.96.0.99"), Port: 80, Proto: 6}
		for _, tt := range []struct {
			what   string
			damage func()
			writes int
		}{
			{"a row is stolen", func() { h.steal(web) }, 1},
			{"a row is altered", func() { h.alter(web) }, 4},
			{"a row with a tag of ours is injected", func() { h.forge(forged) }, 1},
			{"a role is taken", func() { h.unrole("uplink0", nat_types.NAT_IS_OUTSIDE) }, 1},
			{"timeouts are set", h.retime, 1},
		} {
			before, writes := h.drifted, 0
			tt.damage()
			started, _ := h.wire.counts()
			h.run(h.deps.Timing.Audit + 5*time.Second)
			if wrong := h.wrong(); wrong != "" {
				t.Errorf("%s: after a check:\n%s", tt.what, wrong)
			}
			ended, _ := h.wire.counts()
			if writes = ended - started; writes > tt.writes {
				t.Errorf("%s: %d writes, want at most %d", tt.what, writes, tt.writes)
			}
			if h.drifted != before+1 {
				t.Errorf("%s: %d differences counted, want 1", tt.what, h.drifted-before)
			}
		}
		h.expect(nil)
		h.quiet()
	})
}

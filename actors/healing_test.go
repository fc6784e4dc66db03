package actors_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// patient is a node in virtual time that records the steps of the escalation.
type patient struct {
	*actorstest.World
	report.None
	taken   map[string]int // steps, by "part step"
	drifted int
	faults  map[string]int // failures of actors, by path
	fatal   []error
}

func (p *patient) Healed(part, step string, n int) { p.taken[part+" "+step] += n }

func (p *patient) Drifted(_ string, n int) { p.drifted += n }

// onNode plays on a node that serves two services.
func onNode(t *testing.T, play func(p *patient)) {
	t.Helper()
	onEmptyNode(t, func(p *patient) {
		p.Source.Serve("web", "10.96.0.10", "10.1.1.2", "10.1.2.9")
		p.Source.Serve("db", "10.96.0.11", "10.1.1.3")
		p.Settle(time.Minute)
		play(p)
	})
}

// onEmptyNode plays on a node whose agent begins.
func onEmptyNode(t *testing.T, play func(p *patient)) {
	t.Helper()
	p := &patient{taken: map[string]int{}, faults: map[string]int{}}
	config := actorstest.Config{
		Deps: func(d *actors.Deps) {
			d.Observer = p
			d.Fatal = func(err error) { p.fatal = append(p.fatal, err) }
		},
		System: func(o *runtime.Options) { o.OnFault = func(f *messages.Fault) { p.faults[f.GetActor()]++ } },
	}
	actorstest.Simulate(t, 1, config, func(w *actorstest.World) {
		p.World = w
		play(p)
	})
}

// refuses makes VPP refuse the messages of a name for which a function is true; nil = all.
func (p *patient) refuses(name string, about func(api.Message) bool) (mend func()) {
	p.Stream.Veto = func(m api.Message) error {
		if strings.HasPrefix(m.GetMessageName(), name) && (about == nil || about(m)) {
			return &link.RetvalError{Message: m.GetMessageName(), Retval: -1}
		}
		return nil
	}
	return func() { p.Stream.Veto = nil }
}

// unreadable makes every dump of NAT fail, until it is called with nil.
func (p *patient) unreadable(err error) {
	p.Stream.Veto = func(m api.Message) error {
		if strings.HasPrefix(m.GetMessageName(), "nat44") && strings.HasSuffix(m.GetMessageName(), "_dump") {
			return err
		}
		return nil
	}
}

// reads is how often VPP's rows were read for a reason.
func (p *patient) reads() int { return p.Stream.Reads - p.Stream.Checks }

// expect checks how often rungs were taken; what is not named was not.
func (p *patient) expect(want map[string][2]int) {
	p.Helper()
	for name, between := range want {
		if n := p.taken[name]; n < between[0] || n > between[1] {
			p.Errorf("%s: %d times, want %d to %d", name, n, between[0], between[1])
		}
	}
	for name, n := range p.taken {
		if _, wanted := want[name]; !wanted {
			p.Errorf("%s: %d times, want none", name, n)
		}
	}
}

const addRow = "nat44_add_del_lb_static_mapping"

// TestOneBadObjectMakesNoStorm: VPP refuses one row for an hour. It is tried once a second, which
// costs one message; VPP is read for it more and more seldom; nothing else happens to other actors,
// and when VPP takes the row all is well at once.
func TestOneBadObjectMakesNoStorm(t *testing.T) {
	onNode(t, func(p *patient) {
		tries := 0
		mend := p.refuses(addRow, func(api.Message) bool { tries++; return true })
		p.Source.Serve("bad", "10.96.0.66", "10.1.1.4")
		writes, reads := p.Writes(), p.reads()
		p.Run(time.Hour)
		if report := p.Deps.Readiness.Load(); report.Ready || !strings.Contains(report.Reasons(), "nat44: 1 rows refused by VPP, first 10.96.0.66:80/TCP") {
			t.Errorf("readiness %v: %s", report.Ready, report.Reasons())
		}
		p.expect(map[string][2]int{"nat44 key": {3500, 3750}, "nat44 object": {35, 50}})
		if n := p.Writes() - writes + uint64(tries); n > 3750 {
			t.Errorf("VPP was written to %d times in an hour", n)
		}
		if n := p.reads() - reads; n < 35 || n > 50 {
			t.Errorf("VPP was read %d times in an hour", n)
		}
		if len(p.faults) > 0 || len(p.fatal) > 0 {
			t.Errorf("failures %v, %v", p.faults, p.fatal)
		}
		for key, other := range map[string]messages.RenderState{"default/web": messages.RenderState_RENDER_IN_SYNC, "default/db": messages.RenderState_RENDER_IN_SYNC, "default/bad": messages.RenderState_RENDER_FAILED} {
			if got := p.Statuses()[key].GetRenders()[0].GetState(); got != other {
				t.Errorf("%s is %s", key, got)
			}
		}
		mend()
		p.Run(1100 * time.Millisecond)
		p.Settle(0)
	})
}

// TestStepKey: what VPP refuses twice and then takes costs two tries and no reading.
func TestStepKey(t *testing.T) {
	onNode(t, func(p *patient) {
		refused := 0
		mend := p.refuses(addRow, func(api.Message) bool { refused++; return refused <= 2 })
		defer mend()
		reads := p.reads()
		p.Source.Serve("new", "10.96.0.12", "10.1.1.4")
		p.Run(10 * time.Second)
		if after := p.reads(); after != reads {
			t.Errorf("VPP was read %d times", after-reads)
		}
		p.Settle(time.Second)
		p.expect(map[string][2]int{"nat44 key": {2, 2}})
	})
}

// TestStepObject: a row that VPP refuses because it is there already is found by reading VPP once.
func TestStepObject(t *testing.T) {
	onNode(t, func(p *patient) {
		key := rule.Key{Addr: netip.MustParseAddr("10.96.0.12"), Port: 80, Proto: 6}
		p.Occupy(key)
		p.Source.Serve("new", "10.96.0.12", "10.1.1.4")
		p.Settle(20 * time.Second)
		if !strings.Contains(p.Statuses()["default/new"].GetRenders()[0].GetConflicts()[0].GetOwner(), "VPP") {
			t.Errorf("%v", p.Statuses()["default/new"])
		}
		p.expect(map[string][2]int{"nat44 object": {1, 1}})
	})
}

// illSettings makes a new renderer meet a VPP that refuses its settings, for some time.
func illSettings(p *patient, lasts time.Duration) {
	p.CrashVPP()
	p.Stream.Connect()
	mend := p.refuses("nat44_interface_add_del_feature", nil)
	p.Run(lasts)
	if p.Deps.Readiness.Load().Ready {
		p.Error("ready while VPP refuses the settings")
	}
	mend()
	p.Settle(2 * time.Minute)
	p.Rests(3 * time.Minute)
}

func TestStepDownstream(t *testing.T) {
	onNode(t, func(p *patient) {
		illSettings(p, 40*time.Second)
		p.expect(map[string][2]int{"nat44 downstream": {1, 2}}) // it takes until the next try
	})
}

func TestStepFull(t *testing.T) {
	onNode(t, func(p *patient) {
		illSettings(p, 135*time.Second)
		p.expect(map[string][2]int{"nat44 downstream": {3, 3}, "nat44 full": {1, 1}})
		if p.faults[address.Renderer("nat44")] != 1 || p.faults[address.Dataplane] != 0 {
			t.Errorf("failures %v", p.faults)
		}
	})
}

func TestStepSubtree(t *testing.T) {
	onNode(t, func(p *patient) {
		illSettings(p, 225*time.Second)
		p.expect(map[string][2]int{"nat44 downstream": {3, 3}, "nat44 full": {3, 3}, "nat44 subtree": {1, 1}})
		if p.faults[address.Dataplane] != 1 || len(p.fatal) > 0 {
			t.Errorf("failures %v, %v", p.faults, p.fatal)
		}
	})
}

func TestStepExit(t *testing.T) {
	onNode(t, func(p *patient) {
		illSettings(p, 275*time.Second)
		// in a test the process goes on
		p.expect(map[string][2]int{"nat44 downstream": {3, 3}, "nat44 full": {3, 3}, "nat44 subtree": {2, 2}, "nat44 exit": {1, 2}})
		if len(p.fatal) == 0 || !strings.Contains(p.fatal[0].Error(), "nat44 did not recover for 4m") {
			t.Fatalf("fatal %v", p.fatal)
		}
	})
}

// TestFailedResyncClimbs: VPP can not be read.
func TestFailedResyncClimbs(t *testing.T) {
	onNode(t, func(p *patient) {
		p.unreadable(errors.New("no dump"))
		p.fail(address.Renderer("nat44"))
		p.Run(135 * time.Second)
		if reasons := p.Deps.Readiness.Load().Reasons(); !strings.Contains(reasons, "nat44: what VPP holds is not known") || !strings.Contains(reasons, "no dump") {
			t.Errorf("readiness: %s", reasons)
		}
		p.expect(map[string][2]int{"nat44 downstream": {3, 3}, "nat44 full": {1, 1}})
		p.unreadable(nil)
		p.Settle(2 * time.Minute)
		p.Run(report.Heartbeat)
		page := p.healing()
		if len(page.Cases) != 0 || page.Counts["nat44"]["full"] != 1 {
			t.Errorf("%+v", page)
		}
	})
}

// TestSleepIsNoIllness: the machine sleeps while something is wrong. No actor could do anything
// about it meanwhile, so none is restarted for that.
func TestSleepIsNoIllness(t *testing.T) {
	onNode(t, func(p *patient) {
		p.unreadable(errors.New("no dump"))
		p.fail(address.Renderer("nat44"))
		p.Run(10 * time.Second)
		if page := p.healing(); len(page.Cases) != 1 {
			t.Fatalf("cases %+v", page.Cases)
		}
		p.unreadable(nil)
		p.Sim.Skip(3 * 30 * time.Second)
		p.Settle(time.Minute)
		p.Run(time.Minute)
		p.expect(map[string][2]int{})
	})
}

// healing asks the healer.
func (p *patient) healing() *health.Page {
	p.Helper()
	return actorstest.Ask[*health.Page](p.World, address.Healer, &health.Query{})
}

// fail makes an actor fail.
func (p *patient) fail(path string) {
	p.Helper()
	if err := p.System.Kill(path); err != nil {
		p.Fatal(err)
	}
	p.Run(time.Second)
}

// TestHangingActorIsRestarted: an actor that does not listen cannot be asked for anything.
func TestHangingActorIsRestarted(t *testing.T) {
	onNode(t, func(p *patient) {
		box, _ := p.System.Mailbox(address.Interfaces)
		box.Hold()
		p.Run(report.SilentAfter + 20*time.Second)
		if reasons := p.Deps.Readiness.Load().Reasons(); !strings.Contains(reasons, "interfaces: silent for") {
			t.Errorf("readiness: %s", reasons)
		}
		p.expect(nil)
		p.Run(20 * time.Second)
		p.expect(map[string][2]int{"interfaces subtree": {1, 1}})
		p.Settle(10 * time.Second)
	})
}

// TestWhatIsOutsideIsWaitedFor: neither a VPP that is away nor a cluster that does not answer is a
// reason to restart an actor.
func TestWhatIsOutsideIsWaitedFor(t *testing.T) {
	onNode(t, func(p *patient) {
		p.Stream.Disconnect("the connection broke")
		p.Run(30 * time.Minute)
		p.expect(nil)
		if p.Deps.Readiness.Load().Ready || len(p.faults) > 0 {
			t.Errorf("failures %v", p.faults)
		}
		p.Stream.Connect()
		p.Settle(time.Minute)
	})
}

// TestANodeThatKubernetesDoesNotHaveIsWaitedFor: it may be about to register, or an operator gave
// another name; readiness says which, and no restart would help.
func TestANodeThatKubernetesDoesNotHaveIsWaitedFor(t *testing.T) {
	onEmptyNode(t, func(p *patient) {
		gone := func(s *kube.Store) { s.Delete("Node", probe.Node) }
		p.Source.Change(gone)
		p.Source.Serve("web", "10.96.0.10", "10.1.1.2")
		p.Run(30 * time.Minute)
		p.expect(nil)
		if page := p.Deps.Readiness.Load(); page.Ready || !strings.Contains(page.Reasons(), "registry: Kubernetes has no node "+probe.Node) {
			t.Errorf("readiness: %s", page.Reasons())
		}
		p.Source.Change(func(s *kube.Store) { s.Set(probe.ThisNode(), nil) })
		p.Settle(time.Minute)
		p.Source.Change(gone)
		p.Run(30 * time.Minute)
		p.expect(nil)
		if page := p.Deps.Readiness.Load(); !page.Ready || len(p.Rows()) == 0 {
			t.Errorf("after the node has gone: %s, rows %v", page.Reasons(), p.Rows())
		}
		if len(p.faults)+len(p.fatal) > 0 {
			t.Errorf("failures %v, %v", p.faults, p.fatal)
		}
	})
}

// steal removes a row of the agent as another client.
func (p *patient) steal(k rule.Key) {
	p.Helper()
	if retval, err := p.VPP.ForeignRemove(netip.AddrPortFrom(k.Addr, k.Port), k.Proto); err != nil || retval != 0 {
		p.Fatalf("steal %s: %d, %v", k, retval, err)
	}
}

// forge adds a row, as another client, that looks like one of the agent.
func (p *patient) forge(k rule.Key) {
	p.Helper()
	backends := []simulator.Backend{
		{Addr: netip.MustParseAddrPort("10.9.9.1:80"), Weight: 7}, {Addr: netip.MustParseAddrPort("10.9.9.2:80"), Weight: 7},
	}
	retval, err := p.VPP.ForeignAdd(simulator.ForeignRow{
		VIP: netip.AddrPortFrom(k.Addr, k.Port), Proto: k.Proto, Tag: "troupe/spkmuihwv64l2gc3/a0", Backends: backends,
	})
	if err != nil || retval != 0 {
		p.Fatalf("forge %s: %d, %v", k, retval, err)
	}
}

// alter changes the backends of a row of the agent, as another client.
func (p *patient) alter(k rule.Key) {
	p.steal(k)
	p.forge(k)
}

// unrole takes a role from an interface, as another client.
func (p *patient) unrole(name string, role nat_types.NatConfigFlags) {
	p.Helper()
	index := interface_types.InterfaceIndex(p.VPP.Interfaces()[name])
	if _, err := p.VPP.Exec(&nat44_ed.Nat44InterfaceAddDelFeature{SwIfIndex: index, Flags: role}); err != nil {
		p.Fatal(err)
	}
}

// retime changes how long sessions live, as another client.
func (p *patient) retime() {
	p.Helper()
	if _, err := p.VPP.Exec(&nat44_ed.NatSetTimeouts{UDP: 5, TCPEstablished: 5, TCPTransitory: 5, ICMP: 5}); err != nil {
		p.Fatal(err)
	}
}

// TestHalfDoneIsNoDrift: VPP takes one of the two roles of an interface and refuses the other. No
// other client has been there.
func TestHalfDoneIsNoDrift(t *testing.T) {
	onNode(t, func(p *patient) {
		mend := p.refuses("nat44_interface_add_del_feature", func(m api.Message) bool {
			return m.(*nat44_ed.Nat44InterfaceAddDelFeature).Flags == nat_types.NAT_IS_OUTSIDE
		})
		p.unrole("uplink0", nat_types.NAT_IS_INSIDE)
		p.unrole("uplink0", nat_types.NAT_IS_OUTSIDE)
		p.Run(5 * time.Second)
		mend()
		p.Run(time.Minute)
		if wrong := p.Wrong(); wrong != "" || p.drifted != 1 {
			t.Errorf("%d differences counted, want 1; VPP lacks %q", p.drifted, wrong)
		}
	})
}

// TestDriftIsRepaired: what others do to our rows, settings and interfaces is found by the periodic
// check and mended, as much as was damaged and no more.
func TestDriftIsRepaired(t *testing.T) {
	onNode(t, func(p *patient) {
		web := rule.Key{Addr: netip.MustParseAddr("10.96.0.10"), Port: 80, Proto: 6}
		forged := rule.Key{Addr: netip.MustParseAddr("10.96.0.99"), Port: 80, Proto: 6}
		for _, tt := range []struct {
			what   string
			damage func()
			writes int
		}{
			{"a row is stolen", func() { p.steal(web) }, 1},
			{"a row is altered", func() { p.alter(web) }, 4},
			{"a row with a tag of ours is injected", func() { p.forge(forged) }, 1},
			{"a role is taken", func() { p.unrole("uplink0", nat_types.NAT_IS_OUTSIDE) }, 1},
			{"timeouts are set", p.retime, 1},
		} {
			before := p.drifted
			tt.damage()
			started := p.Writes()
			p.Run(time.Minute + 5*time.Second)
			if wrong := p.Wrong(); wrong != "" {
				t.Errorf("%s: after a check:\n%s", tt.what, wrong)
			}
			ended := p.Writes()
			if writes := int(ended - started); writes > tt.writes {
				t.Errorf("%s: %d writes, want at most %d", tt.what, writes, tt.writes)
			}
			if p.drifted != before+1 {
				t.Errorf("%s: %d differences counted, want 1", tt.what, p.drifted-before)
			}
		}
		p.expect(nil)
		p.Rests(3 * time.Minute)
	})
}

package actors

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

const nat, refusing = "nat44", "routes"

// withRenderer plays a renderer that is connected to VPP, whose interfaces are known; the services "a/a" and "b/b" have extras.
func withRenderer(t *testing.T, play func(s *stage)) {
	t.Helper()
	perform(t, PathRenderer(nat), []string{"a/a", "b/b"}, func(s *stage) {
		s.deps.NAT44.TwiceNAT = netip.MustParseAddr("10.1.1.254")
		s.kill()
		s.connected()
		s.found(1)
		play(s)
	})
}

// found tells of the interfaces of the present VPP, as the interfaces actor would.
func (s *stage) found(generation uint64) {
	indexes := s.wire.vpp.Interfaces()
	set := &messages.InterfaceSet{Generation: generation, Complete: true}
	s.wire.mu.Lock()
	set.Boot = s.wire.state.GetBoot()
	s.wire.mu.Unlock()
	for _, name := range []string{"uplink0", "pod2"} {
		set.Interfaces = append(set.Interfaces, &messages.Interface{SwIfIndex: indexes[name], Name: name, Frontend: true, Local: name != "uplink0"})
	}
	s.tell(set)
}

// epoch is the present epoch of the renderer.
func (s *stage) epoch() uint64 { return latest[*messages.RenderUp](s, PathRegistry).GetEpoch() }

// begin tells the renderer who exists.
func (s *stage) begin(generation uint64, keys ...string) {
	s.tell(&messages.Begin{Epoch: s.epoch(), Keys: keys, Generation: generation, Node: &messages.NodeContext{Node: testNodeObject()}})
}

// serve lets a service speak; without addresses it is gone.
func (s *stage) serve(key string, generation uint64, addresses ...string) {
	m := &messages.Render{Key: key, Generation: generation, Epoch: s.epoch()}
	if len(addresses) > 0 {
		m.View, m.Hash = viewOf(key, int64(len(key)), addresses...), generation
	}
	s.tell(m)
}

// standing is what a service was told last.
func (s *stage) standing(key string) messages.RenderState {
	return latest[*messages.RenderAck](s, PathService(key)).GetState()
}

// readiness is the last health of the renderer.
func (s *stage) readiness() *messages.Health { return latest[*messages.Health](s, PathHealer) }

// wrote runs something and returns how often VPP was written to and its rows were read meanwhile.
func (s *stage) wrote(what func()) (writes, reads int) {
	w, r := s.wire.counts()
	what()
	writes, reads = s.wire.counts()
	return writes - w, reads - r
}

// vips are the frontends of the rows of ours in VPP.
func (s *stage) vips() []string {
	var vips []string
	for _, row := range s.wire.rows() {
		vip, _, _ := strings.Cut(row, " ")
		vips = append(vips, vip)
	}
	return vips
}

const (
	inSync  = messages.RenderState_RENDER_IN_SYNC
	pending = messages.RenderState_RENDER_PENDING
	failed  = messages.RenderState_RENDER_FAILED
	retired = messages.RenderState_RENDER_RETIRED
)

func TestRendererInstallsWhatServicesWant(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		if s.standing("a/a") != inSync || !slices.Equal(s.vips(), []string{"10.0.0.1:80/6", "10.0.0.2:80/6"}) {
			t.Errorf("told %v, VPP holds %q", s.standing("a/a"), s.vips())
		}
		writes, reads := s.wrote(func() {
			s.serve("a/a", 2, "10.0.0.1", "10.0.0.2")
			s.run(10 * time.Second)
		})
		if writes+reads != 0 {
			t.Errorf("the same again cost %d writes and %d reads", writes, reads)
		}
		writes, _ = s.wrote(func() { s.serve("a/a", 3, "10.0.0.1") })
		if writes != 0 {
			t.Errorf("%d writes before the barrier: a row was removed", writes)
		}
		s.begin(10, "a/a")
		if got := s.vips(); !slices.Equal(got, []string{"10.0.0.1:80/6"}) {
			t.Errorf("behind the barrier VPP holds %q", got)
		}
	})
}

func TestRendererAsksForItsEpochForEver(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.forget()
		s.run(3 * time.Second)
		if up := all[*messages.RenderUp](s, PathRegistry); len(up) < 3 || up[0].GetBegun() != 0 || up[0].GetEpoch() != 2 {
			t.Errorf("said %v", up)
		}
		s.begin(7)
		s.forget()
		s.run(3 * time.Second)
		if up := all[*messages.RenderUp](s, PathRegistry); len(up) < 3 || up[0].GetBegun() != 7 || up[0].GetServices() != 0 {
			t.Errorf("said %v", up)
		}
		s.serve("late/one", 8, "10.0.0.7") // it went meanwhile; the registry finds out by the number
		s.forget()
		s.run(time.Second)
		if up := latest[*messages.RenderUp](s, PathRegistry); up.GetServices() != 1 {
			t.Errorf("said %v", up)
		}
		s.begin(9)
		s.run(time.Second)
		if up := latest[*messages.RenderUp](s, PathRegistry); up.GetServices() != 0 || len(s.vips()) != 0 {
			t.Errorf("said %v, VPP holds %q", up, s.vips())
		}
		s.forget()
		s.tell(&messages.Resync{Sibling: "registry"})
		if latest[*messages.RenderUp](s, PathRegistry) == nil {
			t.Error("does not answer a new registry")
		}
		s.tell(&messages.Resync{Sibling: "link"})
		if latest[*messages.Resync](s, PathLink) == nil || latest[*messages.Resync](s, PathInterfaces) == nil {
			t.Error("does not ask new siblings")
		}
	})
}

// TestRendererSaysNothingOfSettingsThatItDoesNotKnow: the hairpin address comes with the node; an approximation for want of it would be an Event.
func TestRendererSaysNothingOfSettingsThatItDoesNotKnow(t *testing.T) {
	withRenderer(t, func(s *stage) {
		v := viewOf("a/a", 1, "10.0.0.1")
		v.Frontends[0].AffinitySeconds = 60
		s.speak(1, v)
		for _, ack := range all[*messages.RenderAck](s, PathService("a/a")) {
			if len(ack.GetApproximations()) > 0 {
				t.Errorf("before the node is known: %v", ack)
			}
		}
		s.begin(1, "a/a")
		s.run(time.Second)
		if got := latest[*messages.RenderAck](s, PathService("a/a")).GetApproximations(); len(got) != 1 {
			t.Errorf("afterwards: %v", got)
		}
	})
}

// TestRendererRemovesNothingBeforeTheBarrier goes through the ways in which services come to have spoken.
func TestRendererRemovesNothingBeforeTheBarrier(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.serve("a/a", 1, "10.0.0.1")
		s.serve("b/b", 1, "10.0.0.2")
		s.begin(5, "a/a", "b/b")
		s.kill()
		s.connected()
		s.found(2)
		check := func(when string, rows int, reason string) {
			t.Helper()
			s.run(2 * time.Second)
			h := s.readiness()
			if len(s.vips()) != rows || !strings.Contains(h.GetReason(), reason) || h.GetOk() != (reason == "") {
				t.Errorf("%s: %d rows and %v, want %d rows and %q", when, len(s.vips()), h, rows, reason)
			}
		}
		check("at the start", 2, causeServices)
		s.tell(&messages.Begin{Epoch: s.epoch() - 1, Generation: 9})
		check("a list of an earlier epoch", 2, causeServices)
		s.begin(9, "a/a", "b/b")
		check("the list", 2, "2 services have not spoken, first a/a")
		s.forget()
		s.run(2 * time.Second)
		if got := latest[*messages.Missing](s, PathRegistry).GetKeys(); !slices.Equal(got, []string{"a/a", "b/b"}) {
			t.Errorf("asked for %q", got)
		}
		s.serve("a/a", 1, "10.0.0.1")
		check("one has spoken", 2, "1 services have not spoken, first b/b")
		before := s.wire.rows()
		s.tell(&messages.Render{Key: "b/b", Generation: 1, Epoch: 1, View: viewOf("b/b", 3, "10.0.0.2"), Hash: 1})
		check("one speaks of an earlier epoch", 2, "1 services have not spoken")
		if after := s.wire.rows(); !slices.Equal(before, after) || len(all[*messages.RenderAck](s, PathService("b/b"))) != 0 {
			t.Errorf("what was said to a predecessor counts: %q, and before %q", after, before)
		}
		if got := latest[*messages.Replay](s, PathService("b/b")); got.GetRenderer() != "nat44" || got.GetEpoch() != s.epoch() {
			t.Errorf("the service was asked for %v", got)
		}
		s.begin(11, "a/a")
		check("b/b is gone", 1, "")
		s.tell(&messages.Render{Key: "b/b", Generation: 12, Epoch: s.epoch()})
		if s.standing("b/b") != retired {
			t.Errorf("b/b was told %v", s.standing("b/b"))
		}
	})
}

func TestRendererIgnoresWhoIsGone(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.serve("a/a", 3, "10.0.0.1")
		s.begin(10, "b/b")
		s.serve("b/b", 4, "10.0.0.2")
		if got := s.vips(); !slices.Equal(got, []string{"10.0.0.2:80/6"}) {
			t.Fatalf("VPP holds %q", got)
		}
		s.serve("a/a", 9, "10.0.0.1") // repeats itself before it learns that it has to go
		if got := s.vips(); !slices.Equal(got, []string{"10.0.0.2:80/6"}) {
			t.Errorf("a service that is gone came back: VPP holds %q", got)
		}
		s.serve("a/a", 11, "10.0.0.1")
		if got := len(s.vips()); got != 2 || s.standing("a/a") != inSync {
			t.Errorf("a service that was created again has %d rows and was told %v", got, s.standing("a/a"))
		}
		s.begin(10, "b/b") // the same list once more, late
		if got := len(s.vips()); got != 2 {
			t.Errorf("a list that is older than a service removed it")
		}
	})
}

func TestRendererNeverGoesBack(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.serve("a/a", 5, "10.0.0.1")
		s.serve("a/a", 4, "10.0.0.9")
		s.serve("a/a", 3)
		if got := s.vips(); !slices.Equal(got, []string{"10.0.0.1:80/6"}) {
			t.Errorf("VPP holds %q", got)
		}
	})
}

func TestRendererRetiresWhoIsGone(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.serve("a/a", 5, "10.0.0.1")
		s.serve("a/a", 6)
		ack := latest[*messages.RenderAck](s, PathService("a/a"))
		if ack.GetState() != retired || ack.GetHash() != 0 || ack.GetGeneration() != 6 || len(s.vips()) != 0 {
			t.Errorf("told %v, VPP holds %q", ack, s.vips())
		}
		s.forget()
		s.serve("a/a", 6)
		if s.standing("a/a") != retired {
			t.Error("does not answer again after the account is closed")
		}
	})
}

func TestRendererGivesAContestedRowToTheOldest(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a", "b/b")
		young, old := viewOf("a/a", 20, "10.0.0.1"), viewOf("b/b", 10, "10.0.0.1")
		old.Frontends[0].Backends[0].Address = "10.1.1.3"
		s.tell(&messages.Render{Key: "a/a", Generation: 1, Epoch: 2, View: young, Hash: 1})
		s.tell(&messages.Render{Key: "b/b", Generation: 2, Epoch: 2, View: old, Hash: 2})
		conflicts := latest[*messages.RenderAck](s, PathService("a/a")).GetConflicts()
		if len(conflicts) != 1 || conflicts[0].GetOwner() != "b/b" || !strings.Contains(s.wire.rows()[0], "10.1.1.3") {
			t.Errorf("conflicts %v, VPP %q", conflicts, s.wire.rows())
		}
		loser, owner := s.ask(&RowsQuery{Service: "a/a"}).(*RowsPage), s.ask(&RowsQuery{Service: "b/b"}).(*RowsPage)
		if len(loser.Wanted) != 1 || len(loser.Held) != 0 || len(owner.Held) != 1 {
			t.Errorf("VPP holds of a/a %v, of b/b %v", loser.Held, owner.Held)
		}
		s.serve("b/b", 3)
		if got := latest[*messages.RenderAck](s, PathService("a/a")); len(got.GetConflicts()) != 0 || got.GetState() != inSync {
			t.Errorf("after the older one went: %v", got)
		}
		if s.standing("b/b") != retired || !strings.Contains(s.wire.rows()[0], "10.1.1.2") {
			t.Errorf("b/b was told %v, VPP %q", s.standing("b/b"), s.wire.rows())
		}
	})
}

// TestRendererIsNotReadyBeforeSettingsAre: a node without services still has to be set up.
func TestRendererIsNotReadyBeforeSettingsAre(t *testing.T) {
	perform(t, PathRenderer(nat), nil, func(s *stage) {
		s.wire.refuse = func(api.Message) error { return &link.RetvalError{Message: "m", Retval: -1} }
		s.connected()
		s.found(1)
		s.run(2 * time.Second)
		s.begin(1)
		if s.readiness().GetOk() {
			t.Error("ready though VPP refuses its settings")
		}
		s.wire.refuse = nil
		s.run(time.Minute)
		if !s.readiness().GetOk() || !strings.Contains(s.wire.vpp.State(), "pod2 in out") {
			t.Errorf("%v\n%s", s.readiness(), s.wire.vpp.State())
		}
	})
}

func TestRendererFollowsInterfacesAndNode(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.serve("a/a", 1, "10.0.0.1")
		more := &messages.InterfaceSet{Generation: 3, Boot: "boot-0", Complete: true, Interfaces: []*messages.Interface{
			{SwIfIndex: s.wire.vpp.Interfaces()["pod3"], Name: "pod3", Backend: true},
		}}
		s.tell(more)
		if !strings.Contains(s.wire.vpp.State(), "pod3 in out") || !s.readiness().GetOk() {
			t.Errorf("%v\n%s", s.readiness(), s.wire.vpp.State())
		}
		half := &messages.InterfaceSet{Generation: 4, Boot: "boot-0", Interfaces: []*messages.Interface{
			{SwIfIndex: s.wire.vpp.Interfaces()["pod4"], Name: "pod4", Frontend: true},
		}}
		writes, _ := s.wrote(func() { s.found(2); s.tell(more, half) })
		if writes != 0 {
			t.Errorf("an older set, the same again, or half of one cost %d writes", writes)
		}
	})
}

func TestRendererMovesItsHairpinAddress(t *testing.T) {
	perform(t, PathRenderer(nat), nil, func(s *stage) {
		s.connected()
		s.found(1)
		for i, cidr := range []string{"10.1.1.0/24", "10.1.2.0/24"} {
			node := testNodeObject()
			node.PodCidrs = []string{cidr}
			s.tell(&messages.Begin{Epoch: 1, Generation: uint64(i + 1), Node: &messages.NodeContext{Node: node}})
		}
		if state := s.wire.vpp.State(); !strings.Contains(state, "10.1.2.254 twice-nat") || strings.Contains(state, "10.1.1.254 twice-nat") {
			t.Errorf("VPP:\n%s", state)
		}
	})
}

func TestRendererAnswersQuestions(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.serve("a/a", 1, "10.0.0.1")
		page := s.ask(&RowsQuery{Service: "a/a"}).(*RowsPage)
		if len(page.Wanted) != 1 || len(page.Held) != 1 || page.Wanted[0].GetVip() != "10.0.0.1:80/TCP" {
			t.Errorf("rows %+v", page)
		}
		if page := s.ask(&RowsQuery{Service: "x/x"}).(*RowsPage); len(page.Wanted) != 0 {
			t.Errorf("rows of nobody %+v", page)
		}
		if diff := s.ask(&DiffQuery{}).(*DiffPage); diff.Err != nil || len(diff.Operations) != 0 {
			t.Errorf("diff %+v", diff)
		}
		_, _ = s.wire.vpp.ForeignRemove(netip.MustParseAddrPort("10.0.0.1:80"), 6)
		if diff := s.ask(&DiffQuery{}).(*DiffPage); len(diff.Operations) != 1 || len(s.vips()) != 0 {
			t.Errorf("diff %+v", diff)
		}
		s.wire.disconnect()
		s.connected()
		if diff := s.ask(&DiffQuery{}).(*DiffPage); !errors.Is(diff.Err, errNotConnected) {
			t.Errorf("diff %+v", diff)
		}
	})
}

func TestRendererSaysWhyItIsNotReadyWithoutAFlood(t *testing.T) {
	withRenderer(t, func(s *stage) {
		var keys []string
		for i := range 500 {
			keys = append(keys, "n/"+string([]byte{'a' + byte(i/26), 'a' + byte(i%26)}))
		}
		slices.Sort(keys)
		s.begin(1, keys...)
		s.forget()
		for i, key := range keys {
			s.tell(&messages.Render{Key: key, Generation: 1, Epoch: 2, Hash: 1, View: viewOf(key, 1, netip.AddrFrom4([4]byte{10, 2, byte(i / 250), byte(i%250 + 1)}).String())})
		}
		s.run(time.Second)
		if n := len(all[*messages.Health](s, PathHealer)); n > 5 || !s.readiness().GetOk() {
			t.Errorf("told its health %d times while 500 services spoke in half a second: %v", n, s.readiness())
		}
	})
}

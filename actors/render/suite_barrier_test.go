package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
)

func TestDriverInstallsWhatServicesWant(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(5, "a/a", "b/b")
		s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.expect("before the barrier", "10.0.0.1", "10.0.0.2")
		if s.State("a/a") != rendertest.InSync {
			s.Errorf("acknowledged %v", s.Ack("a/a"))
		}
		writes, reads := s.cost(func() {
			s.Serve("a/a", 2, "10.0.0.1", "10.0.0.2")
			s.Tell(&messages.Render{Key: "a/a", Generation: 3, Hash: 2, View: s.view("a/a", 3, "10.0.0.1", "10.0.0.2")})
			s.Run(10 * time.Second)
		})
		if writes+reads != 0 || s.Ack("a/a").GetGeneration() != 3 {
			s.Errorf("the same again cost %d writes and %d reads, acknowledged %v", writes, reads, s.Ack("a/a"))
		}
		s.Serve("a/a", 4, "10.0.0.1")
		s.Serve("b/b", 1, "10.0.0.3")
		s.expect("after the barrier", "10.0.0.1", "10.0.0.3")
		if !s.Health().GetOk() || s.Observed.Full != 1 || !s.Observed.Names[s.name] || len(s.Observed.Names) != 1 {
			s.Errorf("health %v, counted %+v", s.Health(), s.Observed)
		}
	})
}

// TestDriverAsksForWhatItNeeds: at the start the registry, the earlier siblings and, where it
// carries that out, external configuration; siblings again when one of them is new.
func TestDriverAsksForWhatItNeeds(t *testing.T) {
	each(t, func(s *scene) {
		s.Forget()
		s.Kill()
		if up := probe.All[*messages.RenderUp](s, address.Registry); len(up) != 1 || up[0].GetRenderer() != s.name {
			s.Errorf("told the registry %v", up)
		}
		for i := range 2 {
			for _, path := range []string{address.Link, address.Interfaces, address.External} {
				want := 1
				if path == address.External && !s.external {
					want = 0
				}
				if got := probe.All[*messages.Resync](s, path); len(got) != want || want > 0 && got[0].GetSibling() != s.name {
					s.Errorf("%d: told %s %v", i, path, got)
				}
			}
			s.Forget()
			s.Tell(&messages.Resync{Sibling: "link"})
		}
	})
}

// TestDriverRemovesNothingBeforeTheBarrier goes through the ways in which services come to have
// rendered.
func TestDriverRemovesNothingBeforeTheBarrier(t *testing.T) {
	each(t, func(s *scene) {
		s.Serve("a/a", 1, "10.0.0.1")
		s.Serve("b/b", 1, "10.0.0.2", "10.0.0.9")
		s.Begin(5, "a/a", "b/b")
		s.expect("the run before", "10.0.0.1", "10.0.0.2", "10.0.0.9")
		s.Kill()
		s.Connected()
		s.Found(2)
		check := func(when, reason string, want ...string) {
			s.Helper()
			s.Run(2 * time.Second)
			s.expect(when, want...)
			if h := s.Health(); !strings.Contains(h.GetReason(), reason) || h.GetOk() != (reason == "") {
				s.Errorf("%s: health %v, want %q", when, h, reason)
			}
		}
		all := []string{"10.0.0.1", "10.0.0.2", "10.0.0.9"}
		check("at the start", "the services are not known yet", all...)
		s.Forget()
		s.Tell(&messages.Begin{Keys: []string{"a/a", "b/b"}, Generations: []uint64{1, 7}, Generation: 9, Node: &messages.NodeContext{Node: probe.ThisNode()}})
		check("the list", "2 services have not rendered, first a/a", all...)
		for _, key := range []string{"a/a", "b/b"} {
			if got := probe.All[*messages.Replay](s, address.Service(key)); len(got) != 1 || got[0].GetRenderer() != s.name {
				s.Errorf("%s was asked %v", key, got)
			}
		}
		s.Serve("a/a", 1, "10.0.0.1")
		check("one has rendered", "1 services have not rendered, first b/b", all...)
		s.Serve("b/b", 6, "10.0.0.2")
		check("the other has not rendered what is awaited", "1 services have not rendered, first b/b", all...)
		s.Tell(rendertest.BeginMessage(8))
		check("an older list", "1 services have not rendered, first b/b", all...)
		s.Serve("b/b", 7, "10.0.0.2")
		check("all have", "", "10.0.0.1", "10.0.0.2")
	})
}

// TestDriverDoesNotWaitForServicesThatDisappear: with the next list, or by themselves.
func TestDriverDoesNotWaitForServicesThatDisappear(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(5, "a/a", "b/b")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Serve("b/b", 1, "10.0.0.2")
		restart := func(generation uint64) {
			s.Kill()
			s.Connected()
			s.Found(generation)
			s.Begin(9, "a/a", "b/b")
			s.Serve("a/a", 1, "10.0.0.1")
			s.expect("b/b is awaited", "10.0.0.1", "10.0.0.2")
		}
		restart(2)
		s.Begin(11, "a/a")
		s.expect("b/b is not in the list", "10.0.0.1")
		s.Serve("b/b", 12)
		if s.State("b/b") != rendertest.Retired {
			s.Errorf("b/b was acknowledged %v", s.Ack("b/b"))
		}
		s.Serve("b/b", 13, "10.0.0.2")
		restart(3)
		s.Serve("b/b", 14)
		s.expect("b/b has ended", "10.0.0.1")
		if s.State("b/b") != rendertest.Retired || !s.Health().GetOk() {
			s.Errorf("b/b was acknowledged %v, %v", s.Ack("b/b"), s.Health())
		}
	})
}

// TestDriverKeepsWhatAProvisionalListDoesNotHave: the list of the local mirror programs, and the
// barrier stays closed.
func TestDriverKeepsWhatAProvisionalListDoesNotHave(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(5, "a/a", "b/b")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Serve("b/b", 1, "10.0.0.2")
		s.Kill()
		s.Connected()
		s.Found(2)
		provisional := rendertest.BeginMessage(1, "a/a")
		provisional.Provisional = true
		s.Tell(provisional)
		s.Serve("a/a", 1, "10.0.0.1")
		s.Run(time.Second)
		s.expect("on the list of the mirror", "10.0.0.1", "10.0.0.2")
		if h := s.Health(); !h.GetOk() || h.GetReason() != "the services are those of the local mirror" {
			s.Errorf("health %v", h)
		}
		s.Tell(&messages.Begin{Keys: []string{"a/a", "b/b"}, Generations: []uint64{3, 1}, Generation: 4, Node: provisional.GetNode()})
		s.expect("the list of the cluster", "10.0.0.1", "10.0.0.2")
		if h := s.Health(); h.GetOk() || !strings.Contains(h.GetReason(), "2 services have not rendered") {
			s.Errorf("health %v", h)
		}
		s.Serve("a/a", 3, "10.0.0.1")
		s.expect("b/b is awaited", "10.0.0.1", "10.0.0.2")
		s.Serve("b/b", 1, "10.0.0.4")
		s.expect("all have rendered", "10.0.0.1", "10.0.0.4")
		if h := s.Health(); !h.GetOk() || h.GetReason() != "" {
			s.Errorf("health %v", h)
		}
	})
}

// TestDriverIgnoresServicesThatAreGone: a Render that is older than the list without its service.
func TestDriverIgnoresServicesThatAreGone(t *testing.T) {
	each(t, func(s *scene) {
		s.Serve("a/a", 3, "10.0.0.1")
		s.Serve("b/b", 3, "10.0.0.2")
		list := rendertest.BeginMessage(10, "b/b")
		list.Generations = []uint64{4} // so the view of b/b is as old as that of a/a
		s.Tell(list)
		s.Serve("b/b", 4, "10.0.0.2")
		s.expect("a/a is not in the list", "10.0.0.2")
		if s.State("a/a") != rendertest.Retired {
			s.Errorf("a/a was acknowledged %v", s.Ack("a/a"))
		}
		s.Serve("a/a", 9, "10.0.0.1") // it repeats itself before it learns that it has to go
		s.expect("a service that is gone", "10.0.0.2")
		s.Serve("a/a", 11, "10.0.0.1")
		s.expect("a service that was created again", "10.0.0.1", "10.0.0.2")
		if s.State("a/a") != rendertest.InSync {
			s.Errorf("acknowledged %v", s.Ack("a/a"))
		}
		s.Tell(list) // once more, late
		s.expect("a list that is older than the service", "10.0.0.1", "10.0.0.2")
	})
}

func TestDriverNeverGoesBack(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 5, "10.0.0.1")
		s.Serve("a/a", 4, "10.0.0.9")
		s.Serve("a/a", 3)
		s.expect("older messages", "10.0.0.1")
	})
}

func TestDriverRetiresServices(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 5, "10.0.0.1")
		s.Serve("a/a", 6)
		ack := s.Ack("a/a")
		s.expect("it is gone")
		if ack.GetState() != rendertest.Retired || ack.GetHash() != 0 || ack.GetGeneration() != 6 {
			s.Errorf("acknowledged %v", ack)
		}
		s.Forget()
		s.Serve("a/a", 6)
		if s.State("a/a") != rendertest.Retired {
			s.Error("does not answer again after it has forgotten the service")
		}
	})
}

// TestDriverRetiresNothingBeforeTheBarrier: the objects of a service that goes wait for it, also
// where VPP is read meanwhile.
func TestDriverRetiresNothingBeforeTheBarrier(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a", "b/b")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Serve("a/a", 2)
		s.Tell(&messages.Verify{Reason: "test"})
		s.Run(time.Second)
		s.expect("b/b is awaited", "10.0.0.1")
		if s.State("a/a") != rendertest.Pending {
			s.Errorf("acknowledged %v", s.Ack("a/a"))
		}
		s.Serve("b/b", 1, "10.0.0.2")
		s.expect("b/b has rendered", "10.0.0.2")
		if s.State("a/a") != rendertest.Retired {
			s.Errorf("acknowledged %v", s.Ack("a/a"))
		}
	})
}

// TestDriverAsksServicesBehindTheList, and no others; acknowledgements are not repeated.
func TestDriverAsksServicesBehindTheList(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(5, "a/a", "b/b")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Serve("b/b", 1, "10.0.0.2")
		s.Forget()
		s.Tell(rendertest.BeginMessage(6, "a/a", "b/b"))
		if s.Ack("a/a") != nil || s.Ack("b/b") != nil {
			s.Error("acknowledged again")
		}
		roll := rendertest.BeginMessage(7, "a/a", "b/b")
		roll.Generations = []uint64{1, 4}
		writes, reads := s.cost(func() { s.Tell(roll) })
		asked := func(key string) int { return len(probe.All[*messages.Replay](s, address.Service(key))) }
		if writes+reads != 0 || asked("a/a") != 0 || asked("b/b") != 1 || !s.Health().GetOk() && s.Health() != nil {
			s.Errorf("%d writes, %d reads, asked a/a %d and b/b %d times, %v", writes, reads, asked("a/a"), asked("b/b"), s.Health())
		}
		s.Serve("a/a", 8, "10.0.0.1", "10.0.0.4")
		s.expect("the barrier does not close again", "10.0.0.1", "10.0.0.2", "10.0.0.4")
	})
}

// TestDriverGivesAContestedObjectToTheOldest, or lets the services share it.
func TestDriverGivesAContestedObjectToTheOldest(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a", "b/b")
		s.Render(1, s.view("a/a", 20, "10.0.0.1"))
		s.Render(1, s.view("b/b", 10, "10.0.0.1", "10.0.0.2"))
		s.expect("both want it", "10.0.0.1", "10.0.0.2")
		young, old := s.Ack("a/a").GetConflicts(), s.Ack("b/b").GetConflicts()
		if len(old) != 0 || s.owned != (len(young) == 1 && young[0].GetOwner() == "b/b") {
			s.Errorf("conflicts of the younger %v, of the older %v", young, old)
		}
		writes, _ := s.cost(func() { s.Serve("b/b", 3) })
		s.expect("the older one is gone", "10.0.0.1")
		if got := s.Ack("a/a"); len(got.GetConflicts()) != 0 || got.GetState() != rendertest.InSync || s.State("b/b") != rendertest.Retired || writes == 0 {
			s.Errorf("acknowledged a/a %v, b/b %v", got, s.Ack("b/b"))
		}
	})
}

func TestDriverFollowsInterfaces(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Tell(s.Interfaces(3, "uplink0", "pod2", "pod3"))
		half := s.Interfaces(4, "uplink0", "pod2", "pod4")
		half.Complete = false
		writes, reads := s.cost(func() {
			s.Found(2)
			s.Tell(s.Interfaces(3, "uplink0", "pod2", "pod3"), half)
		})
		if writes+reads != 0 || !s.Health().GetOk() || s.Health().GetInterfaces() != 3 {
			s.Errorf("an older set, the same again, or half of one cost %d writes and %d reads, %v", writes, reads, s.Health())
		}
	})
}

func TestDriverAnswersQuestions(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		rows := func(key string) *render.RowsPage { return s.Ask(&render.RowsQuery{Service: key}).(*render.RowsPage) }
		if page := rows("a/a"); s.owned && (len(page.Wanted) != 1 || len(page.Held) != 1 || !strings.HasPrefix(page.Wanted[0].GetVip(), "10.0.0.1")) {
			s.Errorf("rows %+v", page)
		}
		if page := rows("x/x"); len(page.Wanted) != 0 {
			s.Errorf("rows of no service %+v", page)
		}
		diff := func() *render.DiffPage { return s.Ask(&render.DiffQuery{}).(*render.DiffPage) }
		if d := diff(); d.Err != nil || len(d.Operations) != 0 {
			s.Errorf("diff %+v", d)
		}
		s.outside(s.remove, "10.0.0.1")
		if d := diff(); len(d.Operations) != 1 || len(s.holds()) != 0 || s.owned && !slices.Equal(d.Missing, d.Objects) {
			s.Errorf("diff %+v", d)
		}
		s.VPP.Disconnect("connection lost")
		s.Connected()
		if d := diff(); d.Err == nil {
			s.Errorf("diff %+v", d)
		}
	})
}

func TestDriverSaysWhyItIsNotReadyWithoutAFlood(t *testing.T) {
	var keys []string
	for i := range 500 {
		keys = append(keys, "n/"+string([]byte{'a' + byte(i/26), 'a' + byte(i%26)}))
	}
	slices.Sort(keys)
	each(t, func(s *scene) {
		s.Begin(1, keys...)
		s.Forget()
		for i, key := range keys {
			s.Render(1, s.view(key, 1, fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)))
		}
		s.Run(time.Second)
		if n := len(s.Healths()); n > 5 || !s.Health().GetOk() || len(s.holds()) != len(keys) {
			s.Errorf("reported its health %d times while 500 services rendered: %v", n, s.Health())
		}
	})
}

// TestDriverRepeatsItsHealth: every heartbeat, so that a restarted healer learns it.
func TestDriverRepeatsItsHealth(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1)
		s.Forget()
		s.Run(time.Minute)
		if n := len(s.Healths()); n < 29 || n > 31 || !s.Health().GetOk() {
			s.Errorf("reported its health %d times in a minute: %v", n, s.Health())
		}
		if events := s.Events(); len(events) != 0 {
			s.Errorf("recorded %v", events)
		}
	})
}

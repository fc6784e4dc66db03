package nat44_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	aclapi "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// refuseLists makes VPP refuse the agent's access lists.
func (s scene) refuseLists() (tries *int) {
	tries = new(int)
	s.Refuse = func(req api.Message) error {
		if _, list := req.(*aclapi.ACLAddReplace); !list {
			return nil
		}
		*tries++
		return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
	}
	return tries
}

func TestRangesProtectRows(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a", "b/b")
		s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		s.Render(1, elsewhere("b/b", "10.0.0.2"))
		s.settled("with ranges", "a/a", "b/b")
		for _, c := range []struct {
			in, src, vip string
			want         bool
		}{
			{"uplink0", "192.0.2.7", "10.0.0.1", true},
			{"uplink0", "198.51.100.7", "10.0.0.1", false},
			{"pod2", "10.1.1.2", "10.0.0.1", false},
			{"uplink0", "192.0.2.7", "10.0.0.2", false},
			{"pod2", "10.1.1.2", "10.0.0.2", true},
		} {
			if got := s.reaches(c.in, c.src, c.vip); got != c.want {
				t.Errorf("%s from %s: translated %v", c.vip, c.src, got)
			}
		}
		if said := s.Ack("b/b").GetApproximations(); len(said) != 1 || said[0].GetWanted() != "from remote: drop, by the address of the client" {
			t.Errorf("b/b was acknowledged %v", said)
		}
		if d := s.Ask(&render.DiffQuery{}).(*render.DiffPage); d.Err != nil || len(d.Operations) != 0 {
			t.Errorf("diff %+v", d)
		}
		s.Render(2, rendertest.Forwarding("a/a", 3, "10.0.0.1"))
		s.Render(2, rendertest.Forwarding("b/b", 3, "10.0.0.2"))
		s.settled("without ranges", "a/a", "b/b")
		if got := s.lists(); got != "" {
			t.Errorf("left behind:\n%s", got)
		}
	})
}

// TestRangesKeepTheOrder goes through every message to VPP. A client that the old and the new rules
// keep out is never let in on the way, and no client that both let in is dropped. Before the end of
// the change the service is not acknowledged as in sync.
func TestRangesKeepTheOrder(t *testing.T) {
	views := map[string]*messages.ServiceView{
		"upper":  guarded("a/a", []string{"128.0.0.0/1"}, "10.0.0.1"),
		"some":   guarded("a/a", []string{"192.0.0.0/8", "198.0.0.0/8"}, "10.0.0.1", "10.0.0.3"),
		"away":   elsewhere("a/a", "10.0.0.1"),
		"moved":  guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.4"),
		"silent": rendertest.Forwarding("a/a", 3),
		"open":   rendertest.Forwarding("a/a", 3, "10.0.0.1", "10.0.0.3", "10.0.0.4"),
	}
	type client struct{ in, src, vip string }
	var clients []client
	for _, vip := range []string{"10.0.0.1", "10.0.0.3", "10.0.0.4"} {
		clients = append(clients, client{"pod2", "10.1.1.2", vip}, client{"uplink0", "192.0.2.7", vip}, client{"uplink0", "198.51.100.7", vip}, client{"uplink0", "100.64.0.7", vip})
	}
	for before := range views {
		for after := range views {
			withRenderer(t, func(s scene) {
				s.Begin(1, "a/a")
				s.Render(1, views[before])
				fate := func() (all []bool) {
					for _, c := range clients {
						all = append(all, s.reaches(c.in, c.src, c.vip))
					}
					return all
				}
				was, seen := fate(), [][]bool{}
				s.VPP.After = func(api.Message) { seen = append(seen, fate()) }
				s.Forget()
				s.Render(2, views[after])
				s.VPP.After = nil
				is := fate()
				for step, now := range seen {
					for i, c := range clients {
						if was[i] == is[i] && now[i] != was[i] {
							t.Errorf("%s to %s: %v is translated (%v) after message %d of %d", before, after, c, now[i], step+1, len(seen))
						}
					}
				}
				acks := probe.All[*messages.RenderAck](s, address.Service("a/a"))
				if len(acks) == 0 || acks[len(acks)-1].GetState() != rendertest.InSync || len(acks) > 1 && acks[0].GetState() != rendertest.Pending || len(seen) > 0 && len(acks) < 2 {
					t.Errorf("%s to %s: %d messages, acknowledged %v", before, after, len(seen), acks)
				}
			})
		}
	}
}

// TestWithoutAccessLists: what VPP cannot enforce is not served, and acknowledged so; another VPP
// may have access lists.
func TestWithoutAccessLists(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Lacks = "acl_"
		s.Crash()
		s.Reconnect(2)
		s.Begin(1)
		const withoutPlugin = "the plugin acl is not loaded (plugins in VPP's startup.conf): frontends with source ranges are not served"
		if h := s.Health(); !h.GetOk() || !strings.HasPrefix(h.GetReason(), withoutPlugin) {
			t.Errorf("health before a service has source ranges: %v", h)
		}
		s.Begin(2, "a/a", "b/b")
		serve := func() {
			s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
			s.Render(1, elsewhere("b/b", "10.0.0.2"))
		}
		serve()
		said := func(key string) (all []string) {
			for _, a := range s.Ack(key).GetApproximations() {
				all = append(all, a.GetWanted()+" -> "+a.GetRendered())
			}
			return all
		}
		if got, want := said("a/a"), []string{"only clients from 192.0.2.0/24 -> no row: not served"}; !slices.Equal(got, want) {
			t.Errorf("a/a was acknowledged %q", got)
		}
		if got := said("b/b"); len(got) != 2 || !strings.HasPrefix(got[0], "drop -> ") || !strings.HasPrefix(got[1], "from local: 1 endpoints -> ") {
			t.Errorf("b/b was acknowledged %q", got)
		}
		s.expect("without access lists")
		s.settled("without access lists", "b/b")
		if ack := s.Ack("a/a"); ack.GetState() != rendertest.Failed || !strings.HasPrefix(ack.GetError(), "not served: ") || ack.GetRows()[0].GetError() == "" {
			t.Errorf("a/a was acknowledged %v", ack)
		}
		if h := s.Health(); !h.GetOk() || !strings.HasPrefix(h.GetReason(), withoutPlugin) {
			t.Errorf("health %v", h)
		}
		s.Kill()
		writes := s.writes(func() {
			s.Connected()
			s.Found(3)
			s.Begin(1, "a/a", "b/b")
			serve()
		})
		if writes != 0 || !s.Health().GetOk() {
			t.Errorf("a new incarnation wrote %d times, %v", writes, s.Health())
		}
		s.Lacks = ""
		s.Crash()
		s.Reconnect(4)
		if s.reaches("uplink0", "198.51.100.7", "10.0.0.1") || !s.reaches("pod2", "10.1.1.2", "10.0.0.2") || len(said("a/a")) != 0 || len(said("b/b")) != 1 {
			t.Errorf("with access lists: acknowledged %q and %q, VPP has\n%s", said("a/a"), said("b/b"), s.lists())
		}
	})
}

// TestRefusedListsHoldBackTheirRows and no others; VPP is not asked in a loop.
func TestRefusedListsHoldBackTheirRows(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a", "b/b")
		tries := s.refuseLists()
		s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		s.Serve("b/b", 1, "10.0.0.2")
		s.Run(time.Second)
		s.expect("lists refused", "10.0.0.2:80/6")
		if s.State("a/a") != rendertest.Failed || !strings.HasPrefix(s.Ack("a/a").GetError(), "access lists: ") || s.State("b/b") != rendertest.InSync {
			t.Errorf("acknowledged %v and %v", s.Ack("a/a"), s.Ack("b/b"))
		}
		if h := s.Health(); h.GetOk() || !strings.Contains(h.GetReason(), "refused by VPP, first access lists") {
			t.Errorf("health %v", h)
		}
		*tries = 0
		s.Run(5 * time.Minute)
		if *tries < 150 || *tries > 5*60+50 { // one probe a second, of one list
			t.Errorf("tried %d times in five minutes", *tries)
		}
		s.Refuse = nil
		s.Run(1100 * time.Millisecond)
		s.expect("lists taken", "10.0.0.1:80/6", "10.0.0.2:80/6")
		if s.settled("lists taken", "a/a", "b/b"); s.reaches("uplink0", "198.51.100.7", "10.0.0.1") {
			t.Errorf("VPP has\n%s", s.lists())
		}
	})
}

// TestRefusalsOfUnwantedListsAreForgotten: nothing has to be dropped any more.
func TestRefusalsOfUnwantedListsAreForgotten(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a")
		s.refuseLists()
		s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		if s.State("a/a") != rendertest.Failed || s.Health().GetOk() {
			t.Fatalf("acknowledged %v, %v", s.State("a/a"), s.Health())
		}
		s.Serve("a/a", 2, "10.0.0.1")
		s.Run(1100 * time.Millisecond)
		s.settled("without ranges", "a/a")
		s.expect("without ranges", "10.0.0.1:80/6")
	})
}

// TestRulesStayForRowsThatRelyOnThem: while VPP refuses to change a row, the rules in front of it
// stay, and only these.
func TestRulesStayForRowsThatRelyOnThem(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a", "b/b")
		s.Render(1, elsewhere("a/a", "10.0.0.1"))
		s.Render(1, elsewhere("b/b", "10.0.0.2"))
		s.Refuse = func(req api.Message) error {
			if m, local := req.(*nat44_ed.Nat44LbStaticMappingAddDelLocal); local && m.ExternalAddr == [4]byte{10, 0, 0, 1} {
				return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
			}
			return nil
		}
		for key, vip := range map[string]string{"a/a": "10.0.0.1", "b/b": "10.0.0.2"} {
			v := rendertest.Forwarding(key, 3, vip)
			v.Frontends[0].Backends = []*messages.Backend{{Address: "10.1.1.3", Port: 8080, Local: true}}
			s.Render(2, v)
		}
		s.Run(time.Second)
		if s.reaches("uplink0", "192.0.2.7", "10.0.0.1") || !s.reaches("uplink0", "192.0.2.7", "10.0.0.2") {
			t.Errorf("VPP has\n%s", s.lists())
		}
		if s.State("a/a") != rendertest.Failed || s.State("b/b") != rendertest.InSync {
			t.Errorf("acknowledged %v and %v", s.Ack("a/a"), s.Ack("b/b"))
		}
		s.Refuse = nil
		s.Run(1100 * time.Millisecond)
		if s.settled("taken", "a/a", "b/b"); s.lists() != "" || !s.reaches("uplink0", "192.0.2.7", "10.0.0.1") {
			t.Errorf("VPP has\n%s", s.lists())
		}
	})
}

// TestDamagedListsAreRepaired: lists that another client has changed are found by a drift check.
// Checks that find nothing write nothing.
func TestDamagedListsAreRepaired(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a")
		s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		good := s.lists()
		uplink := s.VPP.VPP.Interfaces()["uplink0"]
		if _, err := s.VPP.VPP.Exec(&aclapi.ACLInterfaceSetACLList{SwIfIndex: interface_types.InterfaceIndex(uplink)}); err != nil {
			t.Fatal(err)
		}
		s.Forget()
		s.Tell(&messages.Verify{Reason: "drift check", Routine: true})
		if got := s.lists(); got != good || !s.Health().GetOk() || s.Verified().GetDifferences() != 1 {
			t.Errorf("found %v, %v, VPP has\n%s\nwant\n%s", s.Verified(), s.Health(), got, good)
		}
		s.Forget()
		writes := s.writes(func() {
			for range 10 {
				s.Tell(&messages.Verify{Reason: "drift check", Routine: true})
			}
		})
		if events := s.Events(); writes != 0 || len(events) > 0 || s.Verified().GetDifferences() != 0 {
			t.Errorf("%d writes by checks that find nothing, recorded %v", writes, events)
		}
	})
}

// TestListsFollowInterfaces: another interface, whose list is empty, may get the number of a
// deleted one.
func TestListsFollowInterfaces(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a")
		s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		index := s.VPP.VPP.Interfaces()["pod2"]
		if err := s.VPP.VPP.DeleteInterface("pod2"); err != nil {
			t.Fatal(err)
		}
		if again, err := s.VPP.VPP.AddPod("new", netip.MustParseAddr("10.1.1.2")); err != nil || again != index {
			t.Fatal(again, err)
		}
		s.Tell(s.Interfaces(2, "uplink0", "new"))
		if !strings.Contains(s.lists(), "on new input") || s.reaches("new", "10.1.1.2", "10.0.0.1") {
			t.Errorf("VPP has\n%s", s.lists())
		}
		if err := s.VPP.VPP.DeleteInterface("new"); err != nil {
			t.Fatal(err)
		}
		s.Tell(s.Interfaces(3, "uplink0"))
		if !s.Health().GetOk() || s.reaches("uplink0", "198.51.100.7", "10.0.0.1") {
			t.Errorf("%v, VPP has\n%s", s.Health(), s.lists())
		}
	})
}

// TestListsAreReadBack: the connection breaks at every request.
func TestListsAreReadBack(t *testing.T) {
	for at := 1; at <= 16; at++ {
		withRenderer(t, func(s scene) {
			s.Begin(1, "a/a")
			s.VPP.Cut = at
			s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1", "10.0.0.2"))
			s.Connected()
			s.VPP.Cut = 0
			s.Reconnect(2)
			s.Run(2 * time.Second)
			s.settled(fmt.Sprint("break after ", at), "a/a")
			if len(s.vips()) != 2 || s.reaches("uplink0", "198.51.100.7", "10.0.0.1") {
				t.Errorf("break after %d: VPP holds %q\n%s", at, s.vips(), s.lists())
			}
		})
	}
}

// TestRulesWaitForTheBarrier: rules of an earlier run stay until every service has rendered. A
// deleted service is not acknowledged as retired before its rules are removed.
func TestRulesWaitForTheBarrier(t *testing.T) {
	withRenderer(t, func(s scene) {
		a, b := guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"), elsewhere("b/b", "10.0.0.2")
		s.Begin(1, "a/a", "b/b")
		s.Render(1, a)
		s.Render(1, b)
		before := s.lists()
		s.Kill()
		writes := s.writes(func() {
			s.Connected()
			s.Found(2)
			s.Begin(1, "a/a", "b/b")
			s.Render(1, b)
			s.Run(3 * time.Second)
		})
		if got := s.lists(); writes != 0 || got != before {
			t.Errorf("%d writes, VPP has\n%s\nwant\n%s", writes, got, before)
		}
		s.Tell(&messages.Render{Key: "b/b", Generation: 2})
		if s.State("b/b") == rendertest.Retired {
			t.Error("retired before its rules are gone")
		}
		s.Render(1, a)
		if got := s.lists(); s.State("b/b") != rendertest.Retired || s.State("a/a") != rendertest.InSync || len(s.vips()) != 1 || strings.Contains(got, "10.0.0.2") {
			t.Errorf("acknowledged %v and %v, VPP holds %q and\n%s", s.State("a/a"), s.State("b/b"), s.vips(), got)
		}
	})
}

// TestDropsWaitForTheOwner: of a contested frontend, what the service that renders first drops does
// not count while the other one, whose row VPP holds, may still render.
func TestDropsWaitForTheOwner(t *testing.T) {
	withRenderer(t, func(s scene) {
		owner, loser := rendertest.Forwarding("a/a", 1, "10.0.0.1"), elsewhere("b/b", "10.0.0.1")
		loser.Frontends = append(loser.Frontends, elsewhere("b/b", "10.0.0.2").Frontends...)
		stranger := func() bool { return s.reaches("uplink0", "198.51.100.7", "10.0.0.1") }
		s.Begin(1, "a/a", "b/b")
		s.Render(1, owner)
		s.Render(1, loser)
		if !stranger() || s.reaches("uplink0", "198.51.100.7", "10.0.0.2") {
			t.Fatal("the drops of the loser count for the owner, or do not count for itself")
		}
		before := s.lists()
		restart := func(generation uint64, keys ...string) {
			s.Kill()
			s.Connected()
			s.Found(generation)
			s.Begin(1, keys...)
			s.Render(1, loser)
			s.Run(3 * time.Second)
		}
		writes := s.writes(func() {
			restart(2, "a/a", "b/b")
			if !stranger() || s.lists() != before {
				t.Errorf("clients of the owner are dropped until it has rendered:\n%s", s.lists())
			}
			s.Render(1, owner)
		})
		if !stranger() || writes != 0 {
			t.Errorf("%d writes, stranger served %t", writes, stranger())
		}
		restart(3, "b/b") // the owner has gone meanwhile
		if s.settled("without the owner", "b/b"); stranger() || !s.reaches("pod2", "10.1.1.2", "10.0.0.1") {
			t.Errorf("VPP holds %q and\n%s", s.vips(), s.lists())
		}
	})
}

// TestRangesCountForEveryOwner: a client must be in the source ranges of each service that wants
// the frontend, whichever service owns it.
func TestRangesCountForEveryOwner(t *testing.T) {
	withServices(t, []string{"a/a", "b/b", "c/c"}, func(s scene) {
		s.Begin(1, "a/a", "b/b", "c/c")
		s.Render(1, rendertest.Forwarding("a/a", 1, "10.0.0.1"))
		s.Render(1, guarded("b/b", []string{"192.0.2.0/24", "198.51.100.0/24"}, "10.0.0.1"))
		s.Render(1, guarded("c/c", []string{"192.0.0.0/16"}, "10.0.0.1"))
		if owner := s.Ack("b/b").GetConflicts()[0].GetOwner(); owner != "a/a" {
			t.Fatalf("%s owns the frontend", owner)
		}
		for src, want := range map[string]bool{"192.0.2.7": true, "192.0.3.7": false, "198.51.100.7": false, "100.64.0.7": false} {
			if got := s.reaches("uplink0", src, "10.0.0.1"); got != want {
				t.Errorf("from %s: translated %t", src, got)
			}
		}
	})
}

// TestNoRuleNoRow: a service whose source ranges do not fit is not served, nor is another one at
// the same frontend. Nothing else suffers; with fewer ranges it is served, and while rows come and
// go no client is let in.
func TestNoRuleNoRow(t *testing.T) {
	many := make([]string, 4096)
	for i := range many {
		many[i] = fmt.Sprintf("10.%d.%d.0/24", i/128, 2*(i%128))
	}
	withServices(t, []string{"a/a", "b/b", "c/c"}, func(s scene) {
		s.Begin(1, "a/a", "b/b", "c/c")
		s.Render(1, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		s.Render(1, rendertest.Forwarding("b/b", 1, "10.0.0.1"))
		s.Render(1, guarded("c/c", []string{"192.0.2.0/24"}, "10.0.0.3"))
		s.expect("with room", "10.0.0.1:80/6", "10.0.0.3:80/6")
		s.VPP.After = func(req api.Message) {
			if s.reaches("uplink0", "198.51.100.7", "10.0.0.1") {
				t.Errorf("let in after %s", req.GetMessageName())
			}
		}
		s.Render(2, guarded("a/a", many, "10.0.0.1"))
		s.Run(time.Second)
		s.expect("without room", "10.0.0.3:80/6")
		for _, key := range []string{"a/a", "b/b"} {
			if ack := s.Ack(key); ack.GetState() != rendertest.Failed || !strings.Contains(ack.GetError(), "not served") {
				t.Errorf("acknowledged %v", ack)
			}
		}
		if h := s.Health(); s.State("c/c") != rendertest.InSync || !h.GetOk() || h.GetReason() == "" {
			t.Errorf("c/c was acknowledged %v, %v", s.Ack("c/c"), h)
		}
		s.Render(3, guarded("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		s.Run(time.Second)
		s.expect("with room again", "10.0.0.1:80/6", "10.0.0.3:80/6")
		s.settled("with room again", "a/a", "b/b", "c/c")
		if h := s.Health(); h.GetReason() != "" || !s.reaches("uplink0", "192.0.2.7", "10.0.0.1") {
			t.Errorf("%v", h)
		}
	})
}

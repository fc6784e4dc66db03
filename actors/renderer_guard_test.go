package actors

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	aclapi "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// guardedView is a service whose frontends let in the clients from some networks only.
func guardedView(key string, sources []string, addresses ...string) *messages.ServiceView {
	v := viewOf(key, int64(len(key)), addresses...)
	for _, f := range v.Frontends {
		f.AllowSources = sources
	}
	return v
}

// awayView is a service with policy Local and no endpoint here: clients elsewhere are dropped, those of this node are served.
func awayView(key, address string) *messages.ServiceView {
	v := viewOf(key, int64(len(key)), address, address)
	v.Frontends[0].From, v.Frontends[1].From = messages.ClientClass_FROM_LOCAL, messages.ClientClass_FROM_REMOTE
	v.Frontends[1].Action, v.Frontends[1].Backends = messages.Action_ACTION_DROP, nil
	return v
}

// speak lets a service say what it wants.
func (s *stage) speak(generation uint64, v *messages.ServiceView) {
	s.tell(&messages.Render{Key: v.GetKey(), Generation: generation, Hash: generation, Epoch: s.epoch(), View: v})
}

// lists are the access lists of ours in VPP, and where they stand.
func (s *stage) lists() string {
	var lines []string
	for line := range strings.Lines(s.wire.vpp.State()) {
		if line = strings.TrimSpace(line); strings.Contains(line, `"troupe/deny/`) || strings.HasPrefix(line, "on ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// reaches sends a packet to port 80 and says whether it was translated.
func (s *stage) reaches(in, src, vip string) bool { return translated(s.wire.vpp, in, src, vip) }

func translated(vpp *simulator.VPP, in, src, vip string) bool {
	to := netip.AddrPortFrom(netip.MustParseAddr(vip), 80)
	v := vpp.Send(simulator.Packet{In: in, Src: netip.AddrPortFrom(netip.MustParseAddr(src), 12345), Dst: to, Proto: simulator.ProtoTCP})
	return v.Action != simulator.Dropped && v.Dst.IsValid() && v.Dst != to
}

func TestGuardProtectsRows(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a", "b/b")
		s.speak(1, guardedView("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		s.speak(1, awayView("b/b", "10.0.0.2"))
		if s.standing("a/a") != inSync || s.standing("b/b") != inSync || !s.readiness().GetOk() {
			t.Errorf("told %v and %v, %v", s.standing("a/a"), s.standing("b/b"), s.readiness())
		}
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
		if ack := latest[*messages.RenderAck](s, PathService("b/b")); len(ack.GetApproximations()) != 0 {
			t.Errorf("b/b is served exactly, but was told %v", ack.GetApproximations())
		}
		s.speak(2, viewOf("a/a", 3, "10.0.0.1"))
		s.speak(2, viewOf("b/b", 3, "10.0.0.2"))
		if got := s.lists(); got != "" || s.standing("a/a") != inSync || s.standing("b/b") != inSync || !s.readiness().GetOk() {
			t.Errorf("told %v and %v, left behind:\n%s", s.standing("a/a"), s.standing("b/b"), got)
		}
	})
}

// TestGuardKeepsTheOrder goes through every message to VPP: whom the old and the new rules keep out is never let in on the way, and nobody
// whom both let in is dropped. Before the end of the change the service is not told that it is in sync.
func TestGuardKeepsTheOrder(t *testing.T) {
	views := map[string]*messages.ServiceView{
		"upper":  guardedView("a/a", []string{"128.0.0.0/1"}, "10.0.0.1"),
		"some":   guardedView("a/a", []string{"192.0.0.0/8", "198.0.0.0/8"}, "10.0.0.1", "10.0.0.3"),
		"away":   awayView("a/a", "10.0.0.1"),
		"moved":  guardedView("a/a", []string{"192.0.2.0/24"}, "10.0.0.4"),
		"silent": viewOf("a/a", 3),
		"open":   viewOf("a/a", 3, "10.0.0.1", "10.0.0.3", "10.0.0.4"),
	}
	type client struct{ in, src, vip string }
	var clients []client
	for _, vip := range []string{"10.0.0.1", "10.0.0.3", "10.0.0.4"} {
		clients = append(clients, client{"pod2", "10.1.1.2", vip}, client{"uplink0", "192.0.2.7", vip}, client{"uplink0", "198.51.100.7", vip}, client{"uplink0", "100.64.0.7", vip})
	}
	for before := range views {
		for after := range views {
			withRenderer(t, func(s *stage) {
				s.begin(1, "a/a")
				s.speak(1, views[before])
				fate := func() (all []bool) {
					for _, c := range clients {
						all = append(all, s.reaches(c.in, c.src, c.vip))
					}
					return all
				}
				was, seen := fate(), [][]bool{}
				s.wire.after = func(api.Message) { seen = append(seen, fate()) }
				s.forget()
				s.speak(2, views[after])
				s.wire.after = nil
				is := fate()
				for step, now := range seen {
					for i, c := range clients {
						if was[i] == is[i] && now[i] != was[i] {
							t.Errorf("%s to %s: %v is translated (%v) after message %d of %d", before, after, c, now[i], step+1, len(seen))
						}
					}
				}
				acks := all[*messages.RenderAck](s, PathService("a/a"))
				if len(acks) == 0 || acks[len(acks)-1].GetState() != inSync || len(acks) > 1 && acks[0].GetState() != pending || len(seen) > 0 && len(acks) < 2 {
					t.Errorf("%s to %s: %d messages, told %v", before, after, len(seen), acks)
				}
			})
		}
	}
}

// TestGuardWithoutAccessLists: everybody is served as well as it goes, and told so; another VPP may have them.
func TestGuardWithoutAccessLists(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.wire.bare = true
		s.wire.crash()
		s.wire.connect()
		s.connected()
		s.found(2)
		s.begin(1, "a/a", "b/b")
		s.speak(1, guardedView("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		s.speak(1, awayView("b/b", "10.0.0.2"))
		said := func(key string) (all []string) {
			for _, a := range latest[*messages.RenderAck](s, PathService(key)).GetApproximations() {
				all = append(all, a.GetWanted()+" -> "+a.GetRendered())
			}
			return all
		}
		if got, want := said("a/a"), []string{"only clients from 192.0.2.0/24 -> clients from everywhere"}; !slices.Equal(got, want) {
			t.Errorf("a/a was told %q", got)
		}
		if got := said("b/b"); len(got) != 2 || !strings.HasPrefix(got[0], "drop -> ") || !strings.HasPrefix(got[1], "from local: 1 endpoints -> ") {
			t.Errorf("b/b was told %q", got)
		}
		if got := s.vips(); !slices.Equal(got, []string{"10.0.0.1:80/6"}) || s.standing("a/a") != inSync || s.standing("b/b") != inSync || !s.readiness().GetOk() {
			t.Errorf("VPP holds %q, told %v and %v, %v", got, s.standing("a/a"), s.standing("b/b"), s.readiness())
		}
		s.kill()
		writes, _ := s.wrote(func() {
			s.connected()
			s.found(3)
			s.begin(1, "a/a", "b/b")
			s.speak(1, guardedView("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
			s.speak(1, awayView("b/b", "10.0.0.2"))
		})
		if writes != 0 || !s.readiness().GetOk() {
			t.Errorf("a new renderer wrote %d times, %v", writes, s.readiness())
		}
		s.wire.bare = false
		s.wire.crash()
		s.wire.connect()
		s.connected()
		s.found(4)
		if s.reaches("uplink0", "198.51.100.7", "10.0.0.1") || !s.reaches("pod2", "10.1.1.2", "10.0.0.2") || len(said("a/a"))+len(said("b/b")) != 0 {
			t.Errorf("with access lists: told %q and %q, VPP has\n%s", said("a/a"), said("b/b"), s.lists())
		}
	})
}

// TestGuardHoldsBackWhatItCannotProtect: a row whose rule VPP refuses waits, others do not; VPP is not asked in a loop.
func TestGuardHoldsBackWhatItCannotProtect(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a", "b/b")
		tries := 0
		s.wire.refuse = func(req api.Message) error {
			if _, ours := req.(*aclapi.ACLAddReplace); !ours {
				return nil
			}
			tries++
			return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
		}
		s.speak(1, guardedView("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		s.serve("b/b", 1, "10.0.0.2")
		if got := s.vips(); !slices.Equal(got, []string{"10.0.0.2:80/6"}) || s.standing("a/a") != failed || s.standing("b/b") != inSync {
			t.Errorf("VPP holds %q, told %v and %v", got, s.standing("a/a"), s.standing("b/b"))
		}
		if h := s.readiness(); h.GetOk() || !strings.Contains(h.GetReason(), causeUnguarded) {
			t.Errorf("health %v", h)
		}
		s.run(5 * time.Minute)
		if tries < 150 || tries > 5*60+50 {
			t.Errorf("tried %d times in five minutes", tries)
		}
		s.wire.refuse = nil
		s.run(1100 * time.Millisecond)
		if len(s.vips()) != 2 || s.standing("a/a") != inSync || !s.readiness().GetOk() || s.reaches("uplink0", "198.51.100.7", "10.0.0.1") {
			t.Errorf("VPP holds %q, told %v, %v", s.vips(), s.standing("a/a"), s.readiness())
		}
	})
}

// TestGuardForgetsWhatNobodyWants: a refusal means nothing any more when nothing has to be dropped.
func TestGuardForgetsWhatNobodyWants(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.wire.refuse = func(req api.Message) error {
			if _, ours := req.(*aclapi.ACLAddReplace); !ours {
				return nil
			}
			return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
		}
		s.speak(1, guardedView("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		if s.standing("a/a") != failed || s.readiness().GetOk() {
			t.Fatalf("told %v, %v", s.standing("a/a"), s.readiness())
		}
		s.serve("a/a", 2, "10.0.0.1")
		s.run(1100 * time.Millisecond)
		if s.standing("a/a") != inSync || !s.readiness().GetOk() || len(s.vips()) != 1 {
			t.Errorf("told %v, %v, VPP holds %q", s.standing("a/a"), s.readiness(), s.vips())
		}
	})
}

// TestGuardKeepsWhatRowsRelyOn: as long as VPP refuses to change a row, what is dropped in front of it goes on being dropped, but not what
// is dropped in front of others.
func TestGuardKeepsWhatRowsRelyOn(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a", "b/b")
		s.speak(1, awayView("a/a", "10.0.0.1"))
		s.speak(1, awayView("b/b", "10.0.0.2"))
		s.wire.refuse = func(req api.Message) error {
			if m, local := req.(*nat44_ed.Nat44LbStaticMappingAddDelLocal); local && m.ExternalAddr == [4]byte{10, 0, 0, 1} {
				return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
			}
			return nil
		}
		for _, key := range []string{"a/a", "b/b"} {
			v := viewOf(key, 3, map[string]string{"a/a": "10.0.0.1", "b/b": "10.0.0.2"}[key])
			v.Frontends[0].Backends = []*messages.Backend{{Address: "10.1.1.3", Port: 8080, Local: true}}
			s.speak(2, v)
		}
		s.run(time.Second)
		if s.reaches("uplink0", "192.0.2.7", "10.0.0.1") || !s.reaches("uplink0", "192.0.2.7", "10.0.0.2") {
			t.Errorf("VPP has\n%s", s.lists())
		}
		if s.standing("a/a") != failed || s.standing("b/b") != inSync {
			t.Errorf("told %v and %v", s.standing("a/a"), s.standing("b/b"))
		}
		s.wire.refuse = nil
		s.run(1100 * time.Millisecond)
		if s.lists() != "" || !s.reaches("uplink0", "192.0.2.7", "10.0.0.1") || s.standing("a/a") != inSync || !s.readiness().GetOk() {
			t.Errorf("told %v, %v, VPP has\n%s", s.standing("a/a"), s.readiness(), s.lists())
		}
	})
}

// TestGuardRepairsWhatOthersDo: lists that somebody else has changed are found by the drift check.
func TestGuardRepairsWhatOthersDo(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.speak(1, guardedView("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		good := s.lists()
		uplink := s.wire.vpp.Interfaces()["uplink0"]
		if _, err := s.wire.vpp.Exec(&aclapi.ACLInterfaceSetACLList{SwIfIndex: interface_types.InterfaceIndex(uplink)}); err != nil {
			t.Fatal(err)
		}
		s.forget()
		s.run(s.deps.Timing.AuditLeast)
		if got := s.lists(); got != good || !s.readiness().GetOk() {
			t.Errorf("%v, VPP has\n%s\nwant\n%s", s.readiness(), got, good)
		}
		if v := latest[*messages.Verified](s, PathIntrospect); v.GetDifferences() != 1 {
			t.Errorf("found %v", v)
		}
		s.forget()
		checks := s.wire.checks
		writes, _ := s.wrote(func() { s.run(10 * s.deps.Timing.AuditLeast) })
		if told := all[*messages.Event](s, PathJournal); writes != 0 || len(told) > 0 || s.wire.checks < checks+9 {
			t.Errorf("%d writes by %d checks that find nothing, and in the journal %v", writes, s.wire.checks-checks, told)
		}
	})
}

// TestGuardFollowsInterfaces: the number of an interface that went may be that of another one, whose list is empty.
func TestGuardFollowsInterfaces(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.speak(1, guardedView("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"))
		index := s.wire.vpp.Interfaces()["pod2"]
		if err := s.wire.vpp.DeleteInterface("pod2"); err != nil {
			t.Fatal(err)
		}
		if again, err := s.wire.vpp.AddPod("new", netip.MustParseAddr("10.1.1.2")); err != nil || again != index {
			t.Fatal(again, err)
		}
		s.tell(&messages.InterfaceSet{Generation: 2, Boot: "boot-0", Complete: true, Interfaces: []*messages.Interface{
			{SwIfIndex: s.wire.vpp.Interfaces()["uplink0"], Name: "uplink0", Frontend: true},
			{SwIfIndex: index, Name: "new", Frontend: true, Local: true},
		}})
		if !strings.Contains(s.lists(), "on new input") || s.reaches("new", "10.1.1.2", "10.0.0.1") {
			t.Errorf("VPP has\n%s", s.lists())
		}
		if err := s.wire.vpp.DeleteInterface("new"); err != nil {
			t.Fatal(err)
		}
		s.tell(&messages.InterfaceSet{Generation: 3, Boot: "boot-0", Complete: true, Interfaces: []*messages.Interface{
			{SwIfIndex: s.wire.vpp.Interfaces()["uplink0"], Name: "uplink0", Frontend: true},
		}})
		if !s.readiness().GetOk() || s.reaches("uplink0", "198.51.100.7", "10.0.0.1") {
			t.Errorf("%v, VPP has\n%s", s.readiness(), s.lists())
		}
	})
}

// TestGuardReadsBackWhatItCannotKnow: connections that break at every point.
func TestGuardReadsBackWhatItCannotKnow(t *testing.T) {
	for at := 1; at <= 16; at++ {
		withRenderer(t, func(s *stage) {
			s.begin(1, "a/a")
			s.wire.breakAfter(at)
			s.speak(1, guardedView("a/a", []string{"192.0.2.0/24"}, "10.0.0.1", "10.0.0.2"))
			s.connected()
			s.wire.breakAfter(0)
			s.wire.connect()
			s.connected()
			s.found(2)
			s.run(2 * time.Second)
			if len(s.vips()) != 2 || s.standing("a/a") != inSync || !s.readiness().GetOk() || s.reaches("uplink0", "198.51.100.7", "10.0.0.1") {
				t.Errorf("break after %d: VPP holds %q, told %v, %v\n%s", at, s.vips(), s.standing("a/a"), s.readiness(), s.lists())
			}
		})
	}
}

// TestGuardWaitsForEverybody: what an earlier run dropped goes on being dropped until every service has spoken, and a service that
// is gone is not told so before its rules are.
func TestGuardWaitsForEverybody(t *testing.T) {
	withRenderer(t, func(s *stage) {
		a, b := guardedView("a/a", []string{"192.0.2.0/24"}, "10.0.0.1"), awayView("b/b", "10.0.0.2")
		s.begin(1, "a/a", "b/b")
		s.speak(1, a)
		s.speak(1, b)
		before := s.lists()
		s.kill()
		writes, _ := s.wrote(func() {
			s.connected()
			s.found(2)
			s.begin(1, "a/a", "b/b")
			s.speak(1, b)
			s.run(3 * time.Second)
		})
		if got := s.lists(); writes != 0 || got != before {
			t.Errorf("%d writes, VPP has\n%s\nwant\n%s", writes, got, before)
		}
		s.tell(&messages.Render{Key: "b/b", Generation: 2, Epoch: s.epoch()})
		if s.standing("b/b") == retired {
			t.Error("retired before its rules are gone")
		}
		s.speak(1, a)
		if got := s.lists(); s.standing("b/b") != retired || s.standing("a/a") != inSync || len(s.vips()) != 1 || strings.Contains(got, "10.0.0.2") {
			t.Errorf("told %v and %v, VPP holds %q and\n%s", s.standing("a/a"), s.standing("b/b"), s.vips(), got)
		}
	})
}

// TestGuardWaitsForTheOwner: of a contested frontend the rules of the one who speaks first do not count while the other one, whose row VPP
// holds, may still speak.
func TestGuardWaitsForTheOwner(t *testing.T) {
	withRenderer(t, func(s *stage) {
		owner, loser := viewOf("a/a", 1, "10.0.0.1"), guardedView("b/b", []string{"192.0.2.0/24"}, "10.0.0.1", "10.0.0.2")
		stranger := func() bool { return s.reaches("uplink0", "198.51.100.7", "10.0.0.1") }
		s.begin(1, "a/a", "b/b")
		s.speak(1, owner)
		s.speak(1, loser)
		if !stranger() || s.reaches("uplink0", "198.51.100.7", "10.0.0.2") {
			t.Fatal("the rules of the loser count for the owner, or do not count for itself")
		}
		before := s.lists()
		restart := func(keys ...string) {
			s.kill()
			s.connected()
			s.found(2)
			s.begin(1, keys...)
			s.speak(1, loser)
			s.run(3 * time.Second)
		}
		writes, _ := s.wrote(func() {
			restart("a/a", "b/b")
			if !stranger() || s.lists() != before {
				t.Errorf("clients of the owner are dropped until it has spoken:\n%s", s.lists())
			}
			s.speak(1, owner)
		})
		if !stranger() || writes != 0 {
			t.Errorf("%d writes, stranger served %t", writes, stranger())
		}
		restart("b/b") // the owner has gone meanwhile
		if stranger() || !s.reaches("uplink0", "192.0.2.7", "10.0.0.1") || s.standing("b/b") != inSync {
			t.Errorf("told %v, VPP holds %q and\n%s", s.standing("b/b"), s.vips(), s.lists())
		}
	})
}

// TestNobodyOutsideIsEverLetIn: whatever happens to cluster, actors, messages and VPP, after no message to VPP is a client translated that
// a service keeps out all the time.
func TestNobodyOutsideIsEverLetIn(t *testing.T) {
	looks, inside, seeds := 0, 0, campaign(30)
	for seed := range uint64(seeds) {
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := &weather{rand: rand.New(rand.NewPCG(seed, 4))}
			w.loss, w.crash = []int{0, 20, 100}[w.rand.IntN(3)], []int{0, 100, 500}[w.rand.IntN(3)]
			inHouse(t, seed, func(h *house, o *runtime.Options) { w.blow(h, o) }, func(h *house) {
				h.wire.after = func(req api.Message) {
					looks++
					if translated(h.wire.vpp, "uplink0", "192.0.2.7", "203.0.113.200") {
						inside++
					}
					for _, c := range [][3]string{
						{"uplink0", "198.51.100.7", "203.0.113.200"}, {"pod2", "10.1.1.2", "203.0.113.200"}, {"uplink0", "192.0.2.7", "203.0.113.201"},
					} {
						if translated(h.wire.vpp, c[0], c[1], c[2]) {
							t.Errorf("%v let in after %s %+v\n%s", c, req.GetMessageName(), req, h.wire.vpp.State())
						}
					}
				}
				s := newStorm(h, w)
				w.on = true
				for range 40 {
					s.keepOut()
					s.trouble()
					h.run(time.Duration(w.rand.IntN(600)) * time.Millisecond)
				}
				w.on = false
				h.wire.breakAfter(0)
				h.run(3 * time.Second)
				h.wire.connect()
				h.settle(5 * time.Minute)
			})
		})
		if !ok {
			return
		}
	}
	t.Logf("looked after %d messages; a client that may was translated %d times", looks, inside)
	if inside == 0 || looks < 100*seeds {
		t.Errorf("%d looks, %d translated: this test has not looked", looks, inside)
	}
}

// keepOut changes two services that keep the same clients out all the time, or removes one.
func (s *storm) keepOut() {
	away, here := testService("away", "10.96.1.1"), testService("ranged", "10.96.1.2")
	for i, service := range []*messages.Service{here, away} {
		service.Namespace, service.Type = "ns", messages.ServiceType_LOAD_BALANCER
		service.LoadBalancer = []*messages.LoadBalancerIngress{{Ip: fmt.Sprint("203.0.113.", 200+i)}}
	}
	here.SourceRanges = [][]string{{"192.0.2.0/24"}, {"192.0.0.0/16", "172.16.0.0/12"}, {"192.0.2.4/30"}}[s.rand.IntN(3)]
	here.ExternalPolicy = messages.TrafficPolicy(s.rand.IntN(2))
	away.ExternalPolicy = messages.TrafficPolicy_POLICY_LOCAL
	s.cluster.change(func() {
		s.cluster.services["ns/away"], s.cluster.services["ns/ranged"] = away, here
		for name, endpoints := range map[string][]string{"away": {"10.1.2.2", "10.1.2.3"}, "ranged": {"10.1.1.3", "10.1.2.4"}} {
			slice := testSlice(name, endpoints[:1+s.rand.IntN(2)]...)
			slice.Namespace = "ns"
			s.cluster.slices["ns/"+slice.GetName()] = slice
		}
		if s.rand.IntN(4) == 0 {
			delete(s.cluster.services, []string{"ns/away", "ns/ranged"}[s.rand.IntN(2)])
		}
	})
}

// trouble is what may happen without anybody else touching access lists.
func (s *storm) trouble() {
	switch s.rand.IntN(5) {
	case 0:
		s.kill()
	case 1:
		s.breakConnection()
	case 2:
		s.restartVPP()
	default:
		s.cluster.mutate(s.rand)
	}
}

package sessions

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// tally is a SessionObserver and, where asked, a SessionStats that reads the table of a simulated VPP past its API.
type tally struct {
	vpp     *simulator.VPP
	base    uint32
	broken  error // of the statistics
	looks   int
	usage   sessions.Usage
	limit   uint32
	survey  sessions.Survey
	alarm   bool
	deleted int
	errors  int
}

func (o *tally) Sessions(u sessions.Usage, limit uint32, s sessions.Survey, alarm bool) {
	o.usage, o.limit, o.survey, o.alarm = u, limit, s, alarm
}
func (o *tally) SessionsDeleted(n int) { o.deleted += n }
func (o *tally) SessionErrors(n int)   { o.errors += n }

// Read satisfies SessionStats.
func (o *tally) Read(context.Context) (sessions.Usage, error) {
	o.looks++
	if o.broken != nil {
		return sessions.Usage{}, o.broken
	}
	n := uint64(o.vpp.SessionCount())
	return sessions.Usage{Enabled: true, Busiest: n, Total: n, Base: o.base}, nil
}

// keeping plays with a keeper on a VPP whose plugin is enabled with a limit and serves 10.96.0.1:80 with pod3.
func keeping(t *testing.T, limit uint32, cfg sessions.Config, play func(s *stage, o *tally)) {
	t.Helper()
	perform(t, PathSessions, nil, func(s *stage) {
		o := &tally{vpp: s.wire.vpp, base: limit}
		s.deps.SessionObserver, s.deps.SessionStats, s.deps.Sessions = o, o, cfg
		s.kill() // with its settings
		s.exec(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: limit})
		s.exec(&nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
		for _, pod := range []string{"pod2", "pod3"} {
			for _, role := range []nat_types.NatConfigFlags{nat_types.NAT_IS_INSIDE, nat_types.NAT_IS_OUTSIDE} {
				s.exec(&nat44_ed.Nat44InterfaceAddDelFeature{
					IsAdd: true, Flags: role, SwIfIndex: interface_types.InterfaceIndex(s.wire.vpp.Interfaces()[pod]),
				})
			}
		}
		row := &nat44_ed.Nat44AddDelLbStaticMapping{
			IsAdd: true, Flags: nat_types.NAT_IS_OUT2IN_ONLY, Protocol: simulator.ProtoUDP, Tag: "test",
			ExternalAddr: [4]byte{10, 96, 0, 1}, ExternalPort: 80,
		}
		for port := range uint16(2) {
			row.Locals = append(row.Locals, nat44_ed.Nat44LbAddrPort{Addr: [4]byte{10, 1, 1, 3}, Port: 8080 + port, Probability: 7})
		}
		s.exec(row)
		s.online()
		play(s, o)
	})
}

// online tells the keeper that the connection is there.
func (s *stage) online() {
	s.tell(&messages.LinkState{Up: true, Boot: s.wire.state.GetBoot(), Session: s.wire.state.GetSession()})
}

func (s *stage) exec(req api.Message) {
	s.Helper()
	if _, err := s.wire.vpp.Exec(req); err != nil {
		s.Fatal(err)
	}
}

// dial opens connections from pod2 and returns how many of them VPP let pass.
func (s *stage) dial(from, n int) (served int) {
	s.Helper()
	for i := range n {
		verdict := s.wire.vpp.Send(simulator.Packet{
			In: "pod2", Proto: simulator.ProtoUDP, Src: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.2"), uint16(1024+from+i)),
			Dst: netip.MustParseAddrPort("10.96.0.1:80"),
		})
		if verdict.Action == simulator.Delivered {
			served++
		}
	}
	return served
}

// told are the texts and errors of the journal.
func (s *stage) told() string {
	var lines []string
	for _, e := range all[*messages.Event](s, PathJournal) {
		lines = append(lines, strings.TrimSpace(e.GetText()+" "+e.GetError()))
	}
	return strings.Join(lines, "\n")
}

// TestSessionsOutOfTheTrap: without housekeeping a table full of expired sessions refuses everybody for ever. With it nobody is refused, however
// often the table is filled.
func TestSessionsOutOfTheTrap(t *testing.T) {
	keeping(t, 1000, sessions.Config{}, func(s *stage, o *tally) {
		for round := range 4 {
			if n := s.dial(1000*round, 900); n != 900 {
				t.Fatalf("round %d: %d of 900 connections were served, with %d sessions", round, n, s.wire.vpp.SessionCount())
			}
			s.run(10 * time.Minute) // all of them expire
			if n := s.wire.vpp.SessionCount(); n > 600 {
				t.Fatalf("round %d: %d sessions are left", round, n)
			}
			s.dial(1000*round+900, 1)
		}
		if o.deleted < 1000 || o.limit != 1000 || o.errors != 0 || o.alarm || !strings.Contains(s.told(), "expired NAT sessions freed") {
			t.Errorf("%+v; told:\n%s", o, s.told())
		}
	})
}

// TestSessionsLimitIsRaised: living sessions are not freed; the limit grows before connections are refused, up to the highest, and then there is
// an alarm, which does not make the node unready and ends with its cause.
func TestSessionsLimitIsRaised(t *testing.T) {
	keeping(t, 1024, sessions.Config{Max: 4096}, func(s *stage, o *tally) {
		refused := 0
		for step := range 30 { // 100 more in 2 s
			refused += 100 - s.dial(100*step, 100)
			s.run(2 * time.Second)
		}
		if refused > 0 || o.limit <= 1024 || o.alarm || !strings.Contains(s.told(), "NAT session limit 1024 -> ") {
			t.Errorf("%d refused; %+v; told:\n%s", refused, o, s.told())
		}
		for step := range 10 {
			s.dial(3000+100*step, 100)
			s.run(time.Second)
		}
		h := latest[*messages.Health](s, PathHealer)
		if !o.alarm || o.limit != 4096 || !h.GetOk() || !strings.Contains(h.GetReason(), "the limit of 4096 is the highest allowed") {
			t.Errorf("no alarm: %+v, %v", o, h)
		}
		s.run(10 * time.Minute) // everything expires and is freed
		h = latest[*messages.Health](s, PathHealer)
		if o.alarm || h.GetReason() != "" || !strings.Contains(s.told(), "alarm is over") || strings.Count(s.told(), "alarm: ") != 1 {
			t.Errorf("alarm %v, %v, told:\n%s", o.alarm, h, s.told())
		}
	})
}

// TestSessionsKeeperComesUpInTheTrap: a successor, like a new agent, learns limit and sessions from VPP.
func TestSessionsKeeperComesUpInTheTrap(t *testing.T) {
	keeping(t, 512, sessions.Config{Max: 512}, func(s *stage, o *tally) {
		if s.dial(0, 512) != 512 || s.dial(512, 1) != 0 {
			t.Fatal("the table is not full")
		}
		for range 5 {
			s.kill()
			s.online()
		}
		s.run(10 * time.Minute)
		if n := s.wire.vpp.SessionCount(); s.dial(600, 100) != 100 || o.deleted == 0 {
			t.Errorf("%d sessions before, %+v", n, o)
		}
		if n := len(s.faults); n > 6 {
			t.Errorf("%d failures: %v", n, s.faults)
		}
	})
}

// TestSessionsWithoutStatistics: VPP is asked instead, seldom while the table is not full, and the journal says once why.
func TestSessionsWithoutStatistics(t *testing.T) {
	keeping(t, 1000, sessions.Config{}, func(s *stage, o *tally) {
		o.broken = errors.New("nobody listens")
		s.dial(0, 950)
		s.run(10 * time.Minute)
		if n := s.wire.vpp.SessionCount(); n > 600 || !o.usage.Costly {
			t.Errorf("%d sessions, %+v", n, o)
		}
		asked := o.looks
		s.run(10 * time.Minute)
		if n := o.looks - asked; n == 0 || n > 75 {
			t.Errorf("VPP was surveyed %d times in 10 minutes", n)
		}
		o.broken = nil
		s.run(10 * time.Minute)
		if told := s.told(); strings.Count(told, "by API, at a cost: nobody listens") != 1 || strings.Count(told, "from VPP's statistics") != 1 {
			t.Errorf("told:\n%s", told)
		}
	})
}

// TestSessionsAndTheLink: nothing is asked while there is no connection, and what belongs to an earlier one is worth nothing.
func TestSessionsAndTheLink(t *testing.T) {
	keeping(t, 1000, sessions.Config{Max: 4000}, func(s *stage, o *tally) {
		s.dial(0, 500)
		s.run(time.Minute)
		s.wire.disconnect()
		s.tell(&messages.LinkState{Session: s.wire.state.GetSession()})
		looks := o.looks
		s.run(time.Minute)
		if o.looks != looks || o.errors != 0 {
			t.Errorf("%d looks without a connection, %d errors", o.looks-looks, o.errors)
		}
		s.wire.connect()
		s.online()
		s.run(time.Minute)
		s.tell(&messages.LinkState{Session: 1}) // overtaken
		looks = o.looks
		if s.run(time.Minute); o.looks == looks {
			t.Error("a word of an earlier connection stopped the keeper")
		}
	})
}

// TestSessionsThatVPPRefuses: what VPP refuses is counted, told, and tried again with patience.
func TestSessionsThatVPPRefuses(t *testing.T) {
	keeping(t, 1000, sessions.Config{Max: 4000}, func(s *stage, o *tally) {
		tries := 0
		s.wire.refuse = func(req api.Message) error {
			tries++
			return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
		}
		s.dial(0, 950)
		s.run(30 * time.Second)
		h := latest[*messages.Health](s, PathHealer)
		if tries == 0 || tries > 3 || o.errors != tries || !o.alarm || !strings.Contains(h.GetReason(), "VPP refuses to raise the limit of 1000") {
			t.Errorf("%d tries, %+v, %v", tries, o, h)
		}
		s.wire.refuse = nil
		if s.run(time.Minute); o.limit <= 1000 || o.alarm {
			t.Errorf("%+v", o)
		}
	})
}

// TestSessionsOfTheWholeTroupe: services are served while the table fills with what others left, and the keeper's failures cost nobody anything.
func TestSessionsOfTheWholeTroupe(t *testing.T) {
	inHouse(t, 1, func(h *house, _ *runtime.Options) {
		h.deps.NAT44.SessionLimit, h.deps.Sessions.Max = 2000, 2000
	}, func(h *house) {
		h.serve("web", "10.96.0.1", "10.1.1.2", "10.1.1.3")
		h.settle(time.Minute)
		dial := func(port int) bool {
			return h.wire.vpp.Send(simulator.Packet{
				In: "pod4", Proto: simulator.ProtoTCP, Src: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.4"), uint16(port)),
				Dst: netip.MustParseAddrPort("10.96.0.1:80"),
			}).Action == simulator.Delivered
		}
		for round := range 5 {
			if _, err := h.wire.vpp.FillSessions(1900); err != nil {
				t.Fatal(err)
			}
			if err := h.sys.Kill(PathSessions); err != nil {
				t.Fatal(err)
			}
			h.run(15 * time.Minute)
			if n := h.wire.vpp.SessionCount(); n > 1200 || !dial(2000+round) {
				t.Fatalf("round %d: %d sessions, or a connection is refused", round, n)
			}
		}
		if report := h.deps.Readiness.Load(); !report.Ready {
			t.Errorf("%+v", report)
		}
		h.settle(time.Minute)
	})
}

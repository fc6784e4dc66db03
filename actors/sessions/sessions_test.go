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
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tally is an Observer, and a stats.Source that reads the table of a simulated VPP past its API.
type tally struct {
	vpp     *simulator.VPP
	base    uint32
	broken  error // of the statistics, or what VPP answers when it is asked for CNAT
	looks   int
	usage   sessions.Usage
	limit   uint32
	survey  sessions.Survey
	alarm   bool
	deleted int
	errors  int

	cnat      sessions.CNAT
	cnatAlarm bool
	calls     int // of VPP, where they are counted
	drains    int

	silent []sessions.Silent
	lost   string // the alarm about answers
}

func (o *tally) Sessions(u sessions.Usage, limit uint32, s sessions.Survey, alarm bool) {
	o.usage, o.limit, o.survey, o.alarm = u, limit, s, alarm
}
func (o *tally) SessionsDeleted(n int) { o.deleted += n }
func (o *tally) SessionErrors(n int)   { o.errors += n }
func (o *tally) CNATSessions(u sessions.CNAT, alarm bool) {
	o.cnat, o.cnatAlarm = u, alarm
}
func (o *tally) Draining(n int)                                    { o.drains = n }
func (o *tally) Unanswered(silent []sessions.Silent, alarm string) { o.silent, o.lost = silent, alarm }

func (o *tally) Read(context.Context) (sessions.Usage, error) {
	o.looks++
	n := uint64(o.vpp.SessionCount())
	if o.broken != nil {
		return sessions.Usage{Busiest: n, Total: n}, o.broken
	}
	return sessions.Usage{Enabled: true, Busiest: n, Total: n, Base: o.base}, nil
}

// stage has the housekeeper in a tree of probes.
type stage struct {
	*probe.Stage
	vpp    *virtual.Stream
	config *Config
}

// keeping plays with a housekeeper on a VPP whose plugin is enabled with a limit and serves
// 10.96.0.1:80 with pod3.
func keeping(t *testing.T, limit uint32, cfg sessions.Config, play func(s *stage, o *tally)) {
	t.Helper()
	s := &stage{Stage: probe.New(t)}
	s.vpp = s.VPP()
	o := &tally{vpp: s.vpp.VPP, base: limit}
	config := &Config{NAT44: true, Settings: cfg, Stats: o, Observer: o, VPP: s.vpp}
	s.config = config
	s.Start(address.Sessions, probe.Actors{address.Sessions: func() runtime.Behaviour { return New(config) }})
	s.exec(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: limit})
	s.exec(&nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
	for _, pod := range []string{"pod2", "pod3"} {
		for _, role := range []nat_types.NatConfigFlags{nat_types.NAT_IS_INSIDE, nat_types.NAT_IS_OUTSIDE} {
			s.exec(&nat44_ed.Nat44InterfaceAddDelFeature{
				IsAdd: true, Flags: role, SwIfIndex: interface_types.InterfaceIndex(s.vpp.VPP.Interfaces()[pod]),
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
	s.connection()
	play(s, o)
}

// connection tells the housekeeper the state of the connection, as the link would.
func (s *stage) connection() { s.Tell(s.vpp.State()) }

func (s *stage) exec(req api.Message) {
	s.Helper()
	if _, err := s.vpp.VPP.Exec(req); err != nil {
		s.Fatal(err)
	}
}

// dial opens connections from pod2 and returns how many of them VPP let pass.
func (s *stage) dial(from, n int) (served int) {
	s.Helper()
	for i := range n {
		verdict := s.vpp.VPP.Send(simulator.Packet{
			In: "pod2", Proto: simulator.ProtoUDP, Src: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.2"), uint16(1024+from+i)),
			Dst: netip.MustParseAddrPort("10.96.0.1:80"),
		})
		if verdict.Action == simulator.Delivered {
			served++
		}
	}
	return served
}

// recorded are the texts and errors of the journal.
func (s *stage) recorded() string {
	var lines []string
	for _, e := range probe.All[*messages.Event](s.Stage, address.Journal) {
		lines = append(lines, strings.TrimSpace(e.GetText()+" "+e.GetError()))
	}
	return strings.Join(lines, "\n")
}

// TestSessionsOutOfTheTrap: without housekeeping a table full of expired sessions refuses all
// clients for ever. With it none is refused, however often the table is filled.
func TestSessionsOutOfTheTrap(t *testing.T) {
	keeping(t, 1000, sessions.Config{}, func(s *stage, o *tally) {
		for round := range 4 {
			if n := s.dial(1000*round, 900); n != 900 {
				t.Fatalf("round %d: %d of 900 connections were served, with %d sessions", round, n, s.vpp.VPP.SessionCount())
			}
			s.Run(10 * time.Minute) // all of them expire
			if n := s.vpp.VPP.SessionCount(); n > 600 {
				t.Fatalf("round %d: %d sessions are left", round, n)
			}
			s.dial(1000*round+900, 1)
		}
		if o.deleted < 1000 || o.limit != 1000 || o.errors != 0 || o.alarm || !strings.Contains(s.recorded(), "expired NAT sessions freed") {
			t.Errorf("%+v; recorded:\n%s", o, s.recorded())
		}
	})
}

// TestSessionsLimitIsRaised: living sessions are not freed. The limit grows before connections are
// refused, up to the highest limit; then there is an alarm. The alarm does not make the node
// unready and ends with its cause.
func TestSessionsLimitIsRaised(t *testing.T) {
	keeping(t, 1024, sessions.Config{Max: 4096}, func(s *stage, o *tally) {
		refused := 0
		for step := range 30 { // 100 more in 2 s
			refused += 100 - s.dial(100*step, 100)
			s.Run(2 * time.Second)
		}
		if refused > 0 || o.limit <= 1024 || o.alarm || !strings.Contains(s.recorded(), "NAT session limit 1024 -> ") {
			t.Errorf("%d refused; %+v; recorded:\n%s", refused, o, s.recorded())
		}
		for step := range 10 {
			s.dial(3000+100*step, 100)
			s.Run(time.Second)
		}
		h := probe.Latest[*messages.Health](s.Stage, address.Healer)
		if !o.alarm || o.limit != 4096 || !h.GetOk() || !strings.Contains(h.GetReason(), "the limit of 4096 is the highest allowed") {
			t.Errorf("no alarm: %+v, %v", o, h)
		}
		s.Run(10 * time.Minute) // everything expires and is freed
		h = probe.Latest[*messages.Health](s.Stage, address.Healer)
		if o.alarm || h.GetReason() != "" || !strings.Contains(s.recorded(), "alarm is over") || strings.Count(s.recorded(), "alarm: ") != 1 {
			t.Errorf("alarm %v, %v, recorded:\n%s", o.alarm, h, s.recorded())
		}
	})
}

// TestHousekeeperComesUpInTheTrap: a successor, like a new agent, learns limit and sessions from
// VPP.
func TestHousekeeperComesUpInTheTrap(t *testing.T) {
	keeping(t, 512, sessions.Config{Max: 512}, func(s *stage, o *tally) {
		if s.dial(0, 512) != 512 || s.dial(512, 1) != 0 {
			t.Fatal("the table is not full")
		}
		for range 5 {
			s.Kill()
			s.connection()
		}
		s.Run(10 * time.Minute)
		if n := s.vpp.VPP.SessionCount(); s.dial(600, 100) != 100 || o.deleted == 0 {
			t.Errorf("%d sessions before, %+v", n, o)
		}
		if n := len(s.Faults); n > 6 {
			t.Errorf("%d failures: %v", n, s.Faults)
		}
	})
}

// TestSessionsWithoutStatistics: VPP is asked instead, seldom while the table is not full, and the
// journal says once why.
func TestSessionsWithoutStatistics(t *testing.T) {
	keeping(t, 1000, sessions.Config{}, func(s *stage, o *tally) {
		o.broken = errors.New("no socket")
		s.dial(0, 950)
		s.Run(10 * time.Minute)
		if n := s.vpp.VPP.SessionCount(); n > 600 || !o.usage.Costly {
			t.Errorf("%d sessions, %+v", n, o)
		}
		asked := o.looks
		s.Run(10 * time.Minute)
		if n := o.looks - asked; n == 0 || n > 75 {
			t.Errorf("VPP was surveyed %d times in 10 minutes", n)
		}
		o.broken = nil
		s.Run(10 * time.Minute)
		if text := s.recorded(); strings.Count(text, "by API, at a cost: no socket") != 1 || strings.Count(text, "from VPP's statistics") != 1 {
			t.Errorf("recorded:\n%s", text)
		}
	})
}

// TestSessionsWithoutALimitInTheStatistics: VPP is asked for the limit alone, and not surveyed.
func TestSessionsWithoutALimitInTheStatistics(t *testing.T) {
	keeping(t, 1000, sessions.Config{Max: 4000}, func(s *stage, o *tally) {
		o.broken = sessions.ErrNoLimit
		s.dial(0, 50)
		s.Run(time.Minute)
		if want := (sessions.Usage{Enabled: true, Busiest: 50, Total: 50, Base: 1000}); o.usage != want {
			t.Errorf("usage %+v, want %+v", o.usage, want)
		}
		if text := s.recorded(); strings.Count(text, "from VPP's statistics") != 1 || strings.Contains(text, "by API") {
			t.Errorf("recorded:\n%s", text)
		}
	})
}

// TestSessionsAndTheLink: nothing is asked while there is no connection, and what belongs to an
// earlier one is worth nothing.
func TestSessionsAndTheLink(t *testing.T) {
	keeping(t, 1000, sessions.Config{Max: 4000}, func(s *stage, o *tally) {
		s.dial(0, 500)
		s.Run(time.Minute)
		s.vpp.Disconnect("lost")
		s.connection()
		looks := o.looks
		s.Run(time.Minute)
		if o.looks != looks || o.errors != 0 {
			t.Errorf("%d looks without a connection, %d errors", o.looks-looks, o.errors)
		}
		s.vpp.Connect()
		s.connection()
		s.Run(time.Minute)
		s.Tell(&messages.LinkState{Session: 1}) // overtaken
		looks = o.looks
		if s.Run(time.Minute); o.looks == looks {
			t.Error("the state of an earlier connection stopped the housekeeping")
		}
	})
}

// TestSessionsThatVPPRefuses: what VPP refuses is counted, recorded, and retried with back-off.
func TestSessionsThatVPPRefuses(t *testing.T) {
	keeping(t, 1000, sessions.Config{Max: 4000}, func(s *stage, o *tally) {
		const many = 1000
		s.vpp.Refuse = many
		s.dial(0, 950)
		s.Run(30 * time.Second)
		h, tries := probe.Latest[*messages.Health](s.Stage, address.Healer), many-s.vpp.Refuse
		if tries == 0 || tries > 3 || o.errors != tries || !o.alarm || !strings.Contains(h.GetReason(), "VPP refuses to raise the limit of 1000") {
			t.Errorf("%d tries, %+v, %v", tries, o, h)
		}
		s.vpp.Refuse = 0
		if s.Run(time.Minute); o.limit <= 1000 || o.alarm {
			t.Errorf("%+v", o)
		}
	})
}

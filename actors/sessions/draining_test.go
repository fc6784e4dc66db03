package sessions

import (
	"net/netip"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// TestLooksForDraining: VPP is asked for the sessions of backends that drain, seldom, and only
// while there are any; the renderer gets the numbers, and otherwise the time.
func TestLooksForDraining(t *testing.T) {
	keeping(t, 1000, sessions.Config{}, func(s *stage, o *tally) {
		answers := func() []*sessions.Counted {
			return probe.All[*sessions.Counted](s.Stage, address.Renderer("nat44"))
		}
		s.Run(time.Minute)
		if got := answers(); len(got) < 4 || got[0].Generation != 0 || got[len(got)-1].Generation != 0 {
			t.Fatalf("without a list it says %v, want that it asks for one at the start and at every look", got)
		}
		s.dial(0, 20)
		with, without := netip.MustParseAddrPort("10.1.1.3:8080"), netip.MustParseAddrPort("10.1.1.9:8080")
		row := rule.Key{Addr: netip.MustParseAddr("10.96.0.1"), Port: 80, Proto: rule.UDP}
		s.vpp.VPP.ResetCounters()
		asked := len(answers())
		s.Tell(&sessions.Wish{Generation: 3, Draining: []netip.AddrPort{with, without}})
		s.Run(30 * time.Second)
		got := answers()
		if n := len(got) - asked; n < 20 || n > 36 || o.drains != 2 {
			t.Fatalf("%d answers in 30 s, %d backends drain", n, o.drains)
		}
		last := got[len(got)-1]
		if len(last.Live) != 2 || last.Generation != 3 || last.Live[with][row] == 0 || len(last.Live[without]) != 0 {
			t.Errorf("answered %v", last)
		}
		s.Tell(&sessions.Wish{Generation: 4})
		s.Run(10 * time.Second)
		before := s.vpp.VPP.Counters()
		s.Run(time.Minute)
		after := s.vpp.VPP.Counters()
		if n := after.Of("nat44_user_dump") - before.Of("nat44_user_dump"); n != 0 || o.drains != 0 {
			t.Errorf("%d dumps although nothing drains", n)
		}
	})
}

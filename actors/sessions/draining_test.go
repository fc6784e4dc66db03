package sessions

import (
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// TestLooksForDraining: VPP is asked for the sessions of backends that drain, seldom, and only
// while there are any; the renderer gets the numbers, and otherwise the time.
func TestLooksForDraining(t *testing.T) {
	keeping(t, 1000, sessions.Config{}, func(s *stage, o *tally) {
		answers := func() []*messages.DrainingSessions {
			return probe.All[*messages.DrainingSessions](s.Stage, address.Renderer("nat44"))
		}
		s.Run(time.Minute)
		if got := answers(); len(got) < 4 || got[0].GetGeneration() != 0 || got[len(got)-1].GetGeneration() != 0 {
			t.Fatalf("without a list it says %v, want that it asks for one at the start and at every look", got)
		}
		s.dial(0, 20)
		s.vpp.VPP.ResetCounters()
		asked := len(answers())
		s.Tell(&messages.Draining{Generation: 3, Endpoints: []string{"10.1.1.3:8080", "10.1.1.9:8080"}})
		s.Run(30 * time.Second)
		got := answers()
		if n := len(got) - asked; n < 20 || n > 36 || o.drains != 2 {
			t.Fatalf("%d answers in 30 s, %d backends drain", n, o.drains)
		}
		last := got[len(got)-1]
		if len(last.GetCounts()) != 2 || last.GetGeneration() != 3 || last.GetCounts()[0].GetSessions()["10.96.0.1:80/UDP"] == 0 || len(last.GetCounts()[1].GetSessions()) != 0 {
			t.Errorf("answered %v", last)
		}
		s.Tell(&messages.Draining{Generation: 4})
		s.Run(10 * time.Second)
		before := s.vpp.VPP.Counters()
		s.Run(time.Minute)
		after := s.vpp.VPP.Counters()
		if n := after.Of("nat44_user_dump") - before.Of("nat44_user_dump"); n != 0 || o.drains != 0 {
			t.Errorf("%d dumps although nothing drains", n)
		}
	})
}

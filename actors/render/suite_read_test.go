package render_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// TestDriverComesBackForOneRead: a crash of the renderer costs VPP one read and no write, whatever
// the order of what its siblings send.
func TestDriverComesBackForOneRead(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a", "b/b")
		s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.Serve("b/b", 1, "10.0.0.3")
		for round, siblings := range [][]func(){
			{s.Connected, func() { s.Found(2) }, func() { s.Begin(1, "a/a", "b/b") }},
			{func() { s.Found(3) }, func() { s.Begin(1, "a/a", "b/b") }, s.Connected},
			{func() { s.Begin(1, "a/a", "b/b") }, s.Connected, func() { s.Found(4) }},
		} {
			s.Forget()
			writes, reads := s.cost(func() {
				s.Kill()
				for _, say := range siblings {
					say()
				}
				s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2")
				s.Serve("b/b", 1, "10.0.0.3")
				s.Run(10 * time.Second)
			})
			if writes != 0 || reads != 1 {
				s.Errorf("%d: %d writes and %d reads, want none and one", round, writes, reads)
			}
			if s.State("a/a") != rendertest.InSync || s.State("b/b") != rendertest.InSync || !s.Health().GetOk() {
				s.Errorf("%d: acknowledged %v and %v, %v", round, s.State("a/a"), s.State("b/b"), s.Health())
			}
		}
		s.expect("in the end", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	})
}

// TestDriverTakesInterfacesThatItHeardOfWithoutConnection: a renderer that has restarted loses the
// connection before it knows the interfaces. They must have reached the adapter when the connection
// is back: without them it would take access lists for superfluous.
func TestDriverTakesInterfacesThatItHeardOfWithoutConnection(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a", "b/b")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Kill()
		s.Connected()
		s.Begin(1, "a/a", "b/b")
		set := s.Interfaces(2, probe.Uplink, "pod2")
		s.VPP.Disconnect("connection lost")
		s.Connected()
		s.Tell(set)
		s.VPP.Connect()
		s.Connected()
		s.Serve("a/a", 1, "10.0.0.1")
		s.Serve("b/b", 1, "10.0.0.2")
		s.expect("in the end", "10.0.0.1", "10.0.0.2")
		if s.State("b/b") != rendertest.InSync || !s.Health().GetOk() {
			s.Errorf("acknowledged %v, %v", s.State("b/b"), s.Health())
		}
	})
}

// TestDriverFinishesWhatItsPredecessorBegan: the renderer crashes while it works, after each
// message to VPP.
func TestDriverFinishesWhatItsPredecessorBegan(t *testing.T) {
	for at := 1; at <= 8; at++ {
		each(t, func(s *scene) {
			s.Begin(1, "a/a")
			s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2")
			s.RefuseAfter(at, fmt.Errorf("the crash"))
			s.Before = func(msg any, handle func(any)) {
				if !strings.Contains(fmt.Sprintf("%T", msg), ".applied[") {
					// the results of the batch
					handle(msg)
				}
			}
			s.Render(2, s.view("a/a", 3, "10.0.0.2", "10.0.0.3", "10.0.0.4"))
			s.Refuse, s.Before = nil, nil
			s.Kill()
			s.Connected()
			s.Found(2)
			s.Begin(1, "a/a")
			s.Serve("a/a", 2, "10.0.0.2", "10.0.0.3", "10.0.0.4")
			s.expect(fmt.Sprint("crash after message ", at), "10.0.0.2", "10.0.0.3", "10.0.0.4")
			if s.State("a/a") != rendertest.InSync || !s.Health().GetOk() {
				s.Errorf("crash after message %d: acknowledged %v, %v", at, s.Ack("a/a"), s.Health())
			}
		}, "a/a")
	}
}

// TestDriverReadsBackWhatItCannotKnow: the connection breaks at every request of a batch.
func TestDriverReadsBackWhatItCannotKnow(t *testing.T) {
	for at := 1; at <= 14; at++ {
		each(t, func(s *scene) {
			s.Begin(1, "a/a")
			s.VPP.Cut = at
			s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2", "10.0.0.3")
			s.Connected()
			if broken := s.VPP.Cut == 0; broken && s.Health().GetOk() {
				s.Errorf("break after %d: ready without a connection", at)
			}
			s.VPP.Cut = 0
			_, reads := s.cost(func() {
				s.Reconnect(2)
				s.Run(2 * time.Second)
			})
			s.expect(fmt.Sprint("break after ", at), "10.0.0.1", "10.0.0.2", "10.0.0.3")
			if s.State("a/a") != rendertest.InSync || !s.Health().GetOk() || reads != 1 {
				s.Errorf("break after %d: acknowledged %v, %v, %d reads", at, s.State("a/a"), s.Health(), reads)
			}
		})
	}
}

// TestDriverReadsBackAnUnansweredOperation: VPP has carried it out, or not, and the connection goes
// on.
func TestDriverReadsBackAnUnansweredOperation(t *testing.T) {
	for _, executed := range []bool{true, false} {
		each(t, func(s *scene) {
			s.Begin(1, "a/a")
			s.Serve("a/a", 1, "10.0.0.1")
			unanswered := 0
			s.Refuse = func(req api.Message) error {
				if unanswered++; unanswered > 1 {
					return nil
				}
				if executed {
					if _, err := s.VPP.VPP.Exec(req); err != nil {
						s.Fatal(err)
					}
				}
				return fmt.Errorf("%w: %s", link.ErrUnknown, req.GetMessageName())
			}
			writes, reads := s.cost(func() {
				s.Serve("a/a", 2, "10.0.0.1", "10.0.0.2")
				if s.State("a/a") != rendertest.Pending || s.Ack("a/a").GetError() != "waiting for VPP" {
					s.Errorf("acknowledged %v", s.Ack("a/a"))
				}
				s.Run(5 * time.Second)
			})
			again := map[bool]int{true: 0, false: 1}[executed]
			if s.expect("read back", "10.0.0.1", "10.0.0.2"); writes != 1+again || reads != 1 || s.State("a/a") != rendertest.InSync {
				s.Errorf("executed %t: %d writes and %d reads, acknowledged %v", executed, writes, reads, s.Ack("a/a"))
			}
		})
	}
}

// TestDriverIgnoresAReadOfAnEarlierConnection: it may have read another VPP.
func TestDriverIgnoresAReadOfAnEarlierConnection(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Before = func(msg any, handle func(any)) {
			if !strings.HasSuffix(fmt.Sprintf("%T", msg), ".readDone") {
				handle(msg)
				return
			}
			s.Before = nil
			s.Later(time.Second, msg)
		}
		s.Tell(&messages.Verify{Reason: "test"})
		if s.Before != nil {
			s.Fatal("no read")
		}
		s.Crash()
		s.Connected()
		s.Reconnect(2)
		s.Run(2 * time.Second)
		s.expect("another VPP", "10.0.0.1")
		if s.State("a/a") != rendertest.InSync || !s.Health().GetOk() {
			s.Errorf("acknowledged %v, %v", s.Ack("a/a"), s.Health())
		}
	})
}

// TestDriverAcknowledgesNothingItDoesNotKnow: while VPP is away services wait for it.
func TestDriverAcknowledgesNothingItDoesNotKnow(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		s.VPP.Disconnect("connection lost")
		s.Connected()
		s.Serve("a/a", 2, "10.0.0.1", "10.0.0.2")
		if ack := s.Ack("a/a"); ack.GetState() != rendertest.Pending || ack.GetError() != "waiting for VPP" || ack.GetGeneration() != 2 {
			s.Errorf("acknowledged %v", ack)
		}
		s.Reconnect(2)
		if s.State("a/a") != rendertest.InSync {
			s.Errorf("acknowledged %v", s.Ack("a/a"))
		}
	})
}

func TestDriverFillsAnotherVPPOnce(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.Crash()
		s.Connected()
		if h := s.Health(); h.GetOk() || h.GetReason() != "no connection to VPP" {
			s.Errorf("health %v", h)
		}
		s.Run(time.Minute)
		s.VPP.Connect()
		s.Connected()
		s.expect("before the interfaces are known")
		if h := s.Health(); h.GetReason() != "VPP's interfaces are not known yet" {
			s.Errorf("health %v", h)
		}
		s.Forget()
		_, reads := s.cost(func() { s.Found(2) })
		s.expect("another VPP", "10.0.0.1", "10.0.0.2")
		if s.State("a/a") != rendertest.InSync || !s.Health().GetOk() || reads != 0 || len(s.Healths()) > 3 {
			s.Errorf("acknowledged %v, %d reads, health on the way %v", s.State("a/a"), reads, s.Healths())
		}
	})
}

// TestDriverDoesNotTakeOneVPPForAnother: the message that the connection was lost may never come.
func TestDriverDoesNotTakeOneVPPForAnother(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Crash()
		s.Reconnect(2) // without a message that it was down
		s.expect("the new VPP", "10.0.0.1")
		s.Tell(&messages.LinkState{Session: 1, Reason: "long ago"})
		if !s.Health().GetOk() {
			s.Errorf("a state of an earlier connection counts: %v", s.Health())
		}
	})
}

// TestDriverRepairsDamage: another client has changed VPP. Until that is repaired the node is not
// ready; a read that finds nothing changes nothing.
func TestDriverRepairsDamage(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.Forget()
		s.Tell(&messages.Verify{Reason: "test"})
		if v := s.Verified(); v == nil || v.GetDifferences() != 0 || v.GetRenderer() != s.name {
			s.Errorf("verified %v", v)
		}
		if len(s.Healths()) != 0 || s.Ack("a/a") != nil || s.Observed.Drift != 0 {
			s.Errorf("a read without differences: %v, %v", s.Healths(), s.Ack("a/a"))
		}
		s.outside(s.remove, "10.0.0.1")
		s.Tell(&messages.Verify{Reason: "test"})
		s.expect("repaired", "10.0.0.1", "10.0.0.2")
		if v := s.Verified(); v.GetDifferences() != 1 || v.GetReason() != "test" || v.GetRepaired() < v.GetBegan() || v.GetOperations() == 0 || s.Observed.Drift != 1 {
			s.Errorf("verified %v, counted %d", v, s.Observed.Drift)
		}
		if h := s.Healths(); len(h) != 2 || h[0].GetOk() || !h[1].GetOk() {
			s.Errorf("health while it was damaged: %v", h)
		}
		var acks []messages.RenderState
		for _, ack := range probe.All[*messages.RenderAck](s, address.Service("a/a")) {
			acks = append(acks, ack.GetState())
		}
		if len(acks) != 2 || acks[0] != rendertest.Pending || acks[1] != rendertest.InSync {
			s.Errorf("acknowledged %v", acks)
		}
	})
}

// TestDriverChecksForDriftWhenAsked: one read for each routine Verify, which is a drift check for
// VPP and for the journal only when it finds something.
func TestDriverChecksForDriftWhenAsked(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Forget()
		writes, reads := s.cost(func() {
			for range 5 {
				s.Tell(&messages.Verify{Reason: "drift check", Routine: true})
				s.Run(time.Second)
			}
		})
		if writes != 0 || reads != 5 || s.routine != 5 || len(s.Events()) != 0 {
			s.Errorf("%d writes, %d reads, %d of them routine, recorded %v", writes, reads, s.routine, s.Events())
		}
		s.outside(s.remove, "10.0.0.1")
		s.Tell(&messages.Verify{Reason: "drift check", Routine: true})
		s.expect("repaired", "10.0.0.1")
		if found := probe.Latest[*messages.Verified](s, address.Introspect); found.GetDifferences() != 1 || len(s.Events()) == 0 {
			s.Errorf("found %v, recorded %v", found, s.Events())
		}
	})
}

// TestDriverSchedulesDriftChecks: after every reading, whatever it was for, the next check comes
// when the least time is over. A restart brings no check at once, and takes none away.
func TestDriverSchedulesDriftChecks(t *testing.T) {
	each(t, func(s *scene) {
		s.Config.DriftCheckLeast, s.Config.DriftCheckMost = 45*time.Second, time.Minute
		s.Kill()
		s.Connected()
		s.Found(2)
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		for i, step := range []struct {
			after  time.Duration
			checks int
		}{{44 * time.Second, 0}, {time.Second, 1}, {44 * time.Second, 1}, {time.Second, 2}, {450 * time.Second, 12}} {
			if s.Run(step.after); s.routine != step.checks {
				s.Errorf("step %d: %d checks, want %d", i, s.routine, step.checks)
			}
		}
		for range 3 {
			s.Run(30 * time.Second)
			s.Tell(&messages.Verify{Reason: "healer"})
		}
		if s.Run(44 * time.Second); s.routine != 12 {
			s.Errorf("%d checks although VPP was read before each was due", s.routine)
		}
	})
}

// TestDriverChecksForDriftWhileItWorks: a drift check waits for work to end, and no longer than it
// is overdue.
func TestDriverChecksForDriftWhileItWorks(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		check := &messages.Verify{Reason: "drift check", Routine: true}
		s.Send(rendertest.RenderMessage(2, s.view("a/a", 3, "10.0.0.1", "10.0.0.2")), check)
		s.Run(time.Millisecond)
		if s.State("a/a") != rendertest.InSync || s.routine != 1 {
			s.Errorf("acknowledged %v, %d drift checks", s.State("a/a"), s.routine)
		}
		generation := uint64(3)
		_, reads := s.cost(func() {
			s.Send(check)
			for range 20000 { // so that a batch is under way all the time
				s.Send(rendertest.RenderMessage(generation, s.view("a/a", 3, "10.0.0.1", fmt.Sprint("10.0.1.", generation%200+1))))
				generation++
			}
			s.Run(10 * time.Millisecond)
		})
		if reads != 1 {
			s.Errorf("%d reads for one drift check", reads)
		}
	})
}

// TestDriverCountsNoChangeOfItsOwnAsDamage: reads in the middle of ordinary changes.
func TestDriverCountsNoChangeOfItsOwnAsDamage(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a", "b/b")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Serve("b/b", 1, "10.0.0.2")
		s.Forget()
		for i := range uint64(20) {
			s.Send(&messages.Verify{Reason: "test", Routine: i%2 == 0})
			s.Send(rendertest.RenderMessage(2+i, s.view("a/a", 3, "10.0.0.1", fmt.Sprint("10.0.1.", 1+i%9))))
			s.Run(virtual.RoundTrip / 2)
		}
		s.Run(time.Second)
		for _, v := range probe.All[*messages.Verified](s, address.Introspect) {
			if v.GetDifferences() != 0 {
				s.Errorf("verified %v", v)
			}
		}
		for _, h := range s.Healths() {
			if !h.GetOk() {
				s.Errorf("not ready in between: %v", h)
			}
		}
		s.expect("in the end", "10.0.0.1", "10.0.0.2", "10.0.1.2")
	})
}

// TestDriverLeavesObjectsOfOthersAlone: the service has a conflict until the object is free.
func TestDriverLeavesObjectsOfOthersAlone(t *testing.T) {
	each(t, func(s *scene) {
		if s.occupy == nil {
			return // whose route it is does not matter: both can be in VPP
		}
		s.Begin(1, "a/a")
		s.outside(s.occupy, "10.0.0.1")
		s.Tell(&messages.Verify{Reason: "test"})
		s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.expect("taken", "10.0.0.2")
		ack := s.Ack("a/a")
		if c := ack.GetConflicts(); len(c) != 1 || !strings.HasPrefix(c[0].GetOwner(), "VPP: ") || ack.GetState() != rendertest.InSync || !s.Health().GetOk() {
			s.Errorf("acknowledged %v, %v", ack, s.Health())
		}
		s.outside(s.release, "10.0.0.1")
		s.Tell(&messages.Verify{Reason: "test"})
		s.expect("free", "10.0.0.1", "10.0.0.2")
		if ack := s.Ack("a/a"); len(ack.GetConflicts()) != 0 || ack.GetState() != rendertest.InSync {
			s.Errorf("acknowledged %v", ack)
		}
		s.Serve("a/a", 2, "10.0.0.2")
		s.outside(s.occupy, "10.0.0.1")
		s.Tell(&messages.Verify{Reason: "test"})
		writes, _ := s.cost(func() {
			s.Serve("a/a", 3, "10.0.0.1", "10.0.0.2")
			s.Serve("a/a", 4)
		})
		if s.expect("gone"); writes != 1 {
			s.Errorf("%d writes to remove one object", writes)
		}
	})
}

package render_test

import (
	"fmt"
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// many are so many addresses, from a number on.
func many(n, from int) (addresses []string) {
	for i := from; i < from+n; i++ {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250))
	}
	return addresses
}

// slow makes each change of an object take long, until end is called.
func (s *scene) slow(each time.Duration) (end func()) {
	over := false
	s.Refuse = func(req api.Message) error {
		if s.object(s.VPP.VPP, req).IsValid() {
			s.Sim.Sleep(each, func() bool { return over })
		}
		return nil
	}
	return func() {
		over, s.Refuse = true, nil
		s.Run(time.Second)
	}
}

// TestDriverAcknowledgesALotOnce: that VPP does not hold it yet, and that it does, however many
// batches there are between.
func TestDriverAcknowledgesALotOnce(t *testing.T) {
	each(t, func(s *scene) {
		acks := func(what func()) (states []messages.RenderState) {
			s.Forget()
			what()
			s.Run(time.Minute)
			for _, ack := range probe.All[*messages.RenderAck](s, address.Service("a/a")) {
				states = append(states, ack.GetState())
			}
			return states
		}
		s.Begin(1, "a/a")
		addresses := many(4000, 0)
		if got := acks(func() { s.Serve("a/a", 1, addresses...) }); fmt.Sprint(got) != "[RENDER_PENDING RENDER_IN_SYNC]" || len(s.holds()) != 4000 {
			s.Errorf("served: acknowledged %v", got)
		}
		if got := acks(func() { s.Serve("a/a", 2, addresses[0]) }); fmt.Sprint(got) != "[RENDER_PENDING RENDER_IN_SYNC]" || len(s.holds()) != 1 {
			s.Errorf("all but one removed: acknowledged %v", got)
		}
		if got := acks(func() { s.Serve("a/a", 3) }); fmt.Sprint(got) != "[RENDER_PENDING RENDER_RETIRED]" {
			s.Errorf("gone: acknowledged %v", got)
		}
	}, "a/a")
}

// TestDriverTakesTurns: what one service wants is in VPP after two batches at most, however much
// services of another namespace want, or leave behind.
func TestDriverTakesTurns(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "evil/a", "evil/b", "shop/web")
		s.Serve("evil/a", 1, many(4000, 0)...)
		s.Run(time.Minute)
		s.slow(time.Millisecond)
		s.Serve("evil/b", 1, many(4000, 10_000)...)
		s.Serve("evil/a", 2, many(1, 0)...)
		// batches get smaller while VPP is slow
		for generation, most := range []int{3 * 1024, 3 * 256} {
			writes, _ := s.cost(func() {
				s.Serve("shop/web", uint64(1+generation), fmt.Sprint("10.0.249.", 1+generation))
				for s.State("shop/web") != rendertest.InSync {
					s.Run(100 * time.Millisecond)
				}
			})
			if writes > most {
				s.Errorf("change %d is in VPP after %d changes of others", 1+generation, writes)
			}
			s.Run(2 * time.Second)
		}
		s.Run(time.Minute)
		if len(s.holds()) != 4002 {
			s.Errorf("VPP holds %d objects in the end", len(s.holds()))
		}
	}, "evil/a", "evil/b", "shop/web")
}

// TestLargeViewsWait: a small change does not wait for all large ones that were there first, and a
// list of the services comes after them. How many come before it depends on the order of messages.
func TestLargeViewsWait(t *testing.T) {
	large := []string{"evil/a", "evil/b", "evil/c"}
	each(t, func(s *scene) {
		s.Begin(1, append(large, "shop/web")...)
		s.Forget()
		acked := func() (keys []string) {
			for _, key := range large {
				if s.Ack(key) != nil {
					keys = append(keys, key)
				}
			}
			return keys
		}
		for i, key := range large {
			s.Send(rendertest.RenderMessage(1, s.View(key, 1, many(5000, 1000*i)...)))
			s.Send(rendertest.RenderMessage(2, s.View(key, 1, many(5000, 10_000+5000*i)...)))
		}
		s.Send(rendertest.RenderMessage(1, s.View("shop/web", 1, "10.0.249.1")))
		found, err := s.Sim.RunUntil(func() bool { return s.Ack("shop/web") != nil }, time.Minute)
		if keys := acked(); !found || err != nil || len(keys) == len(large) {
			s.Errorf("before the small change, if there is one (%t, %v): %v", found, err, keys)
		}
		s.Run(time.Minute)
		if len(s.holds()) != 15_001 {
			s.Errorf("VPP holds %d objects", len(s.holds()))
		}
		s.Send(rendertest.RenderMessage(3, s.View("evil/a", 1, many(5000, 30_000)...)), rendertest.BeginMessage(4, "evil/a", "shop/web"))
		s.Run(time.Minute)
		if len(s.holds()) != 5001 {
			s.Errorf("without two services VPP holds %d objects", len(s.holds()))
		}
	}, append(large, "shop/web")...)
}

// TestChangesWithoutEndAreNoDelay: a service that changes faster than VPP takes it is never in
// sync, and yet no change waits for long. When VPP hangs, one does.
func TestChangesWithoutEndAreNoDelay(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, many(1, 0)...)
		s.slow(10 * time.Millisecond)
		for generation := uint64(2); generation < 200; generation++ {
			s.Forget()
			s.Serve("a/a", generation, many(100, 100*int(generation))...)
			s.Run(500 * time.Millisecond)
			if s.State("a/a") == rendertest.InSync {
				s.Fatalf("generation %d is in sync: the story is about one that never is", generation)
			}
			for _, h := range s.Healths() {
				if since := h.GetWaiting(); !h.GetOk() || since != 0 && s.Sim.Now().Sub(time.Unix(0, since)) > 5*time.Second {
					s.Fatalf("generation %d: a change has waited for %v: %v", generation, s.Sim.Now().Sub(time.Unix(0, since)), h)
				}
			}
		}
		defer s.slow(time.Hour)()
		s.Run(time.Minute)
		if since := s.Health().GetWaiting(); since == 0 || s.Sim.Now().Sub(time.Unix(0, since)) < 50*time.Second {
			s.Errorf("VPP does nothing for a minute, and %v", s.Health())
		}
	}, "a/a")
}

// TestWorkThatGoesOnIsNotWrong: the healer acts only when VPP stops accepting changes.
func TestWorkThatGoesOnIsNotWrong(t *testing.T) {
	each(t, func(s *scene) {
		s.slow(time.Millisecond)
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, many(18_000, 0)...)
		s.Run(5 * time.Second)
		s.Forget()
		s.Run(8 * time.Second)
		for _, h := range s.Healths() {
			if h.GetOk() || h.GetReach() != messages.Reach_REACH_OBJECT || !h.GetPartial() {
				s.Fatalf("at work: %v", h)
			}
		}
		defer s.slow(time.Hour)()
		s.Run(20 * time.Second)
		if h := s.Health(); h.GetReach() != messages.Reach_REACH_DOWNSTREAM {
			s.Errorf("VPP does nothing: %v", h)
		}
	}, "a/a")
}

// TestWhatIsRefusedOfSomeIsPartial: what VPP refuses of one service says nothing about the node;
// when it holds nothing that services want, it does.
func TestWhatIsRefusedOfSomeIsPartial(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a", "b/b")
		s.refuse("10.0.0.1")
		s.Serve("a/a", 1, "10.0.0.1")
		s.Serve("b/b", 1, "10.0.0.2")
		s.Run(time.Minute)
		if h := s.Health(); h.GetOk() || !h.GetPartial() || h.GetWaiting() != 0 {
			s.Errorf("one of two: %v", h)
		}
		s.Serve("b/b", 2)
		s.Refuse = func(req api.Message) error {
			if s.object(s.VPP.VPP, req).IsValid() {
				return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
			}
			return nil
		}
		s.Serve("b/b", 3, "10.0.0.3")
		s.Run(time.Minute)
		if h := s.Health(); h.GetOk() || h.GetPartial() == s.givesRoles || h.GetReach() != messages.Reach_REACH_OBJECT {
			s.Errorf("all: %v", h)
		}
	})
}

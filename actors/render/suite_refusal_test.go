package render_test

import (
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// TestDriverRetriesWhatWasRefused: once a second as a half-open probe, without disturbing other
// objects; VPP is read for it later and later.
func TestDriverRetriesWhatWasRefused(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a", "b/b")
		tries := s.refuse("10.0.0.1")
		s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.Serve("b/b", 1, "10.0.0.3")
		s.expect("one refused", "10.0.0.2", "10.0.0.3")
		if s.State("a/a") != rendertest.Failed || s.State("b/b") != rendertest.InSync {
			s.Errorf("acknowledged a/a %v, b/b %v", s.State("a/a"), s.State("b/b"))
		}
		s.Run(2 * time.Second)
		if h := s.Health(); h.GetOk() || !strings.HasPrefix(h.GetReason(), "1 "+s.noun+" refused by VPP, first 10.0.0.1") {
			s.Errorf("health %v", h)
		}
		*tries = 0
		_, reads := s.cost(func() { s.Run(5 * time.Minute) })
		if *tries < 290 || *tries > 320 || reads > 10 {
			s.Errorf("tried %d times in five minutes, with %d reads", *tries, reads)
		}
		s.Refuse = nil
		s.Run(s.Config.Backoff)
		if s.State("a/a") != rendertest.InSync || !s.Health().GetOk() {
			s.Errorf("acknowledged %v, %v", s.State("a/a"), s.Health())
		}
	})
}

// TestDriverTakesManyRefusalsBackQuickly: one probe a second for all objects of one kind of
// refusal, and when VPP takes it the others follow at once.
func TestDriverTakesManyRefusalsBackQuickly(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a", "b/b")
		s.Serve("b/b", 1, "10.0.9.9")
		tries := 0
		s.Refuse = func(req api.Message) error {
			if s.object(s.VPP.VPP, req).IsValid() {
				tries++
				return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
			}
			return nil
		}
		var addresses []string
		for i := range 100 {
			addresses = append(addresses, "10.0.1."+string([]byte{'0' + byte(i/100+1), '0' + byte(i/10%10), '0' + byte(i%10)}))
		}
		s.Serve("a/a", 1, addresses...)
		s.Run(5 * time.Minute)
		tries = 0
		s.Run(time.Minute)
		if tries > 100/20*60+100 {
			s.Errorf("tried %d times in a minute", tries)
		}
		s.Refuse = nil
		s.Run(1100 * time.Millisecond)
		if s.State("a/a") != rendertest.InSync || !s.Health().GetOk() || len(s.holds()) != 101 {
			s.Errorf("acknowledged %v, %v", s.State("a/a"), s.Health())
		}
	})
}

// TestDriverForgetsRefusalsThatMeanNothing: another VPP, or nothing wanted any more.
func TestDriverForgetsRefusalsThatMeanNothing(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.refuse("10.0.0.1")
		s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.Run(5 * time.Minute)
		s.Refuse = nil
		s.Crash()
		s.Connected()
		s.Reconnect(2)
		s.expect("another VPP", "10.0.0.1", "10.0.0.2")
		if s.State("a/a") != rendertest.InSync || !s.Health().GetOk() {
			s.Errorf("acknowledged %v, %v", s.State("a/a"), s.Health())
		}
		tries := s.refuse("10.0.0.3")
		s.Serve("a/a", 2, "10.0.0.2", "10.0.0.3")
		if s.State("a/a") != rendertest.Failed {
			s.Errorf("acknowledged %v", s.State("a/a"))
		}
		s.Serve("a/a", 3, "10.0.0.2")
		*tries = 0
		s.Run(time.Minute)
		if s.State("a/a") != rendertest.InSync || !s.Health().GetOk() || *tries != 0 {
			s.Errorf("acknowledged %v, %v, tried %d times although it is not wanted", s.State("a/a"), s.Health(), *tries)
		}
	})
}

// TestDriverRetriesRemovals: a service that goes is retired when VPP has removed the last object of
// it.
func TestDriverRetriesRemovals(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.refuse("10.0.0.1")
		s.Serve("a/a", 2)
		if ack := s.Ack("a/a"); ack.GetState() != rendertest.Failed || !strings.HasPrefix(ack.GetError(), "10.0.0.1") {
			s.Errorf("acknowledged %v", ack)
		}
		s.expect("one removal refused", "10.0.0.1")
		s.Refuse = nil
		s.Run(s.Config.Backoff)
		s.expect("both removed")
		if s.State("a/a") != rendertest.Retired || !s.Health().GetOk() {
			s.Errorf("acknowledged %v, %v", s.State("a/a"), s.Health())
		}
	})
}

// TestDriverDoesNotHammerVPP: whatever VPP refuses, settings and objects alike, it is not asked in
// a loop.
func TestDriverDoesNotHammerVPP(t *testing.T) {
	for name, refusal := range map[string]error{
		"refused":      &link.RetvalError{Message: "m", Retval: -1},
		"exists":       &link.RetvalError{Message: "m", Retval: -81},
		"vanished":     &link.RetvalError{Message: "m", Retval: -6},
		"disabled":     &link.RetvalError{Message: "m", Retval: -126},
		"no interface": &link.RetvalError{Message: "m", Retval: -2},
		"not sent":     link.ErrNotSent,
		"no answer":    link.ErrUnknown,
		"stale":        link.ErrStale,
		"unsafe":       link.ErrRefused,
		"unsupported":  link.ErrUnsupported,
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(s *scene) {
				s.Begin(1, "a/a", "b/b")
				s.Serve("b/b", 1, "10.0.0.3") // interfaces have what rows need
				s.Refuse = func(api.Message) error { return refusal }
				s.Kill()
				s.Connected()
				s.Found(2)
				s.Begin(2, "a/a", "b/b")
				s.Serve("b/b", 2, "10.0.0.3")
				writes, reads := s.cost(func() {
					s.Serve("a/a", 1, "10.0.0.1")
					s.Serve("a/a", 2, "10.0.0.1", "10.0.0.2")
					s.Run(time.Minute)
				})
				if writes > 200 || reads > 70 {
					s.Errorf("%d writes and %d reads in a minute", writes, reads)
				}
				if warned := s.Health().GetReason() != ""; s.Health().GetOk() && !warned {
					s.Errorf("ready: %v", s.Health())
				}
				s.Refuse = nil
				if name == "unsupported" { // that is of this VPP: another one may know the message
					s.Crash()
					s.Connected()
					s.Reconnect(3)
				}
				s.Run(time.Minute)
				s.expect("afterwards", "10.0.0.1", "10.0.0.2", "10.0.0.3")
				if !s.Health().GetOk() {
					s.Errorf("afterwards %v", s.Health())
				}
			})
		})
	}
}

// TestDriverDoesNotHammerVPPForALeftover: VPP holds an object that no service wants, and says that
// it is not there when it is to be removed.
func TestDriverDoesNotHammerVPPForALeftover(t *testing.T) {
	for _, refusal := range []error{link.ErrStale, &link.RetvalError{Message: "m", Retval: -6}} {
		each(t, func(s *scene) {
			s.Begin(1, "a/a")
			s.Serve("a/a", 1, "10.0.0.3")
			s.Refuse = func(api.Message) error { return refusal }
			writes, reads := s.cost(func() {
				s.Serve("a/a", 2, "10.0.0.1")
				s.Run(time.Minute)
			})
			if writes > 200 || reads > 70 {
				s.Errorf("%v: %d writes and %d reads in a minute", refusal, writes, reads)
			}
			s.Refuse = nil
			s.Tell(&messages.Verify{Reason: "drift check", Routine: true})
			s.Run(time.Minute)
			s.expect("afterwards", "10.0.0.1")
		})
	}
}

// TestDriverIsNotReadyBeforeSettingsAre: a node without services still has to be set up.
func TestDriverIsNotReadyBeforeSettingsAre(t *testing.T) {
	each(t, func(s *scene) {
		if !s.settings {
			return
		}
		s.Crash()
		s.Refuse = func(req api.Message) error { return &link.RetvalError{Message: req.GetMessageName(), Retval: -1} }
		s.Connected()
		s.Reconnect(2)
		s.Run(2 * time.Second)
		s.Begin(1)
		if h := s.Health(); h.GetOk() {
			s.Errorf("ready although VPP refuses its settings: %v", h)
		}
		writes, reads := s.cost(func() { s.Run(time.Minute) })
		if writes > 120 || reads > 20 { // CNAT has 18 messages for it
			s.Errorf("%d writes and %d reads in a minute", writes, reads)
		}
		s.Refuse = nil
		s.Run(40 * time.Second)
		if !s.Health().GetOk() {
			s.Errorf("afterwards %v", s.Health())
		}
	})
}

// TestDriverReadsAgainWhatItCouldNotRead: with back-off, and not ready meanwhile.
func TestDriverReadsAgainWhatItCouldNotRead(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		for _, name := range []string{"cnat", "nat44", "fib", "ip"} {
			s.Unreadable = name
			before := s.reads
			s.Tell(&messages.Verify{Reason: "test"})
			if s.Health().GetOk() && s.Verified().GetDifferences() == 0 && s.reads == before+1 {
				continue // it does not read these messages
			}
			_, reads := s.cost(func() { s.Run(5 * time.Minute) })
			if reads < 8 || reads > 20 || s.Health().GetOk() || !strings.Contains(s.Health().GetReason(), "read") {
				s.Errorf("%s unreadable: %d reads in five minutes, %v", name, reads, s.Health())
			}
			s.outside(s.remove, "10.0.0.1")
			s.Unreadable = ""
			s.Run(40 * time.Second)
			s.expect(name+" readable", "10.0.0.1")
			if !s.Health().GetOk() {
				s.Errorf("%s readable: %v", name, s.Health())
			}
		}
	})
}

// TestDriverRecordsWhatItDoes: an operation has the generation of the service that it follows from;
// of a failed batch both lists are there. A probe in vain is no news.
func TestDriverRecordsWhatItDoes(t *testing.T) {
	each(t, func(s *scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 5, "10.0.0.1")
		s.Forget()
		s.refuse("10.0.0.3")
		s.Serve("a/a", 7, "10.0.0.1", "10.0.0.2", "10.0.0.3")
		s.Run(10 * time.Millisecond)
		renders := func() (found []*messages.Event) {
			for _, e := range s.Events() {
				if e.GetKind() == "render" {
					found = append(found, e)
				}
			}
			return found
		}
		if found := renders(); len(found) != 1 || found[0].GetCause() != 7 || found[0].GetObject() != "a/a" ||
			len(found[0].GetOperations()) != 2 || len(found[0].GetExecuted()) != 1 || found[0].GetError() == "" {
			s.Errorf("recorded %v", found)
		}
		s.Run(time.Minute)
		s.Forget()
		s.Run(20 * time.Second)
		if found := renders(); len(found) > 1 {
			s.Errorf("recorded %d probes in vain: %v", len(found), found)
		}
		s.Refuse = nil
		s.Run(s.Config.Backoff)
		if found := renders(); len(found) == 0 || found[len(found)-1].GetError() != "" || len(found[len(found)-1].GetOperations()) != 1 {
			s.Errorf("recorded %v", found)
		}
	})
}

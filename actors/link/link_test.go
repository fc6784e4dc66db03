package link

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

func TestLinkTellsTheDataplane(t *testing.T) {
	perform(t, PathLink, nil, func(s *stage) {
		s.tell(&messages.Resync{Sibling: "nat44"}) // as a sibling does that came up when the link had spoken already
		up := latest[*messages.LinkState](s, PathRenderer("nat44"))
		for _, step := range []struct {
			name string
			what func()
			up   bool
		}{
			{"connected", func() {}, true},
			{"disconnected", s.wire.disconnect, false},
			{"connected again", s.wire.connect, true},
			{"VPP died", s.wire.crash, false},
			{"another VPP", s.wire.connect, true},
		} {
			step.what()
			s.run(time.Millisecond)
			for _, path := range []string{PathRenderer("nat44"), PathInterfaces, PathIntrospect} {
				if got := latest[*messages.LinkState](s, path); got.GetUp() != step.up {
					t.Errorf("%s: %s was told %v", step.name, path, got)
				}
			}
			h := latest[*messages.Health](s, PathHealer)
			if h.GetOk() != step.up || !step.up && h.GetReason() != "connection lost" {
				t.Errorf("%s: health %v", step.name, h)
			}
		}
		if now := latest[*messages.LinkState](s, PathRenderer("nat44")); now.GetSession() <= up.GetSession() || now.GetBoot() == up.GetBoot() {
			t.Errorf("another VPP: %v, before: %v", now, up)
		}
	})
}

func TestLinkRepeatsItself(t *testing.T) {
	perform(t, PathLink, nil, func(s *stage) {
		for name, step := range map[string]func(){
			"when asked":   func() { s.tell(&messages.Resync{Sibling: "nat44"}) },
			"now and then": func() { s.run(healthRepeat + time.Second) },
		} {
			s.forget()
			step()
			if !latest[*messages.LinkState](s, PathRenderer("nat44")).GetUp() || len(s.heard[PathJournal]) != 0 {
				t.Errorf("%s: not repeated, or written down again", name)
			}
		}
	})
}

// TestLinkNumbersSessionsForEver: a restarted link runs the connection anew, which counts from 1 again; who remembers session 1 must not take
// the new one for it.
func TestLinkNumbersSessionsForEver(t *testing.T) {
	perform(t, PathLink, nil, func(s *stage) {
		seen := map[uint64]bool{}
		for range 3 {
			session := latest[*messages.LinkState](s, PathRenderer("nat44")).GetSession()
			if seen[session] {
				t.Errorf("session %x for the second time", session)
			}
			seen[session] = true
			s.kill()
			if got := all[*messages.LinkState](s, PathRenderer("nat44")); got[len(got)-1].GetSession() < session {
				t.Errorf("session %x after %x", got[len(got)-1].GetSession(), session)
			}
		}
	})
}

// failingLink gives up when it is told to.
type failingLink struct {
	link.Caller
	end  chan error
	busy bool
	runs int
}

func (f *failingLink) Run(ctx context.Context, _ func(*messages.LinkState)) error {
	if f.busy {
		return link.ErrRunning
	}
	f.busy = true
	defer func() { f.busy = false }()
	f.runs++
	select {
	case <-ctx.Done():
		time.Sleep(400 * time.Millisecond) // closes its sockets
		return nil
	case err := <-f.end:
		return err
	}
}

func (*failingLink) Do(context.Context, []api.Message) ([]link.Result, error) {
	return nil, link.ErrDown
}

func TestLinkActorFailsWithItsConnectionOnly(t *testing.T) {
	perform(t, PathLink, nil, func(s *stage) {
		f := &failingLink{end: make(chan error)}
		s.deps.Link = f
		s.kill()
		s.faults = nil
		f.end <- errors.New("no socket")
		s.run(time.Second)
		if len(s.faults) != 1 || !strings.Contains(s.faults[0].GetReason(), "no socket") {
			t.Errorf("faults %v", s.faults)
		}
		s.faults = nil
		for range 3 { // the old run needs a while to end: the new incarnation waits and does not fail
			s.kill()
		}
		s.run(time.Second)
		if len(s.faults) != 3 || f.runs < 3 {
			t.Errorf("%d failures for three kills, %d runs", len(s.faults), f.runs)
		}
	})
}

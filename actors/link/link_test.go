package link

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receivers are the actors that the link tells its state.
var receivers = []string{address.Renderer("nat44"), address.Interfaces, address.Introspect}

// withLink plays with a link actor that runs a connection.
func withLink(t *testing.T, play func(s *probe.Stage, vpp *virtual.Stream)) {
	t.Helper()
	s := probe.New(t)
	vpp := s.VPP()
	start(s, vpp)
	// as a sibling does that came up after the link had reported
	s.Tell(&messages.Resync{Sibling: "nat44"})
	play(s, vpp)
}

// start starts the tree with a link actor.
func start(s *probe.Stage, connection link.Runner) {
	config := &Config{Link: connection, Runs: runtime.NewExclusive(s.Sim.Park), Receivers: receivers, Renderers: []string{"nat44"}}
	s.Start(address.Link, probe.Actors{address.Link: func() runtime.Behaviour { return New(config) }})
}

// state is what a renderer was told last.
func state(s *probe.Stage) *messages.LinkState {
	return probe.Latest[*messages.LinkState](s, address.Renderer("nat44"))
}

func TestLinkReportsTheConnection(t *testing.T) {
	withLink(t, func(s *probe.Stage, vpp *virtual.Stream) {
		first := state(s)
		for _, step := range []struct {
			name   string
			what   func()
			up     bool
			reason string
		}{
			{"connected", func() {}, true, ""},
			{"disconnected", func() { vpp.Disconnect("connection lost") }, false, "connection lost"},
			{"connected again", vpp.Connect, true, "connected again; the connection before ended: connection lost"},
			{"VPP died", func() {
				if err := vpp.Crash(); err != nil {
					t.Error(err)
				}
			}, false, "injected: VPP crashed"},
			{"another VPP", vpp.Connect, true, ""},
		} {
			step.what()
			s.Run(time.Millisecond)
			for _, path := range receivers {
				if got := probe.Latest[*messages.LinkState](s, path); got.GetUp() != step.up {
					t.Errorf("%s: %s was told %v", step.name, path, got)
				}
			}
			if now := state(s); (now.GetBack() != 0) != (step.name == "another VPP") || now.GetBack() < now.GetLost() {
				t.Errorf("%s: a restart of VPP from %d to %d", step.name, now.GetLost(), now.GetBack())
			}
			h := probe.Latest[*messages.Health](s, address.Healer)
			if h.GetOk() != step.up || h.GetReason() != step.reason {
				t.Errorf("%s: health %v, want ok %t, reason %q", step.name, h, step.up, step.reason)
			}
		}
		if now := state(s); now.GetSession() <= first.GetSession() || now.GetBoot() == first.GetBoot() {
			t.Errorf("another VPP: %v, before: %v", now, first)
		}
		if n := len(probe.All[*messages.Event](s, address.Journal)); n != 5 {
			t.Errorf("%d events, want one for each change", n)
		}
	})
}

// TestLinkSaysWhyVPPIsNotTrusted: a VPP that breaks every connection in the same way is reported,
// also while a connection lasts.
func TestLinkSaysWhyVPPIsNotTrusted(t *testing.T) {
	const why = "dump too large: nat44_lb_static_mapping_dump: more than 1048576 details"
	withLink(t, func(s *probe.Stage, vpp *virtual.Stream) {
		health := func() *messages.Health { return probe.Latest[*messages.Health](s, address.Healer) }
		for range 3 {
			s.Run(30 * time.Second) // a dump without an end
			vpp.Disconnect(why)
			s.Run(time.Second)
			if h := health(); h.GetOk() || h.GetReason() != why {
				t.Errorf("without a session: health %v", h)
			}
			vpp.Connect()
			for range 15 {
				s.Run(2 * time.Second)
				if h := health(); !h.GetOk() || !strings.HasSuffix(h.GetReason(), why) {
					t.Fatalf("in the next session: health %v", h)
				}
			}
		}
		s.Run(distrust)
		if h := health(); !h.GetOk() || h.GetReason() != "" {
			t.Errorf("in a session that lasts: health %v", h)
		}
	})
}

// TestLinkSaysWhatVPPLacks: it is a warning, for the renderers that run only, until VPP is another
// one.
func TestLinkSaysWhatVPPLacks(t *testing.T) {
	withLink(t, func(s *probe.Stage, _ *virtual.Stream) {
		lacks := func(renderer string) []*messages.VPPFeature {
			missing := []*messages.VPPMissing{{Message: "feature_is_enabled_55db09e2", Why: "this version of feature has no such message"}}
			return []*messages.VPPFeature{{Name: "IPv6 services", Renderer: renderer, Without: "they are not served", Missing: missing}, {Name: "rejects"}}
		}
		for _, step := range []struct {
			renderer, reason string
		}{
			{"nat44", "VPP 24.06-release lacks messages: they are not served (feature_is_enabled_55db09e2: this version of feature has no such message)"},
			{"cnat", ""},
		} {
			next := state(s).GetSession() + 1
			s.Tell(&messages.LinkState{Up: true, Boot: step.renderer, Version: "24.06-release", Session: next, Features: lacks(step.renderer)})
			if h := probe.Latest[*messages.Health](s, address.Healer); !h.GetOk() || h.GetReason() != step.reason {
				t.Errorf("%s: health %v, want reason %q", step.renderer, h, step.reason)
			}
		}
	})
}

func TestLinkRepeatsItsStateWhenAsked(t *testing.T) {
	withLink(t, func(s *probe.Stage, _ *virtual.Stream) {
		for name, ask := range map[string]any{"a sibling": &messages.Resync{Sibling: "nat44"}} {
			s.Forget()
			s.Tell(ask)
			for _, path := range receivers {
				if !probe.Latest[*messages.LinkState](s, path).GetUp() {
					t.Errorf("%s: %s was not told", name, path)
				}
			}
			if events := s.Heard(address.Journal); len(events) != 0 {
				t.Errorf("%s: recorded again: %v", name, events)
			}
		}
		s.Forget()
		s.Run(10 * report.Heartbeat)
		if state(s) != nil || len(probe.All[*messages.Health](s, address.Healer)) < 9 {
			t.Error("the state is repeated without a question, or the health is not")
		}
	})
}

// TestLinkNumbersConnectionsForEver: a restarted link runs the connection anew, which may count
// from 1 again. A receiver that remembers connection 1 must not confuse the two.
func TestLinkNumbersConnectionsForEver(t *testing.T) {
	withLink(t, func(s *probe.Stage, _ *virtual.Stream) {
		seen := map[uint64]bool{}
		for range 3 {
			session := state(s).GetSession()
			if seen[session] {
				t.Errorf("session %x for the second time", session)
			}
			seen[session] = true
			s.Kill()
			if got := state(s).GetSession(); got <= session {
				t.Errorf("session %x after %x", got, session)
			}
		}
	})
}

// failingLink ends when it is told to, and needs a while for it, as one that closes its sockets.
type failingLink struct {
	link.Caller
	sim        *runtime.Sim
	ends       bool
	with       error
	busy       bool
	runs, both int // both counts runs at the same time
}

func (f *failingLink) Run(ctx context.Context, _ func(*messages.LinkState)) error {
	f.runs++
	if f.busy {
		f.both++
		return link.ErrRunning
	}
	f.busy = true
	defer func() { f.busy = false }()
	f.sim.Park(func() bool { return ctx.Err() != nil || f.ends })
	if f.ends {
		f.ends = false
		return f.with
	}
	f.sim.Sleep(400*time.Millisecond, nil)
	return nil
}

func TestLinkActorFailsWithItsConnectionOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		with error
		want string
	}{
		"with an error": {errors.New("no socket"), "link failed: no socket"},
		"without one":   {nil, "link failed: it ended without an error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := probe.New(t)
			f := &failingLink{sim: s.Sim, ends: true, with: tc.with}
			start(s, f)
			s.Run(time.Second)
			if len(s.Faults) != 1 || !strings.Contains(s.Faults[0].GetReason(), tc.want) {
				t.Errorf("faults %v", s.Faults)
			}
			s.Faults = nil
			for range 3 {
				// the old run needs a while to end: the new incarnation waits and
				// does not fail
				s.Kill()
			}
			s.Run(time.Second)
			if len(s.Faults) != 3 || f.runs < 3 || f.both != 0 {
				t.Errorf("%d failures for three kills, %d runs, %d at the same time", len(s.Faults), f.runs, f.both)
			}
		})
	}
}

package external_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	layers "github.com/troupe-vpp/troupe/vpp/external"
)

// withActor plays with the actor alone; a probe stands at the place of the renderer.
func withActor(t *testing.T, from *sources, play func(s *probe.Stage)) {
	t.Helper()
	s := probe.New(t)
	config := &external.Config{Runs: runtime.NewExclusive(s.Sim.Park), Renderer: address.Renderer("nat44")}
	if from != nil {
		from.park, config.Sources = s.Sim.Park, from
	}
	s.Start(address.External, probe.Actors{address.External: func() runtime.Behaviour { return external.New(config) }})
	play(s)
}

// sent are the Wants that the renderer was sent.
func sent(s *probe.Stage) []*external.Wants {
	return probe.All[*external.Wants](s, address.Renderer("nat44"))
}

// TestWantsAreRepeated when the renderer asks.
func TestWantsAreRepeated(t *testing.T) {
	withActor(t, nil, func(s *probe.Stage) {
		s.Run(time.Minute)
		wants := sent(s)
		if len(wants) != 1 || !wants[0].Complete {
			t.Errorf("sent %d times", len(wants))
		}
		generation := wants[0].Generation
		s.Forget()
		s.Tell(&messages.Resync{Sibling: "nat44"})
		if s.Run(time.Minute); len(sent(s)) != 1 || sent(s)[0].Generation != generation {
			t.Errorf("sent %d times after a question", len(sent(s)))
		}
		s.Kill()
		if got := sent(s); got[len(got)-1].Generation <= generation {
			t.Errorf("generation %d after a restart, %d before", got[len(got)-1].Generation, generation)
		}
	})
}

// TestWantsAreCompleteWithEveryFamily: before every family has been read, nothing of an earlier run
// may go.
func TestWantsAreCompleteWithEveryFamily(t *testing.T) {
	from := newSources("file", "etcd:")
	from.saved["file"] = document(mapped("203.0.113.1:80/TCP", "10.1.1.2:80"))
	withActor(t, from, func(s *probe.Stage) {
		last := func() *external.Wants { return probe.Latest[*external.Wants](s, address.Renderer("nat44")) }
		if w := last(); w == nil || w.Complete || len(w.Merged.Entries) != 1 {
			t.Errorf("at the start %+v, want what was saved", w)
		}
		for _, step := range []struct {
			name     string
			says     external.Update
			complete bool
		}{
			{"one of two", update("etcd:"), false},
			{"the other one cannot be read", external.Update{Family: "file", Err: errors.New("permission denied")}, false},
			// the last good one stays
			{"its document is not understood", external.Update{Family: "file", Unreadable: map[string]error{"file": errors.New("not YAML")}}, true},
			{"both", update("file"), true},
		} {
			from.say(step.says)
			s.Run(time.Second)
			if got := last().Complete; got != step.complete {
				t.Errorf("%s: complete is %t", step.name, got)
			}
		}
		if n := len(last().Merged.Entries); n != 0 || from.saved["file"] != nil {
			t.Errorf("%d entries are left, saved %s", n, from.saved["file"])
		}
	})
}

// TestApplyIsRefusedAtOnce where it cannot be carried out, with a result that says why.
func TestApplyIsRefusedAtOnce(t *testing.T) {
	withActor(t, nil, func(s *probe.Stage) {
		for name, m := range map[string]*external.Apply{
			"the layer of dynamic SNAT": {Source: layers.SourceSNAT},
			"no document":               {Source: "ops", Document: []byte("{")},
		} {
			if r := s.Ask(m).(*command.Result); r.Err == nil || r.Cause != 0 {
				t.Errorf("%s: %+v", name, r)
			}
		}
	})
}

func TestRetiredRemembersEverything(t *testing.T) {
	a, b := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
	first := external.Retired{}.With([]netip.Addr{b}, map[string]layers.Role{"x": layers.RoleOutput, "y": layers.RoleNAT})
	all := first.With([]netip.Addr{a, b}, map[string]layers.Role{"x": layers.RoleNAT, "y": layers.RoleNone})
	want := external.Retired{
		Addresses: []netip.Addr{a, b}, Roles: map[string]layers.Role{"x": layers.RoleOutput, "y": layers.RoleNone},
	}
	if diff := cmp.Diff(want, all, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !slices.Equal(first.Addresses, []netip.Addr{b}) || first.Roles["y"] != layers.RoleNAT {
		t.Errorf("the earlier value was changed: %+v", first)
	}
}

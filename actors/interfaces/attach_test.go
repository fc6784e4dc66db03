package interfaces

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

var errBroken = errors.New("broken")

// carryOut lets the renderer report that the roles of the present set are in VPP.
func (s *stage) carryOut() {
	s.Helper()
	s.tell(&messages.Health{Part: "nat44", Ok: true, Interfaces: s.set().GetGeneration()})
}

// lastCommand is the last record of a command.
func (s *stage) lastCommand() (last *messages.Event) {
	for _, e := range probe.All[*messages.Event](s.Stage, address.Journal) {
		if e.GetKind() == "command" {
			last = e
		}
	}
	return last
}

// TestAttachWaitsForTheRoles: the command is done when the renderer has carried out the set that
// follows from it, not earlier.
func TestAttachWaitsForTheRoles(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		s.tell(nodeWith(), &messages.LocalEndpoints{Generation: 1})
		before := s.set().GetGeneration()
		s.tell(&Attach{Pod: "default/p2", Interface: "pod2"})
		set := s.set()
		if set.GetGeneration() <= before || set.GetCause() == 0 || len(named(set, "pod2").GetPods()) != 1 {
			t.Errorf("told %v", set)
		}
		s.tell(&messages.Health{Part: "nat44", Ok: true, Interfaces: before})
		if e := s.lastCommand(); strings.HasPrefix(e.GetText(), "done") {
			t.Errorf("done before VPP has the roles: %v", e)
		}
		s.carryOut()
		if e := s.lastCommand(); e.GetText() != "done: attach interface pod2" || e.GetCause() != set.GetCause() || s.store.Text() != "default/p2=pod2" {
			t.Errorf("recorded %v, saved %q", e, s.store.Text())
		}
		s.tell(&Detach{Pod: "default/p2"})
		s.carryOut()
		if e := s.lastCommand(); e.GetText() != "done: detach its interface" || s.store.Text() != "" {
			t.Errorf("recorded %v, saved %q", e, s.store.Text())
		}
	})
}

// TestAttachEndsByItsDeadline: VPP does not answer; the command is answered at its deadline, and
// its save is rolled back.
func TestAttachEndsByItsDeadline(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		s.tell(nodeWith(), &messages.LocalEndpoints{Generation: 1})
		// the probe at the renderer's place never carries anything out
		s.tell(&Attach{Pod: "default/p2", Interface: "pod2"})
		s.Run(s.config.Command / 2)
		if s.store.Text() != "default/p2=pod2" {
			t.Errorf("saved %q", s.store.Text())
		}
		s.Run(2 * s.config.Command)
		if s.store.Text() != "" {
			t.Errorf("saved %q after the deadline", s.store.Text())
		}
		if last := s.lastCommand(); !strings.Contains(last.GetError(), command.ErrTooLate.Error()) || !strings.Contains(last.GetError(), command.ErrNotReverted.Error()) {
			t.Errorf("recorded: %v", last)
		}
		if n := len(probe.All[*messages.Verify](s.Stage, address.Renderer("nat44"))); n != 1 {
			t.Errorf("%d readings of VPP ordered for what could not be rolled back, want 1", n)
		}
	})
}

// TestAttachBeforeAnythingIsKnown is refused at once, and nothing is saved.
func TestAttachBeforeAnythingIsKnown(t *testing.T) {
	perform(t, func(s *stage) {
		result := s.Ask(&Attach{Pod: "default/p2", Interface: "pod2"}).(*command.Result)
		if !errors.Is(result.Err, command.ErrNotConnected) || !errors.Is(command.Meaning(result.Err), command.ErrAway) || s.store.Text() != "" {
			t.Errorf("%v, saved %q", result.Err, s.store.Text())
		}
	})
}

// TestAttachmentsSurviveTheActor, and an unreadable store does not keep it from working.
func TestAttachmentsSurviveTheActor(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		s.tell(nodeWith(), &messages.LocalEndpoints{Generation: 1})
		s.tell(&Attach{Pod: "default/p9", Interface: "pod2"})
		s.carryOut()
		for _, broken := range []error{nil, errBroken} {
			s.store.Broken = broken
			s.Kill()
			s.connected()
			s.tell(nodeWith(), &messages.LocalEndpoints{Generation: 1})
			if !s.set().GetComplete() || len(named(s.set(), "pod2").GetPods()) != 1 {
				t.Errorf("broken store %v: told %v", broken, s.set())
			}
		}
		s.store.Broken = nil
	})
}

// TestDetachedInterfacesAreForgotten: what was taken from an interface says nothing of another one
// that gets its name.
func TestDetachedInterfacesAreForgotten(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		s.tell(nodeWith(), &messages.LocalEndpoints{Generation: 1})
		detached := func() bool { return named(s.set(), "memif0").GetDetached() }
		add := func() {
			if _, err := s.vpp.VPP.AddInterfaceSpec(simulator.InterfaceSpec{Name: "memif0"}); err != nil {
				t.Fatal(err)
			}
		}
		add()
		s.tell(&Attach{Pod: "default/p9", Interface: "memif0"}) // it is down, so this fails
		if s.Run(3 * s.config.Command); !detached() {
			t.Fatal("it is not detached")
		}
		if err := s.vpp.VPP.DeleteInterface("memif0"); err != nil {
			t.Fatal(err)
		}
		s.Run(3 * s.config.Rediscover)
		add()
		if s.Run(3 * s.config.Rediscover); named(s.set(), "memif0") == nil || detached() {
			t.Errorf("another interface of the same name: %v", named(s.set(), "memif0"))
		}
	})
}

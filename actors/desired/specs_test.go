package desired

import (
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/messages"
)

func TestRegistryGivesASpecToAServiceThatAsks(t *testing.T) {
	perform(t, address.Registry, []string{webKey}, func(s *stage) {
		s.Tell(&messages.PullSpec{Key: webKey})
		if s.spec(webKey) != nil {
			t.Error("a spec before the snapshot")
		}
		s.Tell(snapshotOf(1, testInput("web", "10.96.0.10", 1)))
		if s.spec(webKey) != nil {
			t.Error("a spec for an actor that is still being spawned")
		}
		s.Tell(&messages.PullSpec{Key: webKey})
		if got := s.spec(webKey); got.GetInput().GetService() == nil || got.GetNode().GetNode().GetName() != probe.Node {
			t.Errorf("spec %v", got)
		}
	})
}

// TestRegistryNudgesTheSpawner with each spec of a service that exists: its actor may be in
// quarantine.
func TestRegistryNudgesTheSpawner(t *testing.T) {
	perform(t, address.Registry, nil, func(s *stage) {
		s.Tell(snapshotOf(1, testInput("web", "10.96.0.10", 1)), interfacesWith("192.168.16.1/24"))
		if nudges := probe.All[*messages.Nudge](s.Stage, address.Services); len(nudges) != 0 {
			t.Errorf("nudges %v for an actor that is being spawned", nudges)
		}
		s.Tell(&messages.PullSpec{Key: webKey}, changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")))
		s.Run(10 * time.Minute)
		nudges := probe.All[*messages.Nudge](s.Stage, address.Services)
		if len(nudges) != 1 || nudges[0].GetKey() != webKey || nudges[0].GetGeneration() == 0 {
			t.Errorf("nudges %v", nudges)
		}
	})
}

// TestRegistryGivesASpecOnce to a service that exists.
func TestRegistryGivesASpecOnce(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.Tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")))
		s.Run(10 * time.Minute)
		if specs := probe.All[*messages.ServiceSpec](s.Stage, address.Service(webKey)); len(specs) != 1 {
			t.Errorf("specs %v", specs)
		}
		if n := len(probe.All[*messages.ServiceSpec](s.Stage, address.Service(dbKey))); n != 0 {
			t.Errorf("db was given %d specs", n)
		}
	})
}

// TestRegistryRestsWithoutWork: the registry has no timer but the heartbeat.
func TestRegistryRestsWithoutWork(t *testing.T) {
	withRegistry(t, func(s *stage) {
		handled := func() uint64 {
			state, _ := s.System.Actor(address.Registry)
			return state.Handled
		}
		before := handled()
		s.Run(20 * time.Second)
		if n := handled() - before; n < 9 || n > 11 {
			t.Errorf("%d messages in 20 s, want a heartbeat every 2 s", n)
		}
		s.Tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")))
		s.Run(5 * time.Second)
		before = handled()
		s.Run(20 * time.Second)
		if n := handled() - before; n < 9 || n > 11 {
			t.Errorf("%d messages in 20 s after a change", n)
		}
	})
}

// TestRegistryHasServicesPublishAgain: a restarted introspection knows no service.
func TestRegistryHasServicesPublishAgain(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.Tell(&messages.Resync{Sibling: "introspect"})
		for _, key := range []string{webKey, dbKey} {
			if probe.Latest[*messages.Resync](s.Stage, address.Service(key)) == nil {
				t.Errorf("%s was not asked", key)
			}
		}
		if all := probe.Latest[*messages.Ensure](s.Stage, address.Introspect); !all.GetComplete() || len(all.GetKeys()) != 2 {
			t.Errorf("told %v", all)
		}
	})
}

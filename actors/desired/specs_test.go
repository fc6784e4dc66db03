package desired

import (
	"fmt"
	"slices"
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

// TestRegistryRetriesASpecUntilItIsTaken: with back-off, and the spawner is told in case the actor
// is in quarantine.
func TestRegistryRetriesASpecUntilItIsTaken(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.Tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")))
		s.Run(20 * time.Second)
		if n := len(probe.All[*messages.ServiceSpec](s.Stage, address.Service(webKey))); n < 4 || n > 6 {
			t.Errorf("given %d times in 20 s, want a delay that doubles", n)
		}
		s.Forget()
		s.Run(10 * time.Minute)
		if n := len(probe.All[*messages.ServiceSpec](s.Stage, address.Service(webKey))); n < 15 || n > 30 {
			t.Errorf("given %d times in 10 minutes, want a delay of about 29 s", n)
		}
		if n := len(probe.All[*messages.ServiceSpec](s.Stage, address.Service(dbKey))); n != 0 {
			t.Errorf("db was given %d specs", n)
		}
		s.Tell(&messages.Have{Key: webKey, Generation: s.spec(webKey).GetGeneration()})
		s.Forget()
		s.Run(10 * time.Minute)
		if n := len(probe.All[*messages.ServiceSpec](s.Stage, address.Service(webKey))); n != 0 {
			t.Errorf("given %d times after it was taken", n)
		}
	})
}

// TestRegistryRestsWithoutWork: while every spec is acknowledged the registry has no timer but the
// heartbeat and the roll call.
func TestRegistryRestsWithoutWork(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.config.RollCall = 24 * time.Hour
		handled := func() uint64 {
			state, _ := s.System.Actor(address.Registry)
			return state.Handled
		}
		s.Run(time.Minute) // the roll call that is under way
		before := handled()
		s.Run(20 * time.Second)
		if n := handled() - before; n < 9 || n > 11 {
			t.Errorf("%d messages in 20 s, want a heartbeat every 2 s", n)
		}
		s.Tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")))
		s.Run(5 * time.Second)
		s.acknowledge()
		s.Run(time.Second) // the last retry
		before = handled()
		s.Run(20 * time.Second)
		if n := handled() - before; n < 9 || n > 11 {
			t.Errorf("%d messages in 20 s after the retries", n)
		}
	})
}

func TestRegistryNudgesTheSpawner(t *testing.T) {
	perform(t, address.Registry, nil, func(s *stage) {
		s.Tell(snapshotOf(1, testInput("web", "10.96.0.10", 1)))
		s.Run(20 * time.Second)
		nudges := probe.All[*messages.Nudge](s.Stage, address.Services)
		if len(nudges) < 3 || len(nudges) > 5 || nudges[0].GetKey() != webKey || nudges[0].GetGeneration() == 0 {
			t.Errorf("nudges %v", nudges)
		}
	})
}

// TestRegistryRetriesManyWithBackOff: however many services do not answer, each of them is retried
// with a delay that grows.
func TestRegistryRetriesManyWithBackOff(t *testing.T) {
	perform(t, address.Registry, nil, func(s *stage) {
		const many = 1000
		var inputs []*messages.ServiceInput
		for n := range many {
			inputs = append(inputs, testInput(fmt.Sprintf("svc%03d", n), fmt.Sprintf("10.96.%d.%d", n/250, n%250), 1))
		}
		s.Tell(snapshotOf(2, inputs...), interfacesWith("192.168.16.1/24"))
		s.Run(time.Minute)
		s.Forget()
		s.Run(time.Minute)
		nudges := map[string]int{}
		total := 0
		for _, m := range probe.All[*messages.Nudge](s.Stage, address.Services) {
			nudges[m.GetKey()]++
			total++
		}
		if len(nudges) != many || total > 3*many {
			t.Errorf("%d services were retried, %d times in a minute, want all of them two or three times", len(nudges), total)
		}
	})
}

func TestRegistryTakesAcknowledgementsOfTheSameGenerationOnly(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.Tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")))
		before := s.spec(webKey).GetGeneration()
		s.Tell(changedTo(testInput("web", "10.96.0.10", 11, "10.1.1.4")))
		s.Tell(&messages.Have{Key: webKey, Generation: before})
		s.Forget()
		s.Run(2 * time.Second)
		if s.spec(webKey).GetGeneration() <= before {
			t.Error("the acknowledgement of an older spec ended the retries of the latest")
		}
	})
}

// TestRegistryKnowsActorsByTheirAcknowledgement: an actor that acknowledges exists, even if its
// question was never seen.
func TestRegistryKnowsActorsByTheirAcknowledgement(t *testing.T) {
	perform(t, address.Registry, []string{webKey}, func(s *stage) {
		s.Tell(snapshotOf(2, testInput("web", "10.96.0.10", 1)), interfacesWith("192.168.16.1/24"), &messages.Have{Key: webKey, Generation: 1})
		s.Tell(changedTo(testInput("web", "10.96.0.10", 3, "10.1.1.2")))
		if !slices.Equal(s.endpointsOf(webKey), []string{"10.1.1.2"}) {
			t.Errorf("spec %v", s.spec(webKey))
		}
	})
}

// everyReceiver are the actors of a roll call here, except services and renderers.
var everyReceiver = []string{address.Watch, address.Link, address.Interfaces, address.Nodes, address.External}

func TestRollCall(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.Tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")))
		s.acknowledge()
		for round := range 3 {
			s.Forget()
			s.Run(s.config.RollCall)
			for _, path := range everyReceiver {
				if n := len(probe.All[*messages.RollCall](s.Stage, path)); n != 1 {
					t.Errorf("round %d: %s got %d roll calls", round, path, n)
				}
			}
			if got := s.Heard(address.Service(webKey)); len(got) > 0 {
				t.Errorf("round %d: web got %v; the renderers repeat their acknowledgements", round, got)
			}
			for _, renderer := range probe.Renderers {
				begins := probe.All[*messages.Begin](s.Stage, address.Renderer(renderer))
				if len(begins) != 1 || !begins[0].GetRollCall() || !slices.Equal(begins[0].GetKeys(), []string{dbKey, webKey}) {
					t.Errorf("round %d: %s got %v", round, renderer, begins)
				}
			}
			if all := probe.Latest[*messages.Ensure](s.Stage, address.Introspect); !all.GetComplete() || !slices.Equal(all.GetKeys(), []string{dbKey, webKey}) {
				t.Errorf("round %d: introspection was told of %v", round, all)
			}
			if got := probe.Latest[*messages.LocalEndpoints](s.Stage, address.Interfaces); !slices.Equal(got.GetAddresses(), []string{"10.1.1.3"}) {
				t.Errorf("round %d: local endpoints %v", round, got)
			}
		}
	})
}

// TestRollCallOfABlankRegistry: it asks for what it lacks, and says nothing about services that it
// does not know.
func TestRollCallOfABlankRegistry(t *testing.T) {
	perform(t, address.Registry, nil, func(s *stage) {
		s.Forget()
		s.Run(s.config.RollCall)
		for _, path := range everyReceiver {
			if n := len(probe.All[*messages.RollCall](s.Stage, path)); n != 1 {
				t.Errorf("%s got %d roll calls", path, n)
			}
		}
		for _, path := range []string{address.Services, address.Introspect, address.Renderer("nat44")} {
			if got := s.Heard(path); len(got) > 0 {
				t.Errorf("%s was told %v", path, got)
			}
		}
	})
}

// TestRollCallEnsuresServices: the spawner gets the complete list.
func TestRollCallEnsuresServices(t *testing.T) {
	perform(t, address.Registry, nil, func(s *stage) {
		s.Tell(snapshotOf(2, testInput("web", "10.96.0.10", 1), testInput("db", "10.96.0.11", 2)))
		s.Forget()
		s.Run(s.config.RollCall)
		if all := probe.Latest[*messages.Ensure](s.Stage, address.Services); !all.GetComplete() || !slices.Equal(all.GetKeys(), []string{dbKey, webKey}) {
			t.Errorf("told %v", all)
		}
	})
}

// TestRegistryHasServicesPublishAgain: a restarted introspection knows no service.
func TestRegistryHasServicesPublishAgain(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.Tell(&messages.Resync{Sibling: "introspect"})
		for _, key := range []string{webKey, dbKey} {
			if probe.Latest[*messages.RollCall](s.Stage, address.Service(key)) == nil {
				t.Errorf("%s was not asked", key)
			}
		}
		if all := probe.Latest[*messages.Ensure](s.Stage, address.Introspect); !all.GetComplete() || len(all.GetKeys()) != 2 {
			t.Errorf("told %v", all)
		}
	})
}

package actors

import (
	"fmt"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// TestRegistryRepeatsLittleToMany: however many do not answer, few of them are bothered at a time, in turn, and all with a growing patience.
func TestRegistryRepeatsLittleToMany(t *testing.T) {
	perform(t, PathRegistry, nil, func(s *stage) {
		const many = 1000
		var inputs []*messages.ServiceInput
		for n := range many {
			inputs = append(inputs, testInput(fmt.Sprintf("svc%03d", n), fmt.Sprintf("10.96.%d.%d", n/250, n%250), 1))
		}
		s.tell(snapshotOf(2, inputs...), lookedAt("192.168.16.1/24"))
		s.run(64 * s.deps.Timing.Retry)
		s.forget()
		const seconds = 60
		s.run(seconds * s.deps.Timing.Retry)
		nudges := map[string]int{}
		for _, m := range all[*messages.Nudge](s, PathServices) {
			nudges[m.GetKey()]++
		}
		total := 0
		for _, n := range nudges {
			total += n
		}
		if most := seconds*remindAtOnce*5/2 + 3*many; len(nudges) != many || total > most {
			t.Errorf("%d services were bothered, %d times in a minute, want all of them and at most %d", len(nudges), total, most)
		}
	})
}

// TestRegistryKnowsWhoseQuestionWasLost: who acknowledges exists, and is told of a new epoch like anybody else.
func TestRegistryKnowsWhoseQuestionWasLost(t *testing.T) {
	perform(t, PathRegistry, []string{"default/web"}, func(s *stage) {
		s.tell(snapshotOf(2, testInput("web", "10.96.0.10", 1)), lookedAt("192.168.16.1/24"))
		s.run(s.deps.Timing.Retry) // PullSpec was lost
		s.tell(&messages.Have{Key: "default/web", Generation: s.spec("default/web").GetGeneration()})
		s.tell(&messages.RenderUp{Renderer: "nat44", Epoch: 7})
		if latest[*messages.Replay](s, PathService("default/web")).GetEpoch() != 7 {
			t.Error("it is not told of the epoch")
		}
	})
}

// TestRegistryTellsWhatItHasGivenOut: the sum is that of the generations, whoever comes and goes.
func TestRegistryTellsWhatItHasGivenOut(t *testing.T) {
	withRegistry(t, func(s *stage) {
		check := func(what string) {
			t.Helper()
			s.forget()
			s.run(s.deps.Timing.Digest)
			sum := latest[*messages.Digest](s, PathIntrospect)
			s.tell(&messages.Pull{})
			all, m := latest[*messages.Ensure](s, PathIntrospect), newSuspects()
			m.take(all)
			if sum == nil || difference(sum, m.digest()) != 0 || !all.GetComplete() {
				t.Errorf("%s: told %v, which are not %v", what, sum, all)
			}
		}
		check("at first")
		s.tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")), changedTo(testInput("new", "10.96.0.12", 11)))
		check("a change")
		s.tell(changedTo(&messages.ServiceInput{Key: "default/web", Generation: 12}))
		check("one is going")
		s.tell(&messages.Have{Key: "default/web", Generation: s.specGeneration("default/web")})
		s.tell(&messages.Retired{Key: "default/web", Generation: s.specGeneration("default/web")})
		check("it has gone")
	})
}

// specGeneration is the generation that the registry has given to a service.
func (s *stage) specGeneration(key string) uint64 {
	s.tell(&messages.PullSpec{Key: key})
	return s.spec(key).GetGeneration()
}

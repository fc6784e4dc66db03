package desired

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

// snapshotOf is a complete list of the first run of the source.
func snapshotOf(generation uint64, services ...*messages.ServiceInput) *messages.Snapshot {
	return &messages.Snapshot{Services: services, Node: testNodeInput(1), Complete: true, Generation: generation, Run: 1}
}

// changedTo is a change of the first run of the source.
func changedTo(in *messages.ServiceInput) *messages.ServiceChanged {
	return &messages.ServiceChanged{Input: in, Run: 1}
}

// lookedAt is the interface set of a VPP whose uplink has an address.
func lookedAt(address string) *messages.InterfaceSet {
	return &messages.InterfaceSet{Generation: 1, NodeAddresses: []string{address}}
}

// withRegistry plays a registry that knows two services, "default/web" and "default/db", whose actors have asked.
func withRegistry(t *testing.T, play func(s *stage)) {
	t.Helper()
	perform(t, PathRegistry, []string{"default/web", "default/db"}, func(s *stage) {
		s.tell(snapshotOf(9, testInput("db", "10.96.0.11", 2), testInput("web", "10.96.0.10", 1, "10.1.1.2")), lookedAt("192.168.16.1/24"))
		s.tell(&messages.PullSpec{Key: "default/web"}, &messages.PullSpec{Key: "default/db"})
		for _, key := range []string{"default/web", "default/db"} {
			s.tell(&messages.Have{Key: key, Generation: s.spec(key).GetGeneration()})
		}
		s.forget()
		play(s)
	})
}

// spec is the last spec that a service was given.
func (s *stage) spec(key string) *messages.ServiceSpec {
	return latest[*messages.ServiceSpec](s, PathService(key))
}

func TestRegistryAsksEverybodyUntilItKnows(t *testing.T) {
	perform(t, PathRegistry, nil, func(s *stage) {
		s.run(5 * time.Second)
		if got := len(all[*messages.Pull](s, PathWatch)); got < 4 { // the first one comes before there is a watch
			t.Errorf("%d Pulls in 5 s, want one a second", got)
		}
		if got := len(all[*messages.Resync](s, PathInterfaces)); got < 5 {
			t.Errorf("interfaces were asked %d times, want once a second", got)
		}
		if got := latest[*messages.Resync](s, PathRenderer("nat44")).GetSibling(); got != "registry" {
			t.Errorf("the renderer was asked by %q", got)
		}
		s.tell(snapshotOf(1), lookedAt("192.168.16.1/24"))
		s.forget()
		s.run(5 * time.Second)
		if n := len(all[*messages.Pull](s, PathWatch)) + len(all[*messages.Resync](s, PathInterfaces)); n != 0 {
			t.Errorf("asked %d times although it knows", n)
		}
		if h := latest[*messages.Health](s, PathHealer); !h.GetOk() {
			t.Errorf("not healthy: %v", h)
		}
	})
}

func TestRegistryGivesASpecToWhoAsks(t *testing.T) {
	perform(t, PathRegistry, []string{"default/web"}, func(s *stage) {
		s.tell(&messages.PullSpec{Key: "default/web"})
		if s.spec("default/web") != nil {
			t.Error("a spec before the snapshot")
		}
		s.tell(snapshotOf(1, testInput("web", "10.96.0.10", 1)))
		if s.spec("default/web") != nil {
			t.Error("a spec for an actor that is still being spawned")
		}
		s.tell(&messages.PullSpec{Key: "default/web"})
		if got := s.spec("default/web"); got.GetInput().GetService() == nil || got.GetNode().GetNode().GetName() != testNode {
			t.Errorf("spec %v", got)
		}
	})
}

func TestRegistryRepeatsASpecUntilItIsTaken(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")))
		s.run(time.Minute)
		specs := all[*messages.ServiceSpec](s, PathService("default/web"))
		if n := len(specs); n < 130 || n > 160 {
			t.Errorf("given %d times in a minute, want with every digest", n)
		}
		if nudges := all[*messages.Nudge](s, PathServices); len(nudges) != 0 { // the group of extras gets none
			t.Errorf("%d nudges", len(nudges))
		}
		s.tell(&messages.Have{Key: "default/web", Generation: s.spec("default/web").GetGeneration()})
		s.forget()
		s.run(time.Minute)
		if n := len(all[*messages.ServiceSpec](s, PathService("default/web"))); n != 0 {
			t.Errorf("given %d times after it was taken", n)
		}
	})
}

func TestRegistryNudgesSpawnerForWhoDoesNotAnswer(t *testing.T) {
	perform(t, PathRegistry, nil, func(s *stage) {
		s.tell(snapshotOf(1, testInput("web", "10.96.0.10", 1)))
		s.run(10 * time.Second)
		nudges := all[*messages.Nudge](s, PathServices)
		if len(nudges) < 20 || len(nudges) > 30 || nudges[0].GetKey() != "default/web" || nudges[0].GetGeneration() == 0 {
			t.Errorf("nudges %v", nudges)
		}
	})
}

func TestRegistryTakesAcknowledgementsOfTheSameGenerationOnly(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")))
		before := s.spec("default/web").GetGeneration()
		s.tell(changedTo(testInput("web", "10.96.0.10", 11, "10.1.1.4")))
		s.tell(&messages.Have{Key: "default/web", Generation: before})
		s.forget()
		s.run(2 * time.Second)
		if s.spec("default/web").GetGeneration() <= before {
			t.Error("the acknowledgement of an older spec ended the repetition of the latest")
		}
	})
}

// TestRegistryIgnoresWhatWasOvertaken: a mailbox lets the latest value of a service overtake a snapshot that was sent before it.
func TestRegistryIgnoresWhatWasOvertaken(t *testing.T) {
	old, current := testInput("web", "10.96.0.10", 5, "10.1.1.2"), testInput("web", "10.96.0.10", 12, "10.1.1.3")
	gone := &messages.ServiceInput{Key: "default/web", Generation: 12}
	fresh := testInput("young", "10.96.0.12", 12)
	addresses := func(s *stage, key string) []string {
		var found []string
		for _, slice := range s.spec(key).GetInput().GetSlices() {
			for _, e := range slice.GetEndpoints() {
				found = append(found, e.GetAddress())
			}
		}
		return found
	}
	for name, tc := range map[string]struct {
		msgs  []any
		check func(s *stage) bool
	}{
		"by a change":  {[]any{changedTo(current), snapshotOf(9, old)}, func(s *stage) bool { return slices.Equal(addresses(s, "default/web"), []string{"10.1.1.3"}) }},
		"by a removal": {[]any{changedTo(gone), snapshotOf(9, old)}, func(s *stage) bool { return s.spec("default/web").GetInput().GetService() == nil }},
		"by a new service": {[]any{changedTo(fresh), snapshotOf(9, old)}, func(s *stage) bool {
			s.forget()
			s.tell(&messages.PullSpec{Key: "default/young"})
			return s.spec("default/young").GetInput().GetService() != nil
		}},
		"a change by a change":         {[]any{changedTo(current), changedTo(old)}, func(s *stage) bool { return slices.Equal(addresses(s, "default/web"), []string{"10.1.1.3"}) }},
		"an earlier run by a later":    {[]any{&messages.ServiceChanged{Input: old, Run: 2}, changedTo(current)}, func(s *stage) bool { return slices.Equal(addresses(s, "default/web"), []string{"10.1.1.2"}) }},
		"a snapshot of an earlier run": {[]any{&messages.ServiceChanged{Input: old, Run: 2}, snapshotOf(20, current)}, func(s *stage) bool { return slices.Equal(addresses(s, "default/web"), []string{"10.1.1.2"}) }},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, PathRegistry, []string{"default/web", "default/young"}, func(s *stage) {
				s.tell(snapshotOf(1, testInput("web", "10.96.0.10", 1)), &messages.PullSpec{Key: "default/web"})
				for _, msg := range tc.msgs { // one by one: waiting together, one would replace the other
					s.tell(msg)
				}
				if !tc.check(s) {
					t.Errorf("spec of web: %v, of young: %v", s.spec("default/web"), s.spec("default/young"))
				}
			})
		})
	}
}

// TestRegistryBeginsOnlyWithEverybody: a list without a service that exists would cost it its rows.
func TestRegistryBeginsOnlyWithEverybody(t *testing.T) {
	up := &messages.RenderUp{Renderer: "nat44", Epoch: 1}
	web := testInput("web", "10.96.0.10", 1)
	for name, order := range map[string][]any{
		"renderer first":   {up, lookedAt("192.168.16.1/24"), snapshotOf(1, web)},
		"interfaces last":  {up, snapshotOf(1, web), lookedAt("192.168.16.1/24")},
		"renderer last":    {lookedAt("192.168.16.1/24"), snapshotOf(1, web), up},
		"node by itself":   {up, lookedAt("192.168.16.1/24"), &messages.NodeChanged{Input: testNodeInput(1), Run: 1}, snapshotOf(1, web)},
		"change comes too": {up, lookedAt("192.168.16.1/24"), changedTo(web), &messages.NodeChanged{Input: testNodeInput(1), Run: 1}, snapshotOf(1, web)},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, PathRegistry, nil, func(s *stage) {
				for i, msg := range order {
					s.tell(msg)
					begins := all[*messages.Begin](s, PathRenderer("nat44"))
					if i < len(order)-1 && len(begins) > 0 {
						t.Fatalf("begun after %d of %d messages: %v", i+1, len(order), begins)
					}
					for _, b := range begins {
						if diff := cmp.Diff([]string{"default/web"}, b.GetKeys()); diff != "" {
							t.Errorf("begun without everybody:\n%s", diff)
						}
					}
				}
				if b := latest[*messages.Begin](s, PathRenderer("nat44")); b.GetEpoch() != 1 || b.GetGeneration() == 0 || b.GetNode() == nil {
					t.Errorf("begin %v", b)
				}
			})
		})
	}
}

func TestRegistryHasEverybodySpeakForANewEpochOnly(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.tell(&messages.RenderUp{Renderer: "nat44", Epoch: 3})
		begun := latest[*messages.Begin](s, PathRenderer("nat44"))
		if got := latest[*messages.Replay](s, PathService("default/web")); got.GetEpoch() != 3 || begun.GetEpoch() != 3 {
			t.Fatalf("replay %v, begin %v", got, begun)
		}
		s.forget()
		s.tell(&messages.RenderUp{Renderer: "nat44", Epoch: 3, Begun: begun.GetGeneration()})
		if n := len(s.heard[PathRenderer("nat44")]) + len(s.heard[PathService("default/web")]); n != 0 {
			t.Errorf("who knows everything was told %d more things", n)
		}
		s.tell(&messages.RenderUp{Renderer: "nat44", Epoch: 3, Begun: begun.GetGeneration() - 1})
		if latest[*messages.Begin](s, PathRenderer("nat44")) == nil || latest[*messages.Replay](s, PathService("default/web")) != nil {
			t.Error("an outdated list is not renewed, or everybody has to speak for it")
		}
		s.forget()
		s.tell(&messages.RenderUp{Renderer: "nat44", Epoch: 3, Begun: begun.GetGeneration(), Services: 2})
		if n := len(s.heard[PathRenderer("nat44")]); n != 0 {
			t.Errorf("who has as many services as there are was told %d more things", n)
		}
		s.tell(&messages.RenderUp{Renderer: "nat44", Epoch: 3, Begun: begun.GetGeneration(), Services: 3})
		if got := latest[*messages.Begin](s, PathRenderer("nat44")).GetKeys(); len(got) != 2 {
			t.Errorf("who has one that is gone gets the list %v", got)
		}
	})
}

func TestRegistryRenewsTheListWhenTheNodeChanges(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.tell(&messages.RenderUp{Renderer: "nat44", Epoch: 3, Begun: 1})
		s.forget()
		s.tell(lookedAt("192.168.16.77/24"))
		if got := latest[*messages.Begin](s, PathRenderer("nat44")).GetNode().GetAddresses(); !slices.Contains(got, "192.168.16.77") {
			t.Errorf("the renderer knows the addresses %v", got)
		}
		if got := s.spec("default/web").GetNode().GetAddresses(); !slices.Contains(got, "192.168.16.77") {
			t.Errorf("the services know the addresses %v", got)
		}
		s.forget()
		s.tell(lookedAt("192.168.16.77/24"))
		if len(s.heard[PathService("default/web")]) != 0 {
			t.Error("an unchanged node is told again")
		}
	})
}

func TestRegistryAsksTheSilentAgain(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.tell(&messages.RenderUp{Renderer: "nat44", Epoch: 3})
		s.forget()
		s.tell(&messages.Missing{Renderer: "nat44", Epoch: 3, Keys: []string{"default/web"}})
		if latest[*messages.Replay](s, PathService("default/web")) == nil || latest[*messages.Replay](s, PathService("default/db")) != nil {
			t.Error("the wrong ones were asked")
		}
		s.tell(&messages.Missing{Renderer: "nat44", Epoch: 3, Keys: []string{"default/gone"}})
		if got := latest[*messages.Begin](s, PathRenderer("nat44")); slices.Contains(got.GetKeys(), "default/gone") || got == nil {
			t.Errorf("who waits for a service that is gone gets %v", got)
		}
		s.forget()
		s.tell(&messages.Missing{Renderer: "nat44", Epoch: 2, Keys: []string{"default/web"}})
		if len(s.heard[PathService("default/web")]) != 0 {
			t.Error("asked for an epoch that is over")
		}
	})
}

func TestRegistryReleasesOnlyTheRetired(t *testing.T) {
	web := func(s *stage) uint64 { return s.spec("default/web").GetGeneration() }
	perform(t, PathRegistry, nil, func(s *stage) {
		s.tell(snapshotOf(1, testInput("web", "10.96.0.10", 1)))
		s.tell(&messages.Retired{Key: "default/web", Generation: ^uint64(0)})
		if latest[*messages.Release](s, PathServices) != nil {
			t.Error("released although it exists")
		}
		s.tell(changedTo(&messages.ServiceInput{Key: "default/web", Generation: 2}))
		s.tell(&messages.Retired{Key: "default/web", Generation: 1})
		if latest[*messages.Release](s, PathServices) != nil {
			t.Error("released for what it said of an earlier life")
		}
		s.tell(&messages.Retired{Key: "default/web", Generation: ^uint64(0)})
		if got := latest[*messages.Release](s, PathServices); got.GetKey() != "default/web" {
			t.Errorf("released %v", got)
		}
		s.forget()
		s.tell(&messages.Retired{Key: "default/web", Generation: 1}, &messages.PullSpec{Key: "default/other"})
		if got := len(all[*messages.Release](s, PathServices)); got != 2 || web(s) != 0 {
			t.Errorf("%d releases of actors that nobody needs, want 2", got)
		}
	})
}

func TestRegistryPullsAfterTwoDifferences(t *testing.T) {
	for name, tc := range map[string]struct {
		digests []*messages.Digest
		pulls   int
	}{
		"never when they agree":   {[]*messages.Digest{{Services: 2}, nil, nil, nil}, 0},
		"not after one":           {[]*messages.Digest{{Services: 7}, nil, {Services: 7}, nil}, 0},
		"after two":               {[]*messages.Digest{{Services: 7}, {Services: 7}}, 1},
		"a node counts, too":      {[]*messages.Digest{{NodeGeneration: 5}, {NodeGeneration: 5}}, 1},
		"and goes on as needed":   {[]*messages.Digest{{Hash: 1}, {Hash: 1}, {Hash: 1}, {Hash: 1}}, 2},
		"a wrong hash is enough":  {[]*messages.Digest{{Services: 2, Hash: 1}, {Services: 2, Hash: 1}}, 1},
		"the empty list is a lie": {[]*messages.Digest{{}, {}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			withRegistry(t, func(s *stage) {
				right := newCensus()
				right.hear("default/web", mark(1, 1), true)
				right.hear("default/db", mark(1, 2), true)
				for _, d := range tc.digests {
					if d == nil {
						d = right.digest(mark(1, 1))
					}
					s.tell(d)
				}
				if got := len(all[*messages.Pull](s, PathWatch)); got != tc.pulls {
					t.Errorf("%d Pulls, want %d", got, tc.pulls)
				}
			})
		})
	}
}

func TestRestartedRegistryGivesHigherGenerationsAndTheSameNode(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.tell(&messages.PullSpec{Key: "default/web"})
		before := s.spec("default/web")
		s.forget()
		s.kill()
		s.run(2 * time.Second)
		answer := snapshotOf(9, testInput("web", "10.96.0.10", 1, "10.1.1.2"))
		answer.Pulled = latest[*messages.Pull](s, PathWatch).GetIncarnation()
		s.tell(answer)
		if s.spec("default/web") != nil {
			t.Error("a spec without VPP's addresses, which the predecessor knew")
		}
		s.tell(lookedAt("192.168.16.1/24"))
		after := s.spec("default/web")
		if after.GetGeneration() <= before.GetGeneration() || !slices.Equal(after.GetNode().GetAddresses(), before.GetNode().GetAddresses()) {
			t.Errorf("before %v\nafter %v", before, after)
		}
		roll := latest[*messages.Ensure](s, PathIntrospect)
		if !roll.GetComplete() || !slices.Equal(roll.GetKeys(), []string{"default/web"}) {
			t.Errorf("introspection was told of %v, want that db went meanwhile", roll)
		}
		s.tell(&messages.RenderUp{Renderer: "nat44", Epoch: 1, Begun: 4})
		if got := latest[*messages.Begin](s, PathRenderer("nat44")); got.GetGeneration() <= before.GetGeneration() || len(got.GetKeys()) != 1 {
			t.Errorf("the renderer was told of %v", got)
		}
	})
}

// TestRestartedRegistryBelievesNothingThatWasHeldUp: it does not know what its predecessor did, so what it has not asked for itself may be old.
func TestRestartedRegistryBelievesNothingThatWasHeldUp(t *testing.T) {
	withRegistry(t, func(s *stage) {
		const first = 1
		s.forget()
		s.kill()
		s.run(2 * time.Second)
		s.tell(lookedAt("192.168.16.1/24"))
		old := testInput("web", "10.96.0.10", 1, "10.1.1.9")
		held := snapshotOf(1, old)
		held.Pulled = first
		s.tell(held, changedTo(old), &messages.NodeChanged{Input: testNodeInput(1), Run: 1})
		s.tell(&messages.PullSpec{Key: "default/web"})
		if got := s.spec("default/web"); got != nil {
			t.Errorf("told of %v", got)
		}
		asked := latest[*messages.Pull](s, PathWatch).GetIncarnation()
		if asked <= first {
			t.Fatalf("asked as incarnation %d, and before as %d", asked, first)
		}
		answer := snapshotOf(9, testInput("web", "10.96.0.10", 1, "10.1.1.2"))
		answer.Pulled = asked
		s.tell(answer)
		s.tell(held, changedTo(old)) // later they are known to be old
		if got := s.spec("default/web").GetInput().GetSlices(); len(got) != 1 || got[0].GetEndpoints()[0].GetAddress() != "10.1.1.2" {
			t.Errorf("the service has %v", got)
		}
	})
}

func TestRegistryCallsTheRollNowAndThen(t *testing.T) {
	perform(t, PathRegistry, nil, func(s *stage) {
		s.run(2 * s.deps.Timing.Audit)
		if len(all[*messages.Ensure](s, PathServices)) != 0 {
			t.Error("called before it knows who exists")
		}
		s.tell(snapshotOf(2, testInput("web", "10.96.0.10", 1), testInput("db", "10.96.0.11", 2)))
		s.forget()
		s.run(s.deps.Timing.Audit + time.Second)
		for _, path := range []string{PathServices, PathIntrospect} {
			if roll := latest[*messages.Ensure](s, path); !roll.GetComplete() || !slices.Equal(roll.GetKeys(), []string{"default/db", "default/web"}) {
				t.Errorf("%s was told of %v", path, roll)
			}
		}
	})
}

func TestRegistryTellsLocalEndpointsAgainAndAgain(t *testing.T) {
	withRegistry(t, func(s *stage) {
		steps := []struct {
			name string
			msg  any
			want []string
		}{
			{"a heartbeat", lookedAt("192.168.16.1/24"), []string{"10.1.1.2"}},
			{"a new interfaces actor", &messages.Resync{Sibling: "interfaces"}, []string{"10.1.1.2"}},
			{"a second service has it", changedTo(testInput("db", "10.96.0.11", 10, "10.1.1.2", "10.1.1.3")), []string{"10.1.1.2", "10.1.1.3"}},
			{"the first one drops it", changedTo(testInput("web", "10.96.0.10", 11, "10.1.2.9")), []string{"10.1.1.2", "10.1.1.3"}},
			{"so does the second", changedTo(testInput("db", "10.96.0.11", 12)), []string{}},
		}
		for _, step := range steps {
			s.forget()
			s.tell(step.msg)
			s.run(2 * endpointsDelay)
			got := latest[*messages.LocalEndpoints](s, PathInterfaces)
			if (got == nil) != (step.want == nil) || step.want != nil && !slices.Equal(got.GetAddresses(), step.want) {
				t.Errorf("%s: told %v, want %v", step.name, got, step.want)
			}
		}
	})
}

func TestRegistryHasServicesPublishAgainForNewIntrospection(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.tell(&messages.Resync{Sibling: "introspect"})
		for _, key := range []string{"default/web", "default/db"} {
			if latest[*messages.Resync](s, PathService(key)) == nil {
				t.Errorf("%s was not asked", key)
			}
		}
	})
}

func TestRegistryIgnoresSameContent(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.2")))
		if s.spec("default/web") != nil {
			t.Error("the same content is given again because the source counts on")
		}
	})
}

func TestRegistryWithTenThousandServicesSpeaksOnceToEach(t *testing.T) {
	const n = 10_000
	perform(t, PathRegistry, nil, func(s *stage) {
		list := snapshotOf(n)
		for i := range n {
			list.Services = append(list.Services, testInput(fmt.Sprintf("s%05d", i), fmt.Sprintf("10.97.%d.%d", i/250, i%250+1), uint64(i+1)))
		}
		s.tell(list)
		if got := len(s.heard[PathServices]); got != 1 {
			t.Errorf("the spawner got %d messages, want one list", got)
		}
		s.forget()
		for _, in := range list.Services {
			s.sys.Send(s.sys.PID(PathRegistry), &messages.PullSpec{Key: in.GetKey()})
		}
		s.run(time.Millisecond)
		if s.sys.PID(PathRegistry) == nil || len(s.heard[PathServices]) != 0 {
			t.Errorf("the spawner got %d messages more", len(s.heard[PathServices]))
		}
	})
}

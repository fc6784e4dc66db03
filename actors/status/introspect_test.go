package status

import (
	"slices"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// problems is an observer of input errors.
type problems struct {
	Observer
	counts []int
}

func (p *problems) InputErrors(n int) { p.counts = append(p.counts, n) }

// statusOf is a status with some problems.
func statusOf(key string, errors int) *messages.ServiceStatus {
	return &messages.ServiceStatus{Key: key, Generation: 1, Errors: make([]*messages.ObjectError, errors)}
}

// settledStatus is what a service says with which every renderer has finished.
func settledStatus(key string, generation uint64) *messages.ServiceStatus {
	m := &messages.ServiceStatus{Key: key, Generation: generation}
	for _, renderer := range Renderers() {
		m.Renders = append(m.Renders, &messages.RenderAck{Key: key, Generation: generation, Renderer: renderer, State: inSync})
	}
	return m
}

// keysShown are the services that introspection shows.
func (s *stage) keysShown(q *StatusQuery) []string {
	var keys []string
	for _, status := range s.ask(q).(*StatusPage).Services {
		keys = append(keys, status.GetKey())
	}
	return keys
}

func TestIntrospectionShowsWhoExists(t *testing.T) {
	perform(t, PathIntrospect, nil, func(s *stage) {
		s.tell(statusOf("b/b", 0), statusOf("a/a", 0), statusOf("c/c", 0))
		if got := s.keysShown(&StatusQuery{}); !slices.Equal(got, []string{"a/a", "b/b", "c/c"}) {
			t.Errorf("shows %q", got)
		}
		if got := s.keysShown(&StatusQuery{Key: "b/b"}); !slices.Equal(got, []string{"b/b"}) {
			t.Errorf("shows %q", got)
		}
		if got := s.keysShown(&StatusQuery{Key: "x/x"}); len(got) != 0 {
			t.Errorf("shows %q", got)
		}
		s.tell(&messages.ServiceStatus{Key: "a/a", Generation: 1, Gone: true}, &messages.Ensure{Keys: []string{"c/c"}})
		if got := s.keysShown(&StatusQuery{}); !slices.Equal(got, []string{"b/b", "c/c"}) {
			t.Errorf("after one has gone: %q", got)
		}
		s.tell(&messages.Ensure{Keys: []string{"c/c", "d/d"}, Generations: []uint64{1, 1}, Complete: true})
		if got := s.keysShown(&StatusQuery{}); !slices.Equal(got, []string{"c/c"}) {
			t.Errorf("after the roll was called: %q", got)
		}
	})
}

func TestIntrospectionCountsProblems(t *testing.T) {
	perform(t, PathIntrospect, nil, func(s *stage) {
		var p problems
		s.deps.Observer = &p
		for _, msg := range []any{
			statusOf("a/a", 2), statusOf("a/a", 2), statusOf("b/b", 3), statusOf("a/a", 1),
			&messages.NodeChanged{Input: &messages.NodeInput{Errors: make([]*messages.ObjectError, 4)}},
			&messages.ServiceStatus{Key: "b/b", Generation: 1, Gone: true, Errors: make([]*messages.ObjectError, 3)},
			&messages.Ensure{Complete: true},
		} {
			s.tell(msg)
		}
		if want := []int{2, 5, 4, 8, 5, 4}; !slices.Equal(p.counts, want) {
			t.Errorf("counted %v, want %v", p.counts, want)
		}
	})
}

func TestIntrospectionKnowsTheWorld(t *testing.T) {
	perform(t, PathIntrospect, nil, func(s *stage) {
		if page := s.ask(&WorldQuery{}).(*WorldPage); page.Link != nil || page.Node != nil || page.Verified != nil {
			t.Errorf("knows %+v of nothing", page)
		}
		s.tell(
			&messages.LinkState{Session: 1}, &messages.InterfaceSet{Generation: 2}, &messages.ClusterState{Id: 3},
			&messages.NodeChanged{Input: testNodeInput(4)}, &messages.Verified{Renderer: "nat44", Epoch: 5}, &messages.Verified{Renderer: "cnat"},
		)
		page := s.ask(&WorldQuery{}).(*WorldPage)
		if page.Link.GetSession() != 1 || page.Interfaces.GetGeneration() != 2 || page.Cluster.GetId() != 3 || page.Node.GetGeneration() != 4 {
			t.Errorf("knows %+v", page)
		}
		if len(page.Verified) != 2 || page.Verified[1].GetEpoch() != 5 {
			t.Errorf("verified %v", page.Verified)
		}
	})
}

func TestRestartedIntrospectionAsks(t *testing.T) {
	perform(t, PathIntrospect, nil, func(s *stage) {
		if latest[*messages.Resync](s, PathRegistry) != nil {
			t.Error("the first one asks for a repetition")
		}
		s.kill()
		if latest[*messages.Resync](s, PathRegistry).GetSibling() != "introspect" {
			t.Error("did not ask")
		}
	})
}

// TestIntrospectionAsksTheSilent: who exists and has not spoken is asked until he does.
func TestIntrospectionAsksTheSilent(t *testing.T) {
	perform(t, PathIntrospect, []string{"a/a", "b/b"}, func(s *stage) {
		s.tell(settledStatus("a/a", 1), &messages.Ensure{Keys: []string{"a/a", "b/b"}, Generations: []uint64{1, 1}, Complete: true})
		if latest[*messages.Resync](s, PathService("b/b")) != nil {
			t.Error("asked at once, although most speak by themselves")
		}
		s.run(time.Minute)
		if n := len(all[*messages.Resync](s, PathService("b/b"))); n < 2 || n > int(time.Minute/s.deps.Timing.Digest) {
			t.Errorf("asked %d times in a minute", n)
		}
		if latest[*messages.Resync](s, PathService("a/a")) != nil {
			t.Error("asked who had spoken")
		}
		s.tell(settledStatus("b/b", 1))
		s.forget()
		s.run(5 * time.Minute)
		if n := len(s.heard[PathService("b/b")]); n != 0 {
			t.Errorf("asked %d times after it had spoken", n)
		}
	})
}

// TestIntrospectionKnowsLastWords: what a service said before it ended may arrive after the list in which it is missing.
func TestIntrospectionKnowsLastWords(t *testing.T) {
	perform(t, PathIntrospect, []string{"a/a", "b/b"}, func(s *stage) {
		s.tell(settledStatus("b/b", 6), &messages.Ensure{Keys: []string{"a/a"}, Generations: []uint64{5}, Newest: 7, Complete: true})
		s.tell(settledStatus("a/a", 5), settledStatus("b/b", 7))
		if got := s.keysShown(&StatusQuery{}); !slices.Equal(got, []string{"a/a"}) {
			t.Errorf("shows %q", got)
		}
		s.tell(settledStatus("b/b", 8))
		if got := s.keysShown(&StatusQuery{}); !slices.Equal(got, []string{"a/a", "b/b"}) {
			t.Errorf("shows %q after it was created again", got)
		}
		s.tell(&messages.ServiceStatus{Key: "b/b", Generation: 9, Gone: true})
		s.tell(settledStatus("b/b", 9)) // the other way round
		s.tell(&messages.Ensure{Keys: []string{"a/a", "b/b"}, Generations: []uint64{5, 9}, Newest: 9, Complete: true})
		s.run(time.Minute)
		if got := s.keysShown(&StatusQuery{}); !slices.Equal(got, []string{"a/a"}) || len(s.heard[PathService("b/b")]) != 0 {
			t.Errorf("shows %q after it has gone, and has asked %v", got, s.heard[PathService("b/b")])
		}
	})
}

// TestIntrospectionAsksWhoseEndIsMissing: of whom something may have been lost, he is asked again within a second, and goes on to be.
func TestIntrospectionAsksWhoseEndIsMissing(t *testing.T) {
	perform(t, PathIntrospect, []string{"a/a", "b/b"}, func(s *stage) {
		unsettled := settledStatus("b/b", 1)
		unsettled.Renders[0].State = pending
		s.tell(settledStatus("a/a", 1), unsettled)
		s.run(time.Second)
		if n, m := len(s.heard[PathService("b/b")]), len(s.heard[PathService("a/a")]); n < 1 || n > 3 || m != 0 {
			t.Errorf("b/b was asked %d times within a second, a/a %d times", n, m)
		}
		s.tell(settledStatus("b/b", 1))
		s.forget()
		s.run(time.Minute)
		if n := len(s.heard[PathService("b/b")]); n != 0 {
			t.Errorf("asked %d times although nothing is missing", n)
		}
		s.tell(unsettled, &messages.ServiceStatus{Key: "b/b", Generation: 2, Gone: true})
		s.forget()
		s.run(time.Minute)
		if n := len(s.heard[PathService("b/b")]); n != 0 {
			t.Errorf("asked %d times although it is gone", n)
		}
	})
}

// TestIntrospectionFindsOutWhatItMissed: a generation of which it has not heard, a service of which it has not, one that has gone unheard.
func TestIntrospectionFindsOutWhatItMissed(t *testing.T) {
	perform(t, PathIntrospect, []string{"a/a", "b/b"}, func(s *stage) {
		digest := func(all map[string]uint64) *messages.Digest {
			m := newSuspects()
			for key, generation := range all {
				m.note(key, generation)
			}
			return m.digest()
		}
		theirs := map[string]uint64{"a/a": 5, "b/b": 7}
		s.tell(settledStatus("a/a", 5), settledStatus("b/b", 6), settledStatus("gone", 3), digest(theirs))
		if s.heard[PathRegistry] != nil {
			t.Error("asked the registry for what may be under way")
		}
		s.tell(digest(theirs))
		if latest[*messages.Pull](s, PathRegistry) == nil {
			t.Fatal("did not ask the registry")
		}
		s.forget()
		s.tell(&messages.Ensure{Keys: []string{"a/a", "b/b"}, Generations: []uint64{5, 7}, Complete: true})
		s.run(time.Second)
		if n, m := len(s.heard[PathService("b/b")]), len(s.heard[PathService("a/a")]); n < 1 || m != 0 {
			t.Errorf("b/b was asked %d times within a second, a/a %d times", n, m)
		}
		if got := s.keysShown(&StatusQuery{}); !slices.Equal(got, []string{"a/a", "b/b"}) {
			t.Errorf("shows %q", got)
		}
		s.tell(digest(theirs), digest(theirs), digest(theirs), digest(theirs)) // b/b does not answer, which is no news
		if s.heard[PathRegistry] != nil {
			t.Error("asked the registry for what it has said")
		}
		s.tell(settledStatus("b/b", 7))
		s.tell(settledStatus("b/b", 6)) // it was overtaken
		s.forget()
		s.run(time.Minute)
		if n := len(s.heard[PathService("b/b")]); n != 0 {
			t.Errorf("asked %d times although nothing is missing", n)
		}
	})
}

package actors

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
	return &messages.ServiceStatus{Key: key, Errors: make([]*messages.ObjectError, errors)}
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
		s.tell(&messages.ServiceStatus{Key: "a/a", Gone: true}, &messages.Ensure{Keys: []string{"c/c"}})
		if got := s.keysShown(&StatusQuery{}); !slices.Equal(got, []string{"b/b", "c/c"}) {
			t.Errorf("after one has gone: %q", got)
		}
		s.tell(&messages.Ensure{Keys: []string{"c/c", "d/d"}, Complete: true})
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
			&messages.ServiceStatus{Key: "b/b", Gone: true, Errors: make([]*messages.ObjectError, 3)},
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

// TestIntrospectionAsksTheSilent: who exists and has not spoken is asked, less and less often, until he does.
func TestIntrospectionAsksTheSilent(t *testing.T) {
	perform(t, PathIntrospect, []string{"a/a", "b/b"}, func(s *stage) {
		s.tell(statusOf("a/a", 0), &messages.Ensure{Keys: []string{"a/a", "b/b"}, Complete: true})
		if latest[*messages.Resync](s, PathService("b/b")) != nil {
			t.Error("asked at once, although most speak by themselves")
		}
		s.run(time.Minute)
		if n := len(all[*messages.Resync](s, PathService("b/b"))); n < 4 || n > 7 {
			t.Errorf("asked %d times in a minute", n)
		}
		if latest[*messages.Resync](s, PathService("a/a")) != nil {
			t.Error("asked who had spoken")
		}
		s.tell(statusOf("b/b", 0))
		s.run(time.Minute)
		s.forget()
		s.run(5 * time.Minute)
		if n := len(s.heard[PathService("b/b")]); n != 0 {
			t.Errorf("asked %d times after it had spoken", n)
		}
	})
}

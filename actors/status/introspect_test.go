package status

import (
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage has introspection in a tree of probes.
type stage struct {
	*probe.Stage
	config *Config
}

// perform plays with introspection; each of the services has a probe of its own.
func perform(t *testing.T, services []string, play func(s *stage)) {
	t.Helper()
	s := &stage{Stage: probe.New(t), config: &Config{NodeName: "n1", Observer: report.None{}}}
	s.Start(address.Introspect, probe.Actors{address.Introspect: func() runtime.Behaviour { return NewIntrospect(s.config) }}, services...)
	play(s)
}

// problems is an observer of input errors.
type problems struct {
	report.None
	counts []int
}

func (p *problems) InputErrors(n int) { p.counts = append(p.counts, n) }

// statusOf is a status with some problems.
func statusOf(key string, errors int) *messages.ServiceStatus {
	return &messages.ServiceStatus{Key: key, Generation: 1, Errors: make([]*messages.ObjectError, errors)}
}

// statusAt is a status of a generation.
func statusAt(key string, generation uint64) *messages.ServiceStatus {
	return &messages.ServiceStatus{Key: key, Generation: generation}
}

// shown are the services that introspection shows.
func (s *stage) shown(q *ServicesQuery) (keys []string) {
	s.Helper()
	for _, status := range s.Ask(q).(*ServicesPage).Services {
		keys = append(keys, status.GetKey())
	}
	return keys
}

func TestIntrospectionShowsWhatExists(t *testing.T) {
	perform(t, nil, func(s *stage) {
		s.Tell(statusOf("b/b", 0), statusOf("a/a", 0), statusOf("c/c", 0))
		if got := s.shown(&ServicesQuery{}); !slices.Equal(got, []string{"a/a", "b/b", "c/c"}) {
			t.Errorf("shows %q", got)
		}
		if got := s.shown(&ServicesQuery{Key: "b/b"}); !slices.Equal(got, []string{"b/b"}) {
			t.Errorf("shows %q", got)
		}
		if got := s.shown(&ServicesQuery{Key: "x/x"}); len(got) != 0 {
			t.Errorf("shows %q", got)
		}
		s.Tell(&messages.ServiceStatus{Key: "a/a", Generation: 1, Gone: true}, &messages.Ensure{Keys: []string{"c/c"}})
		if got := s.shown(&ServicesQuery{}); !slices.Equal(got, []string{"b/b", "c/c"}) {
			t.Errorf("after one has gone: %q", got)
		}
		s.Tell(&messages.Ensure{Keys: []string{"c/c", "d/d"}, Complete: true})
		if got := s.shown(&ServicesQuery{}); !slices.Equal(got, []string{"c/c"}) {
			t.Errorf("after a complete list: %q", got)
		}
		s.Tell(&messages.Ensure{Keys: []string{"c/c"}, Complete: true, Generation: 7}, statusAt("d/d", 7), statusAt("e/e", 8))
		if got := s.shown(&ServicesQuery{}); !slices.Equal(got, []string{"c/c", "e/e"}) {
			t.Errorf("after a status that is older than the list without its service: %q", got)
		}
	})
}

// TestIntrospectionIgnoresAnOlderStatus: the highest generation counts; a question repeats a
// status, which is no news.
func TestIntrospectionIgnoresAnOlderStatus(t *testing.T) {
	perform(t, nil, func(s *stage) {
		latest := statusAt("a/a", 6)
		for _, m := range []*messages.ServiceStatus{statusAt("a/a", 5), latest, statusAt("a/a", 5), latest} {
			s.Tell(m)
		}
		if got := s.Ask(&ServicesQuery{Key: "a/a"}).(*ServicesPage).Services; len(got) != 1 || got[0] != latest {
			t.Errorf("shows %v", got)
		}
	})
}

func TestIntrospectionCountsProblems(t *testing.T) {
	perform(t, nil, func(s *stage) {
		var p problems
		s.config.Observer = &p
		for _, msg := range []any{
			statusOf("a/a", 2), statusOf("a/a", 2), statusOf("b/b", 3), statusOf("a/a", 1),
			&messages.NodeChanged{Input: &messages.NodeInput{Errors: make([]*messages.ObjectError, 4)}},
			&messages.ServiceStatus{Key: "b/b", Generation: 1, Gone: true, Errors: make([]*messages.ObjectError, 3)},
			&messages.Ensure{Complete: true},
		} {
			s.Tell(msg)
		}
		if want := []int{2, 5, 4, 8, 5, 4}; !slices.Equal(p.counts, want) {
			t.Errorf("counted %v, want %v", p.counts, want)
		}
	})
}

func TestIntrospectionKnowsTheWorld(t *testing.T) {
	perform(t, nil, func(s *stage) {
		if page := s.Ask(&WorldQuery{}).(*WorldPage); page.Link != nil || page.Node != nil || len(page.Verified) != 0 {
			t.Errorf("knows %+v of nothing", page)
		}
		s.Tell(
			&messages.LinkState{Session: 1}, &messages.InterfaceSet{Generation: 2}, &messages.ClusterState{Id: 3},
			&messages.NodeChanged{Input: &messages.NodeInput{Generation: 4}}, &messages.Verified{Renderer: "nat44", Differences: 7, Began: 2e9}, &messages.Verified{Renderer: "cnat", Began: 1e9},
		)
		s.Tell(&messages.Verified{Renderer: "nat44", Epoch: 5, Began: 3e9})
		page := s.Ask(&WorldQuery{}).(*WorldPage)
		if page.Link.GetSession() != 1 || page.Interfaces.GetGeneration() != 2 || page.Cluster.GetId() != 3 || page.Node.GetGeneration() != 4 {
			t.Errorf("knows %+v", page)
		}
		if len(page.Verified) != 2 || page.Verified["nat44"].GetEpoch() != 5 || page.Repairs["nat44"].GetDifferences() != 7 || page.Repairs["cnat"] != nil {
			t.Errorf("verified %v, repaired %v", page.Verified, page.Repairs)
		}
		if read := s.Ask(&ServicesQuery{}).(*ServicesPage).Read; read.Unix() != 1 {
			t.Errorf("the oldest reading began at %v", read)
		}
	})
}

// TestFilledOnce: a restarted VPP is filled when a renderer has first repaired it, whatever is read
// later. Readings that began before the restart, and differences before their repair, do not count.
func TestFilledOnce(t *testing.T) {
	perform(t, nil, func(s *stage) {
		for _, step := range []struct {
			msg  any
			want map[string]int64
		}{
			{&messages.LinkState{}, nil},
			{&messages.Verified{Renderer: "cnat", Began: 5, Took: 1}, nil},
			{&messages.LinkState{Back: 10}, map[string]int64{}},
			{&messages.Verified{Renderer: "cnat", Began: 9, Took: 3}, map[string]int64{}},
			{&messages.Verified{Renderer: "cnat", Began: 11, Took: 2}, map[string]int64{"cnat": 13}},
			{&messages.Verified{Renderer: "nat44", Began: 11, Took: 3, Differences: 7}, map[string]int64{"cnat": 13, "nat44": 0}},
			{&messages.Verified{Renderer: "nat44", Began: 11, Took: 3, Differences: 7, Repaired: 20}, map[string]int64{"cnat": 13, "nat44": 20}},
			{&messages.Verified{Renderer: "nat44", Began: 30, Differences: 1, Repaired: 40}, map[string]int64{"cnat": 13, "nat44": 20}},
			{&messages.Verified{Renderer: "cnat", Began: 30, Took: 1}, map[string]int64{"cnat": 13, "nat44": 20}},
			{&messages.LinkState{Back: 50}, map[string]int64{}},
		} {
			s.Tell(step.msg)
			if got := s.Ask(&WorldQuery{}).(*WorldPage).Filled; !maps.Equal(got, step.want) || (got == nil) != (step.want == nil) {
				t.Errorf("after %v: filled %v, want %v", step.msg, got, step.want)
			}
		}
	})
}

// TestIntrospectionAsksOnlyAfterARestart: a restarted introspection asks each sender once;
// otherwise it only listens.
func TestIntrospectionAsksOnlyAfterARestart(t *testing.T) {
	perform(t, []string{"a/a", "b/b"}, func(s *stage) {
		known := []string{address.Registry, address.Link, address.Interfaces, address.Nodes}
		asked := func() (n int) {
			for _, path := range append(known, address.Service("a/a"), address.Service("b/b"), address.Renderer("nat44"), address.Healer) {
				n += len(s.Heard(path))
			}
			return n
		}
		unsettled := statusAt("a/a", 1)
		unsettled.Renders = []*messages.RenderAck{{Key: "a/a", Renderer: "nat44", State: messages.RenderState_RENDER_PENDING}}
		s.Tell(unsettled, &messages.Ensure{Keys: []string{"a/a", "b/b"}, Complete: true})
		s.Run(10 * time.Minute)
		if n := asked(); n != 0 {
			t.Errorf("sent %d messages", n)
		}
		s.Kill()
		s.Run(10 * time.Minute)
		for _, path := range known {
			if got := probe.All[*messages.Resync](s.Stage, path); len(got) != 1 || got[0].GetSibling() != "introspect" {
				t.Errorf("%s was asked with %v", path, got)
			}
		}
		if n := asked(); n != len(known) {
			t.Errorf("sent %d messages, want %d", n, len(known))
		}
	})
}

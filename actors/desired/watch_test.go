package desired

import (
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// withSource plays with a registry whose source has delivered the service "default/web" and this
// node.
func withSource(t *testing.T, play func(s *stage)) {
	t.Helper()
	perform(t, address.Registry, []string{webKey}, func(s *stage) {
		s.feed.store.Set(probe.ThisNode(), nil)
		s.feed.store.Set(probe.Service("web", "10.96.0.10"), nil)
		s.feed.store.Commit()
		s.feed.sink.Health(kube.Health{OK: true})
		s.feed.sink.Snapshot(s.feed.store.Snapshot())
		s.Tell(interfacesWith("192.168.16.1/24"), &messages.PullSpec{Key: webKey})
		play(s)
	})
}

func TestRegistryTakesWhatTheSourceSays(t *testing.T) {
	withSource(t, func(s *stage) {
		told := func(pods int) {
			t.Helper()
			for _, path := range []string{address.Nodes, address.Interfaces, address.Introspect} {
				got := probe.Latest[*messages.NodeChanged](s.Stage, path).GetInput()
				if got.GetSelf() == nil || len(got.GetPods()) != pods {
					t.Errorf("%s was told %v, want %d pods", path, got, pods)
				}
			}
		}
		told(0)
		s.feed.change(func(store *kube.Store) {
			store.Set(probe.Slice("web", "10.1.1.2"), nil)
			store.Set(probe.Pod("p2", "10.1.1.2"), nil)
		})
		s.Run(time.Millisecond)
		told(1)
		if got := s.endpointsOf(webKey); len(got) != 1 {
			t.Errorf("the service was told of %v", got)
		}
	})
}

// TestRegistryAnswersASibling: an actor that starts anew is told what it needs, and the source is
// asked only by a pull.
func TestRegistryAnswersASibling(t *testing.T) {
	for name, tc := range map[string]struct {
		msg                    any
		node, ensured, refresh bool
	}{
		"a pull":               {msg: &messages.Pull{}, refresh: true},
		"the supervisor":       {msg: &messages.Resync{Sibling: "services"}, ensured: true},
		"introspection":        {msg: &messages.Resync{Sibling: "introspect"}, node: true, ensured: true},
		"nodes":                {msg: &messages.Resync{Sibling: "nodes"}, node: true},
		"interfaces":           {msg: &messages.Resync{Sibling: "interfaces"}, node: true},
		"something irrelevant": {msg: &messages.Verify{}},
	} {
		t.Run(name, func(t *testing.T) {
			withSource(t, func(s *stage) {
				s.Forget()
				s.Tell(tc.msg)
				if (s.feed.refresh > 0) != tc.refresh {
					t.Errorf("the source was asked %d times", s.feed.refresh)
				}
				if told := probe.Latest[*messages.NodeChanged](s.Stage, address.Interfaces) != nil; told != tc.node {
					t.Errorf("the interfaces were told of the node: %t", told)
				}
				// introspection gets the list that the supervisor gets
				if told := probe.Latest[*messages.Ensure](s.Stage, address.Introspect) != nil; told != tc.ensured {
					t.Errorf("the list of services was sent: %t", told)
				}
			})
		})
	}
}

func TestSourceAtRestIsNotRepeated(t *testing.T) {
	withSource(t, func(s *stage) {
		s.Run(time.Second)
		s.Forget()
		s.Run(5 * report.Heartbeat)
		if n := len(probe.All[*messages.Health](s.Stage, address.Healer)); n < 8 || n > 12 {
			t.Errorf("the health of two parts was repeated %d times", n)
		}
		if n := len(s.Heard(address.Service(webKey))) + len(s.Heard(address.Interfaces)); n != 0 || s.feed.refresh != 0 {
			t.Errorf("without news others were told %d things, the source was asked %d times", n, s.feed.refresh)
		}
	})
}

// TestWatchHealth: there must be a list, and a source that does not see what happens may not be
// away for longer than the limit.
func TestWatchHealth(t *testing.T) {
	perform(t, address.Registry, nil, func(s *stage) {
		list := func(complete bool) func() {
			return func() { s.feed.sink.Snapshot(&messages.Snapshot{Complete: complete, Generation: 1}) }
		}
		well := func(warning string) func() {
			return func() { s.feed.sink.Health(kube.Health{OK: true, Reason: warning}) }
		}
		var since time.Time
		away := func(reason string, age time.Duration) func() {
			return func() {
				since = s.Sim.Now().Add(-age)
				s.feed.sink.Health(kube.Health{Reason: reason, AsOf: since})
			}
		}
		wait := func(d time.Duration) func() { return func() { s.Run(d) } }
		for _, step := range []struct {
			name   string
			what   func()
			ok     bool
			reason string
			stale  bool
		}{
			{"nothing listed, the source does not work", away("no answer", 0), false, "no answer", true},
			{"the source works, no list yet", well(""), false, "the first list is not complete", false},
			{"the list of the mirror", list(false), false, "the first list is not complete", false},
			{"a young mirror", away("from the mirror", 30*time.Second), false, "from the mirror", true},
			{"the source works, and has not listed yet", well(""), false, "the first list is not complete", false},
			{"the list", list(true), true, "", false},
			{"outage", away("no answer", 0), true, "no answer", true},
			{"the list out of memory", list(true), true, "no answer", true},
			{"within the limit", wait(55 * time.Second), true, "no answer", true},
			{"beyond the limit", wait(10 * time.Second), false, "stale for more than 1m0s: no answer", true},
			{"back, with a warning", well("web.yaml: not a port"), true, "web.yaml: not a port", false},
		} {
			step.what()
			s.Run(time.Millisecond)
			h := s.health("watch")
			if h.GetOk() != step.ok || h.GetReason() != step.reason {
				t.Errorf("%s: %v, want ok %t reason %q", step.name, h, step.ok, step.reason)
			}
			if asOf := h.GetAsOf(); (asOf != 0) != step.stale || step.stale && asOf != since.UnixNano() {
				t.Errorf("%s: as of %d, want %d: %t", step.name, asOf, since.UnixNano(), step.stale)
			}
		}
	})
}

// TestWatchWithoutALimit: the node stays ready however long the source is away.
func TestWatchWithoutALimit(t *testing.T) {
	perform(t, address.Registry, nil, func(s *stage) {
		s.config.Staleness = -1
		s.feed.sink.Snapshot(&messages.Snapshot{Complete: true})
		s.feed.sink.Health(kube.Health{Reason: "no answer", AsOf: s.Sim.Now()})
		s.Run(time.Hour)
		if h := s.health("watch"); !h.GetOk() || h.GetReason() != "no answer" {
			t.Errorf("after an hour: %v", h)
		}
	})
}

// TestRestartedRegistryListensAgain: the source goes on, the new incarnation gets a list from it,
// and the end of the registry ends the listening.
func TestRestartedRegistryListensAgain(t *testing.T) {
	withSource(t, func(s *stage) {
		first := s.feed.sink
		s.Kill()
		if s.feed.listened != 2 || s.feed.sink == nil {
			t.Fatalf("listened %d times", s.feed.listened)
		}
		s.feed.sink.Snapshot(s.feed.store.Snapshot())
		s.Tell(interfacesWith("192.168.16.1/24"))
		s.Forget()
		first.ServiceChanged(testInput("web", "10.96.0.10", 99, "10.1.1.9"))
		s.Run(time.Millisecond)
		if got := s.spec(webKey); got != nil {
			t.Errorf("a change that an earlier incarnation gets is taken: %v", got)
		}
		if err := s.System.Shutdown(t.Context()); err != nil || s.feed.sink != nil {
			t.Errorf("%v; the registry still listens: %t", err, s.feed.sink != nil)
		}
	})
}

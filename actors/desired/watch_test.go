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

// withWatch plays with a watch whose source has delivered the service "default/web" and this node.
func withWatch(t *testing.T, play func(s *stage)) {
	t.Helper()
	perform(t, address.Watch, nil, func(s *stage) {
		s.feed.store.SetNode(probe.ThisNode(), nil)
		s.feed.store.SetService(probe.Service("web", "10.96.0.10"), nil)
		s.feed.store.Commit()
		s.feed.sink.Health(kube.Health{OK: true})
		s.feed.sink.Snapshot(s.feed.store.Snapshot())
		s.Run(time.Millisecond)
		play(s)
	})
}

func TestWatchPassesOnWhatTheSourceSays(t *testing.T) {
	withWatch(t, func(s *stage) {
		if got := probe.Latest[*messages.Snapshot](s.Stage, address.Registry); len(got.GetServices()) != 1 || !got.GetComplete() {
			t.Errorf("the registry was told %v", got)
		}
		for _, path := range []string{address.Nodes, address.Interfaces, address.Introspect} {
			if got := probe.Latest[*messages.NodeChanged](s.Stage, path); got.GetInput().GetSelf() == nil {
				t.Errorf("%s was told %v with the snapshot", path, got)
			}
		}
		s.feed.change(func(store *kube.Store) { store.SetSlice(probe.Slice("web", "10.1.1.2"), nil) })
		s.feed.change(func(store *kube.Store) {
			store.SetPod(probe.Pod("p2", "10.1.1.2"), nil)
		})
		s.Run(time.Millisecond)
		if got := probe.Latest[*messages.ServiceChanged](s.Stage, address.Registry); len(got.GetInput().GetSlices()) != 1 {
			t.Errorf("the registry was told %v", got)
		}
		for _, path := range []string{address.Registry, address.Nodes, address.Interfaces, address.Introspect} {
			if got := probe.Latest[*messages.NodeChanged](s.Stage, path); len(got.GetInput().GetPods()) != 1 {
				t.Errorf("%s was told %v", path, got)
			}
		}
	})
}

// TestWatchKeepsTheOrder: the registry takes what is newer than all that it has seen, so services
// and nodes must come in the order of the source.
func TestWatchKeepsTheOrder(t *testing.T) {
	withWatch(t, func(s *stage) {
		for i := range 20 {
			s.feed.change(func(store *kube.Store) {
				if i%2 == 0 {
					store.SetSlice(probe.Slice("web", "10.1.1."+string(rune('2'+i%7))), nil)
				} else {
					node := probe.ThisNode()
					node.Zone = string(rune('a' + i))
					store.SetNode(node, nil)
				}
			})
		}
		s.feed.sink.Snapshot(s.feed.store.Snapshot())
		s.Run(time.Second)
		var last uint64
		for _, msg := range s.Heard(address.Registry) {
			var generation uint64
			switch m := msg.(type) {
			case *messages.Snapshot:
				generation = m.GetGeneration()
			case *messages.ServiceChanged:
				generation = m.GetInput().GetGeneration()
			case *messages.NodeChanged:
				generation = m.GetInput().GetGeneration()
			}
			if generation < last {
				t.Errorf("%T of %d after %d", msg, generation, last)
			}
			last = generation
		}
	})
}

func TestWatchAsksTheSource(t *testing.T) {
	for name, tc := range map[string]struct {
		msg     any
		refresh int
	}{
		"a pull":               {&messages.Pull{}, 1},
		"a new registry":       {&messages.Resync{Sibling: "registry"}, 1},
		"a new introspection":  {&messages.Resync{Sibling: "introspect"}, 1},
		"nodes need no list":   {&messages.Resync{Sibling: "nodes"}, 0},
		"nor do interfaces":    {&messages.Resync{Sibling: "interfaces"}, 0},
		"something irrelevant": {&messages.Verify{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			withWatch(t, func(s *stage) {
				s.Forget()
				s.Tell(tc.msg)
				if s.feed.refresh != tc.refresh {
					t.Errorf("the source was asked %d times, want %d", s.feed.refresh, tc.refresh)
				}
				_, asked := tc.msg.(*messages.Resync)
				if told := probe.Latest[*messages.NodeChanged](s.Stage, address.Interfaces) != nil; told != (asked && tc.refresh == 0) {
					t.Errorf("the interfaces were told of the node: %t", told)
				}
			})
		})
	}
}

// TestWatchWithoutANodeAsksForOne: an interfaces actor that starts before the first list gets the
// node with that list.
func TestWatchWithoutANodeAsksForOne(t *testing.T) {
	perform(t, address.Watch, nil, func(s *stage) {
		s.Tell(&messages.Resync{Sibling: "interfaces"})
		if s.feed.refresh != 1 || len(s.Heard(address.Interfaces)) > 0 {
			t.Errorf("the source was asked %d times, the interfaces were told %v", s.feed.refresh, s.Heard(address.Interfaces))
		}
	})
}

func TestWatchRepeatsItsHealthOnly(t *testing.T) {
	withWatch(t, func(s *stage) {
		s.Forget()
		s.Run(5 * report.Heartbeat)
		if n := len(probe.All[*messages.Health](s.Stage, address.Healer)); n < 4 || n > 6 {
			t.Errorf("the health was repeated %d times", n)
		}
		if n := len(s.Heard(address.Registry)); n != 0 || s.feed.refresh != 0 {
			t.Errorf("without news the registry was told %d things, the source was asked %d times", n, s.feed.refresh)
		}
	})
}

// TestWatchHealth: there must be a list, and a source that does not see what happens may not be
// away for longer than the limit.
func TestWatchHealth(t *testing.T) {
	perform(t, address.Watch, nil, func(s *stage) {
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
			h := probe.Latest[*messages.Health](s.Stage, address.Healer)
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
	perform(t, address.Watch, nil, func(s *stage) {
		s.config.Staleness = -1
		s.feed.sink.Snapshot(&messages.Snapshot{Complete: true})
		s.feed.sink.Health(kube.Health{Reason: "no answer", AsOf: s.Sim.Now()})
		s.Run(time.Hour)
		if h := probe.Latest[*messages.Health](s.Stage, address.Healer); !h.GetOk() || h.GetReason() != "no answer" {
			t.Errorf("after an hour: %v", h)
		}
	})
}

// TestRestartedWatchListensAgain: the source goes on, the new incarnation gets a list from it, and
// the end of the watch ends the listening.
func TestRestartedWatchListensAgain(t *testing.T) {
	withWatch(t, func(s *stage) {
		first := s.feed.sink
		s.Kill()
		if s.feed.listened != 2 || s.feed.sink == nil {
			t.Fatalf("listened %d times", s.feed.listened)
		}
		s.Forget()
		first.ServiceChanged(testInput("web", "10.96.0.10", 99, "10.1.1.9"))
		s.Run(time.Millisecond)
		if got := s.Heard(address.Registry); len(got) > 0 {
			t.Errorf("what an earlier incarnation gets is passed on: %v", got)
		}
		s.feed.sink.Snapshot(s.feed.store.Snapshot())
		s.Run(time.Millisecond)
		if got := probe.Latest[*messages.Snapshot](s.Stage, address.Registry); len(got.GetServices()) != 1 {
			t.Errorf("the registry was told %v", got)
		}
		if err := s.System.Shutdown(t.Context()); err != nil || s.feed.sink != nil {
			t.Errorf("%v; the watch still listens: %t", err, s.feed.sink != nil)
		}
	})
}

package desired

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// withWatch plays a watch whose source knows the service "default/web" and this node.
func withWatch(t *testing.T, play func(s *stage)) {
	t.Helper()
	perform(t, PathWatch, nil, func(s *stage) {
		s.source.change(func(store *kube.Store) {
			store.SetNode(testNodeObject(), nil)
			store.SetService(testService("web", "10.96.0.10"), nil)
		})
		s.source.snapshot()
		s.run(time.Millisecond)
		s.forget()
		play(s)
	})
}

func TestWatchPassesOnWhatTheSourceSays(t *testing.T) {
	withWatch(t, func(s *stage) {
		s.source.change(func(store *kube.Store) { store.SetSlice(testSlice("web", "10.1.1.2"), nil) })
		s.run(time.Millisecond)
		if got := latest[*messages.ServiceChanged](s, PathRegistry); len(got.GetInput().GetSlices()) != 1 || got.GetRun() != 1 {
			t.Errorf("registry was told %v", got)
		}
		s.source.change(func(store *kube.Store) {
			store.SetPod(&messages.Pod{Namespace: "default", Name: "p2", Node: testNode, Addresses: []string{"10.1.1.2"}}, nil)
		})
		s.run(time.Millisecond)
		for _, path := range []string{PathRegistry, PathNodes, PathInterfaces, PathIntrospect} {
			if got := latest[*messages.NodeChanged](s, path); len(got.GetInput().GetPods()) != 1 {
				t.Errorf("%s was told %v", path, got)
			}
		}
		s.source.snapshot()
		s.run(time.Millisecond)
		if got := latest[*messages.Snapshot](s, PathRegistry); len(got.GetServices()) != 1 || got.GetRun() != 1 || !got.GetComplete() {
			t.Errorf("registry was told %v", got)
		}
	})
}

func TestWatchAsksTheSourceForWhoeverAsksIt(t *testing.T) {
	for name, tc := range map[string]struct {
		msg       any
		refreshes int
	}{
		"a pull":               {&messages.Pull{}, 1},
		"a new registry":       {&messages.Resync{Sibling: "registry"}, 1},
		"a new spawner":        {&messages.Resync{Sibling: "services"}, 1},
		"nodes need no list":   {&messages.Resync{Sibling: "nodes"}, 0},
		"nor do interfaces":    {&messages.Resync{Sibling: "interfaces"}, 0},
		"something irrelevant": {&messages.Verify{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			withWatch(t, func(s *stage) {
				s.tell(tc.msg)
				if s.source.refresh != tc.refreshes {
					t.Errorf("the source was asked %d times, want %d", s.source.refresh, tc.refreshes)
				}
				if _, nodes := tc.msg.(*messages.Resync); nodes && tc.refreshes == 0 && latest[*messages.NodeChanged](s, PathNodes) == nil {
					t.Error("nodes was not told")
				}
			})
		})
	}
}

func TestWatchKeepsTheLaterOfTwoValues(t *testing.T) {
	withWatch(t, func(s *stage) {
		old := s.source.store.Snapshot()
		s.source.change(func(store *kube.Store) {
			store.SetSlice(testSlice("web", "10.1.1.2"), nil)
			store.SetService(testService("young", "10.96.0.12"), nil)
		})
		s.source.lines <- func(sink kube.Sink) { sink.Snapshot(old) } // overtaken by the changes
		s.run(s.deps.Timing.Digest + time.Second)
		digest := latest[*messages.Digest](s, PathRegistry)
		census := newCensus()
		for _, in := range s.source.store.Snapshot().GetServices() {
			census.hear(in.GetKey(), mark(1, in.GetGeneration()), true)
		}
		if !sameDigest(digest, census.digest(mark(1, s.source.store.Snapshot().GetNode().GetGeneration()))) {
			t.Errorf("the watch believes in an older list: %v", digest)
		}
	})
}

func TestWatchRepeatsItself(t *testing.T) {
	withWatch(t, func(s *stage) {
		s.run(s.deps.Timing.Digest + time.Second)
		if got := latest[*messages.Digest](s, PathRegistry); got.GetServices() != 1 {
			t.Errorf("digest %v", got)
		}
		for _, path := range []string{PathRegistry, PathNodes, PathInterfaces, PathIntrospect} {
			if latest[*messages.NodeChanged](s, path) == nil {
				t.Errorf("%s was not told of the node again", path)
			}
		}
		if got := len(all[*messages.Health](s, PathHealer)); got < 2 {
			t.Errorf("health was told %d times", got)
		}
	})
}

func TestWatchNoticesThatItMissedSomething(t *testing.T) {
	withWatch(t, func(s *stage) {
		s.run(10 * s.deps.Timing.Digest)
		if s.source.refresh != 0 {
			t.Errorf("the source was asked %d times without a reason", s.source.refresh)
		}
		s.source.digest = &messages.Digest{Services: 2, Hash: 7}
		s.run(2 * s.deps.Timing.Digest)
		if s.source.refresh != 1 {
			t.Errorf("the source was asked %d times, want once", s.source.refresh)
		}
	})
}

// TestWatchHealth: the list must be complete, and the source must see what happens; a list that was delivered out of memory changes nothing.
func TestWatchHealth(t *testing.T) {
	perform(t, PathWatch, nil, func(s *stage) {
		health := func(ok bool, reason string) func(kube.Sink) {
			return func(sink kube.Sink) { sink.Health(ok, reason) }
		}
		list := func(complete bool) func(kube.Sink) {
			return func(sink kube.Sink) { sink.Snapshot(&messages.Snapshot{Complete: complete, Generation: 1}) }
		}
		for _, step := range []struct {
			name   string
			line   func(kube.Sink)
			ok     bool
			reason string
		}{
			{"the source works, no list yet", health(true, ""), false, "the first list is not complete"},
			{"half a list", list(false), false, "the first list is not complete"},
			{"the list", list(true), true, ""},
			{"outage", health(false, "no answer"), false, "no answer"},
			{"the list out of memory", list(true), false, "no answer"},
			{"back, with a warning", health(true, "web.yaml: not a port"), true, "web.yaml: not a port"},
		} {
			s.source.lines <- step.line
			s.run(time.Millisecond)
			if h := latest[*messages.Health](s, PathHealer); h.GetOk() != step.ok || h.GetReason() != step.reason {
				t.Errorf("%s: %v, want ok %t reason %q", step.name, h, step.ok, step.reason)
			}
		}
	})
}

func TestWatchFailsWithItsSourceAndRunsItAgain(t *testing.T) {
	perform(t, PathWatch, nil, func(s *stage) {
		s.source.lines <- nil
		s.run(100 * time.Millisecond)
		if len(s.faults) != 1 || !strings.Contains(s.faults[0].GetReason(), "gave up") {
			t.Errorf("faults %v", s.faults)
		}
		if s.source.runs != 2 || s.source.refresh != 1 {
			t.Errorf("the source ran %d times and was asked for a list %d times", s.source.runs, s.source.refresh)
		}
		s.source.change(func(store *kube.Store) { store.SetService(testService("web", "10.96.0.10"), nil) })
		s.source.snapshot()
		s.run(time.Millisecond)
		if got := latest[*messages.Snapshot](s, PathRegistry).GetRun(); got != 2 {
			t.Errorf("the list is of run %d, want 2", got)
		}
	})
}

// TestWatchRunsOneSourceAtATime: the next run waits for the end of the one before.
func TestWatchRunsOneSourceAtATime(t *testing.T) {
	withWatch(t, func(s *stage) {
		slow := make(chan struct{})
		s.source.lines <- func(kube.Sink) { <-slow }
		s.run(time.Millisecond)
		s.kill()
		if s.source.runs != 1 {
			t.Errorf("%d runs at the same time", s.source.runs)
		}
		close(slow)
		s.run(time.Millisecond)
		if s.source.runs != 2 || s.source.refresh != 1 {
			t.Errorf("%d runs, asked for a list %d times", s.source.runs, s.source.refresh)
		}
	})
}

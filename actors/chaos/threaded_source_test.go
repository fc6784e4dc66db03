package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
)

// threadedSource is source for goroutines: the driver of the world changes it, the relay runs it once.
type threadedSource struct {
	wake  chan struct{} // holds one request to look again
	store *kube.Store   // of the process; only Run uses it

	mu      sync.Mutex // guards the following
	objects *normalize.Objects
	version uint64
	sourceFaults
}

// sourceFaults is what is wrong with a source, or asked of it.
type sourceFaults struct {
	slow    time.Duration // the list takes so long
	blind   bool          // the watch is broken: changes are missed
	broken  bool          // the watch ends, and everything is listed again
	twice   bool          // everything is to be delivered once more
	refresh bool          // the same, because the feed asked for it
}

var _ kube.Source = (*threadedSource)(nil)

func newThreadedSource() *threadedSource {
	return &threadedSource{wake: make(chan struct{}, 1), store: kube.NewStore(thisNode)}
}

// set changes it, and has it looked at.
func (s *threadedSource) set(change func(s *threadedSource)) {
	s.mu.Lock()
	change(s)
	s.mu.Unlock()
	nudge(s.wake)
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// trouble returns what is wrong; that the watch ends happens once.
func (s *threadedSource) trouble() sourceFaults {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.sourceFaults
	s.broken = s.broken && f.blind
	return f
}

// take returns the cluster, and whether a Snapshot is asked for.
func (s *threadedSource) take() (objects *normalize.Objects, version uint64, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again = s.twice || s.refresh
	s.twice, s.refresh = false, false
	return s.objects, s.version, again
}

// Run satisfies kube.Source.
func (s *threadedSource) Run(ctx context.Context, sink kube.Sink) error {
	listed, told, seen := false, false, uint64(0)
	outage := func(reason string) {
		if !told {
			told = true
			sink.Health(false, reason)
		}
	}
	for nudge(s.wake); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		f := s.trouble()
		if f.blind {
			outage("injected: the watch is broken")
			continue
		}
		if f.broken && listed {
			outage("injected: the watch ended")
		}
		if f.broken || !listed {
			if !pause(ctx, f.slow/speed) {
				return nil
			}
		}
		objects, version, again := s.take()
		if version != seen || !listed {
			s.store.Replace(objects, nil)
			changes := s.store.Commit()
			if seen = version; listed {
				changes.Deliver(sink)
			}
		}
		if again || !listed {
			sink.Snapshot(s.store.Snapshot())
		}
		if told || !listed {
			sink.Health(true, "")
		}
		listed, told = true, false
	}
}

// pause reports false if ctx ended before the time was over.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// Refresh satisfies kube.Source.
func (s *threadedSource) Refresh() { s.set(func(s *threadedSource) { s.refresh = true }) }

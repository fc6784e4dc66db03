package chaos

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// threadedSource is source for goroutines: the driver of the world changes it, the watch actor runs it.
type threadedSource struct {
	wake  chan struct{} // holds one request to look again
	store atomic.Pointer[kube.Store]

	mu      sync.Mutex // guards the following
	objects *normalize.Objects
	version uint64
	sourceFaults
}

// sourceFaults is what is wrong with a source, or asked of it.
type sourceFaults struct {
	slow    time.Duration // the list takes so long
	blind   bool          // the watch is broken: changes are missed
	broken  bool          // Run is to end with an error
	twice   bool          // everything is to be delivered once more
	refresh bool          // somebody asks for that
}

var (
	_ kube.Source   = (*threadedSource)(nil)
	_ kube.Digester = (*threadedSource)(nil)
)

func newThreadedSource() *threadedSource { return &threadedSource{wake: make(chan struct{}, 1)} }

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

// take returns what there is to do; requests are taken once.
func (s *threadedSource) take() (objects *normalize.Objects, version uint64, f sourceFaults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f = s.sourceFaults
	if !f.blind {
		s.broken, s.twice, s.refresh = false, false, false
	}
	return s.objects, s.version, f
}

// Run satisfies kube.Source; each run counts its generations from 1.
func (s *threadedSource) Run(ctx context.Context, sink kube.Sink) error {
	store, listed, told, seen := kube.NewStore(thisNode), false, false, uint64(0)
	for nudge(s.wake); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		objects, version, f := s.take()
		switch {
		case f.blind && listed && !told:
			told = true
			sink.Health(false, "injected: the watch is broken")
		case f.blind:
		case f.broken:
			return errBroken
		case !listed:
			if !pause(ctx, f.slow/speed) {
				return nil
			}
			store.Replace(objects, nil)
			store.Commit()
			s.store.Store(store)
			sink.Snapshot(store.Snapshot())
			sink.Health(true, "")
			listed, seen = true, version
			nudge(s.wake) // what was asked for meanwhile
		default:
			if version != seen {
				store.Replace(objects, nil)
				store.Commit().Deliver(sink)
				seen = version
			}
			if f.twice || f.refresh {
				sink.Snapshot(store.Snapshot())
			}
			if told {
				told = false
				sink.Health(true, "")
			}
		}
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

// Digest satisfies kube.Digester.
func (s *threadedSource) Digest() *messages.Digest {
	if store := s.store.Load(); store != nil {
		return store.Digest()
	}
	return &messages.Digest{}
}

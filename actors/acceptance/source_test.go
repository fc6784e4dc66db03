package acceptance_test

import (
	"context"
	"sync"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// source is a cluster in memory, with the semantics of the real sources: first a snapshot, then changes, a snapshot on Refresh. It survives
// the troupes that read it.
type source struct {
	store   *kube.Store
	changes chan change
	refresh chan struct{}

	mu    sync.Mutex    // serialises commits with what is delivered of them
	ended chan struct{} // closed when the present run is over; nil = nobody runs it
}

// change is one change of the cluster; done is closed when the sink has it.
type change struct {
	apply func(*kube.Store)
	done  chan struct{}
}

var _ kube.Source = (*source)(nil)

func newSource(node string) *source {
	return &source{store: kube.NewStore(node), changes: make(chan change), refresh: make(chan struct{}, 1)}
}

// Run satisfies kube.Source.
func (s *source) Run(ctx context.Context, sink kube.Sink) error {
	s.mu.Lock()
	s.store.Commit()
	sink.Snapshot(s.store.Snapshot())
	ended := make(chan struct{})
	s.ended = ended
	s.mu.Unlock()
	defer s.end(ended)
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-s.changes:
			c.apply(s.store)
			s.store.Commit().Deliver(sink)
			close(c.done)
		case <-s.refresh:
			s.store.Commit().Deliver(sink)
			sink.Snapshot(s.store.Snapshot())
		}
	}
}

func (s *source) end(run chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == run {
		s.ended = nil
	}
	close(run)
}

// Refresh satisfies kube.Source.
func (s *source) Refresh() {
	select {
	case s.refresh <- struct{}{}:
	default:
	}
}

// change changes the cluster, whether somebody is looking or not. When it returns, who looks has been told.
func (s *source) change(apply func(*kube.Store)) {
	c := change{apply, make(chan struct{})}
	for {
		s.mu.Lock()
		run := s.ended
		if run == nil {
			apply(s.store)
			s.store.Commit()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		select {
		case s.changes <- c:
			<-c.done
			return
		case <-run:
		}
	}
}

// services are the inputs of all services that exist, as they were given out last.
func (s *source) services() map[string]*messages.ServiceInput {
	inputs := map[string]*messages.ServiceInput{}
	for _, in := range s.store.Snapshot().GetServices() {
		if in.GetService() != nil {
			inputs[in.GetKey()] = in
		}
	}
	return inputs
}

// unsynced is a source that knows some services but never gets a complete list: it must not make anybody write.
type unsynced struct{ store *kube.Store }

// Run satisfies kube.Source.
func (s unsynced) Run(ctx context.Context, sink kube.Sink) error {
	sink.Health(false, "endpoint slices are not listed yet")
	s.store.Commit().Deliver(sink)
	partial := s.store.Snapshot()
	partial.Complete = false
	sink.Snapshot(partial)
	<-ctx.Done()
	return nil
}

// Refresh satisfies kube.Source.
func (unsynced) Refresh() {}

package actorstest

import (
	"context"
	"sync"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// Source is a cluster in memory and the kube.Source that reads it. Except in Hold, it keeps the
// contract of kube.Source. It outlives the processes that read it: a later Run delivers the changes
// made meanwhile.
type Source struct {
	wake chan struct{}           // of capacity one: Run has to deliver everything
	park func(ready func() bool) // lets Run wait in virtual time; nil = on the channel

	mu      sync.Mutex // held while the sink is called, which does not block
	store   *kube.Store
	sink    kube.Sink // of the present run; nil = no run
	held    string    // why the cluster cannot be seen; "" = it can
	partial bool      // an incomplete list is delivered
	listed  bool      // the sink has everything
	missed  bool      // a Snapshot was asked for while the cluster could not be seen
	told    bool      // the sink knows the health
}

var _ kube.Source = (*Source)(nil)

// NewSource returns the source of a node in an empty cluster.
func NewSource(node string) *Source {
	return &Source{store: kube.NewStore(node), wake: make(chan struct{}, 1)}
}

// Run satisfies kube.Source.
func (s *Source) Run(ctx context.Context, sink kube.Sink) error {
	select {
	case <-s.wake: // the first Snapshot is the answer to every earlier Refresh
	default:
	}
	s.locked(func() {
		s.sink, s.told, s.listed = sink, false, false
		s.deliver()
	})
	defer s.locked(func() { s.sink = nil })
	for s.wait(ctx) {
		s.locked(s.deliver)
	}
	return nil
}

// wait waits until a delivery is due; false = the context has ended.
func (s *Source) wait(ctx context.Context) bool {
	if s.park != nil {
		s.park(func() bool { return ctx.Err() != nil || len(s.wake) > 0 })
	}
	select {
	case <-ctx.Done():
		return false
	case <-s.wake:
		return true
	}
}

// deliver delivers everything to the sink. The lock is held.
func (s *Source) deliver() {
	switch {
	case s.held == "":
		s.store.Commit()
		s.sink.Snapshot(s.store.Snapshot())
		s.listed, s.missed = true, false
	case s.partial && !s.listed:
		s.store.Commit()
		incomplete := s.store.Snapshot()
		incomplete.Complete = false
		s.sink.Snapshot(incomplete)
	default:
		s.missed = true
	}
	s.tell()
}

// tell sends the sink the health, once. The lock is held.
func (s *Source) tell() {
	if !s.told {
		s.told = true
		s.sink.Health(kube.Health{OK: s.held == "", Reason: s.held})
	}
}

// Refresh satisfies kube.Source.
func (s *Source) Refresh() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Change changes the cluster. When it returns, the changes have been delivered, unless the source
// is held.
func (s *Source) Change(change func(*kube.Store)) {
	s.locked(func() {
		change(s.store)
		if s.sink != nil && s.held != "" {
			return
		}
		if changes := s.store.Commit(); s.sink != nil {
			changes.Deliver(s.sink)
		}
	})
}

// Hold begins an outage: the listener gets the reason, and no changes until Release. With partial,
// the next Run delivers an incomplete list, which only the mirror may do in production.
func (s *Source) Hold(reason string, partial bool) {
	s.locked(func() {
		s.told = s.told && s.held != "" // an outage is reported once
		s.held, s.partial = reason, partial
		if s.sink != nil {
			s.tell()
		}
	})
}

// Release ends the outage. A listener that had everything before gets the changes made meanwhile,
// another one gets everything.
func (s *Source) Release() {
	s.locked(func() {
		s.told = s.told && s.held == ""
		s.held = ""
		if s.sink != nil && s.listed && !s.missed {
			s.store.Commit().Deliver(s.sink)
			s.tell()
			return
		}
		s.Refresh()
	})
}

// Snapshot is the cluster as it was given out last.
func (s *Source) Snapshot() (snapshot *messages.Snapshot) {
	s.locked(func() { snapshot = s.store.Snapshot() })
	return snapshot
}

// Services are the inputs of all services that exist, by key, as they were given out last.
func (s *Source) Services() map[string]*messages.ServiceInput {
	inputs := map[string]*messages.ServiceInput{}
	for _, in := range s.Snapshot().GetServices() {
		if in.GetService() != nil {
			inputs[in.GetKey()] = in
		}
	}
	return inputs
}

func (s *Source) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

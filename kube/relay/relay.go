package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// ErrEnded says that a source returned without an error although its context had not ended.
var ErrEnded = errors.New("the source ended without an error")

// Relay is a kube.Feed on a source.
type Relay struct {
	source   kube.Source
	now      func() time.Time
	observer Observer // nil = none
	known    counted  // called by the source only, one call at a time

	mu       sync.Mutex   // held only around calls that do not block
	listener kube.Sink    // nil = none
	turn     uint64       // number of the current listener
	synced   bool         // the listener has got a Snapshot
	health   *kube.Health // last report of the source; nil = none yet
}

var _ kube.Feed = (*Relay)(nil)

// New returns a relay of a source that is not running. The observer sees every delivery before the
// listener; nil = no observer. now returns the time of the begin of an outage.
func New(source kube.Source, observer Observer, now func() time.Time) *Relay {
	return &Relay{source: source, observer: observer, now: now, known: counted{}}
}

// Run runs the source until ctx ends, then returns nil. An error means that the source can never
// work: the process must end. It is called once.
func (r *Relay) Run(ctx context.Context) error {
	err := r.source.Run(ctx, intake{r})
	switch {
	// An error after the end of the context does not count, because the requests of the source were
	// cancelled.
	case ctx.Err() != nil:
		return nil
	case err == nil:
		err = ErrEnded
	}
	return fmt.Errorf("kubernetes source: %w", err)
}

// Listen satisfies kube.Feed. The listener gets no changes before its Snapshot, because the
// Snapshot contains them.
func (r *Relay) Listen(sink kube.Sink) (leave func()) {
	r.mu.Lock()
	// A number, not the sink itself, identifies the listener: the same sink may listen twice.
	r.turn++
	turn := r.turn
	r.listener, r.synced = sink, false
	if r.health != nil {
		sink.Health(*r.health)
	}
	r.mu.Unlock()
	// The call is outside of the lock, because a source that answers at once needs the lock.
	r.source.Refresh()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.turn == turn {
			r.listener = nil
		}
	}
}

// Refresh satisfies kube.Feed.
func (r *Relay) Refresh() { r.source.Refresh() }

// intake is the sink of the source.
type intake struct{ *Relay }

var _ kube.Sink = intake{}

// ServiceChanged satisfies kube.Sink.
func (r intake) ServiceChanged(in *messages.ServiceInput) {
	if r.observer != nil {
		r.observer.ObjectsChanged(r.known.change(in))
	}
	r.change(func(s kube.Sink) { s.ServiceChanged(in) })
}

// NodeChanged satisfies kube.Sink.
func (r intake) NodeChanged(in *messages.NodeInput) {
	if r.observer != nil {
		r.observer.NodeChanged(in)
	}
	r.change(func(s kube.Sink) { s.NodeChanged(in) })
}

// change passes a change to a listener that has got a Snapshot.
func (r intake) change(deliver func(kube.Sink)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A change before the Snapshot could not be applied: the listener does not know the rest.
	if r.listener != nil && r.synced {
		deliver(r.listener)
	}
}

// Snapshot satisfies kube.Sink.
func (r intake) Snapshot(snapshot *messages.Snapshot) {
	if r.observer != nil {
		if snapshot.GetNode() != nil {
			r.observer.NodeChanged(snapshot.GetNode())
		}
		r.observer.ObjectsChanged(r.known.replace(snapshot))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		r.synced = true
		r.listener.Snapshot(snapshot)
	}
}

// Health satisfies kube.Sink.
func (r intake) Health(h kube.Health) {
	if r.observer != nil {
		r.observer.Health(h)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !h.OK && h.AsOf.IsZero() {
		h.AsOf = r.now()
		if before := r.health; before != nil && !before.OK {
			h.AsOf = before.AsOf // the outage continues with another reason
		}
	}
	r.health = &h
	if r.listener != nil {
		r.listener.Health(h)
	}
}

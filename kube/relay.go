package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// ErrEnded says that a source returned without an error although its context had not ended.
var ErrEnded = errors.New("the source ended without an error")

// Relay is a kube.Feed on a source.
type Relay struct {
	source   Source
	now      func() time.Time
	observer Observer // nil = none
	known    counted  // called by the source only, one call at a time

	mu       sync.Mutex // held only around calls that do not block
	listener Sink       // nil = none
	turn     uint64     // number of the current listener
	synced   bool       // the listener has got a Snapshot
	health   *Health    // last report of the source; nil = none yet
}

var _ Feed = (*Relay)(nil)

// NewRelay returns a relay of a source that is not running. The observer sees every delivery before
// the listener; nil = no observer. now returns the time of the begin of an outage.
func NewRelay(source Source, observer Observer, now func() time.Time) *Relay {
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
func (r *Relay) Listen(sink Sink) (leave func()) {
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

var _ Sink = intake{}

func (r intake) ServiceChanged(in *messages.ServiceInput) {
	if r.observer != nil {
		r.observer.ObjectsChanged(r.known.change(in))
	}
	r.change(func(s Sink) { s.ServiceChanged(in) })
}

func (r intake) NodeChanged(in *messages.NodeInput) {
	if r.observer != nil {
		r.observer.NodeChanged(in)
	}
	r.change(func(s Sink) { s.NodeChanged(in) })
}

// change passes a change to a listener that has got a Snapshot.
func (r intake) change(deliver func(Sink)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A change before the Snapshot could not be applied: the listener does not know the rest.
	if r.listener != nil && r.synced {
		deliver(r.listener)
	}
}

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

func (r intake) Health(h Health) {
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

// Observer sees every delivery of the source before the listener gets it. So on a simulated node
// the interface of a pod exists before its service, as on a real node. The methods are called one
// at a time and must not block.
type Observer interface {
	// NodeChanged gets the nodes and the pods of this node.
	NodeChanged(*messages.NodeInput)
	// ObjectsChanged gets the number of Services and EndpointSlices that are new, changed or gone.
	ObjectsChanged(services, slices int)
	// Health gets the health that the source reports.
	Health(Health)
}

// counted holds the last value of each service, to count changes as kube-proxy does. The values are
// shared with the listener.
type counted map[string]*messages.ServiceInput

// change counts the objects of one service that are new, changed or gone. Unchanged objects are
// shared between inputs, so that comparing pointers is enough.
func (c counted) change(in *messages.ServiceInput) (services, slices int) {
	before := c[in.GetKey()]
	if before == in {
		return 0, 0
	}
	if before.GetService() != in.GetService() {
		services = 1
	}
	old, gone := map[*messages.EndpointSlice]bool{}, map[string]bool{}
	for _, s := range before.GetSlices() {
		old[s], gone[s.GetName()] = true, true
	}
	for _, s := range in.GetSlices() {
		if !old[s] {
			slices++
		}
		delete(gone, s.GetName())
	}
	if in.GetService() == nil && len(in.GetSlices()) == 0 {
		delete(c, in.GetKey())
	} else {
		c[in.GetKey()] = in
	}
	return services, slices + len(gone)
}

// replace counts the changes in a list of everything.
func (c counted) replace(snapshot *messages.Snapshot) (services, slices int) {
	present := make(map[string]bool, len(snapshot.GetServices()))
	add := func(in *messages.ServiceInput) {
		a, b := c.change(in)
		services, slices = services+a, slices+b
	}
	for _, in := range snapshot.GetServices() {
		present[in.GetKey()] = true
		add(in)
	}
	for key := range c {
		if !present[key] {
			add(&messages.ServiceInput{Key: key})
		}
	}
	return services, slices
}

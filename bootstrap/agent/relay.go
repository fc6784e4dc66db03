package agent

import (
	"context"
	"sync"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// relay runs a source for as long as the agent lives and passes what it says to whoever is listening now: the watch of the present
// incarnation. What is known of the cluster therefore outlives the actor, and a restarted watch costs the API server nothing. A new listener
// gets a Snapshot, because it may have missed something.
type relay struct {
	source kube.Source
	ended  chan struct{} // closed when the source has ended by itself

	mu     sync.Mutex // never held across I/O: a sink does not block
	sink   kube.Sink  // nil while nobody listens
	turn   uint64     // counts the listeners
	health *sourceWord
	err    error
}

// sourceWord is what a source last said of itself.
type sourceWord struct {
	ok     bool
	reason string
}

var (
	_ kube.Source = (*relay)(nil)
	_ kube.Sink   = (*relay)(nil)
)

func newRelay(source kube.Source) *relay { return &relay{source: source, ended: make(chan struct{})} }

// work runs the source until ctx ends; it is called once.
func (r *relay) work(ctx context.Context) error {
	err := r.source.Run(ctx, r)
	if ctx.Err() != nil {
		return nil // the agent stops; so does whoever listens
	}
	r.mu.Lock()
	r.err = err
	r.mu.Unlock()
	close(r.ended)
	return nil // the listener reports it; its supervisor decides
}

// Run satisfies kube.Source: it listens until ctx ends. Unlike other sources it may be called again; the latest caller is told.
func (r *relay) Run(ctx context.Context, sink kube.Sink) error {
	r.mu.Lock()
	r.turn++
	turn := r.turn
	r.sink = sink
	if r.health != nil {
		sink.Health(r.health.ok, r.health.reason)
	}
	r.mu.Unlock()
	r.source.Refresh()
	defer r.leave(turn)
	select {
	case <-ctx.Done():
		return nil
	case <-r.ended:
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.err
	}
}

// leave ends the listening of one caller, unless another one has taken its place.
func (r *relay) leave(turn uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn == turn {
		r.sink = nil
	}
}

// Refresh satisfies kube.Source.
func (r *relay) Refresh() { r.source.Refresh() }

// tell passes something on.
func (r *relay) tell(say func(kube.Sink)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sink != nil {
		say(r.sink)
	}
}

// ServiceChanged satisfies kube.Sink.
func (r *relay) ServiceChanged(in *messages.ServiceInput) {
	r.tell(func(s kube.Sink) { s.ServiceChanged(in) })
}

// NodeChanged satisfies kube.Sink.
func (r *relay) NodeChanged(in *messages.NodeInput) { r.tell(func(s kube.Sink) { s.NodeChanged(in) }) }

// Snapshot satisfies kube.Sink.
func (r *relay) Snapshot(snapshot *messages.Snapshot) {
	r.tell(func(s kube.Sink) { s.Snapshot(snapshot) })
}

// Health satisfies kube.Sink.
func (r *relay) Health(ok bool, reason string) {
	r.mu.Lock()
	r.health = &sourceWord{ok, reason}
	r.mu.Unlock()
	r.tell(func(s kube.Sink) { s.Health(ok, reason) })
}

package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/troupe-vpp/troupe/messages"
)

// Syncer keeps this node's ID and VPP addresses in the node store and watches the records of its
// peers. New makes a Syncer; Run is called once. SetNodes and Publish may be called at any time,
// also before Run, from any goroutine.
type Syncer struct {
	store  Store
	traits traits
	cfg    Config
	log    *slog.Logger
	ran    atomic.Bool

	// mu guards the arguments of SetNodes and Publish until the loop takes them.
	mu    sync.Mutex
	view  view
	want  wanted
	fresh chan struct{} // holds a token while the loop has not taken them
}

// New makes a Syncer for one node. No other Syncer may use its store. Run validates the
// configuration.
func New(store Store, cfg Config, log *slog.Logger) *Syncer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Syncer{store: store, traits: store.traits(), cfg: cfg.withDefaults(), log: log.With("node", cfg.NodeName), fresh: make(chan struct{}, 1)}
}

// Run claims the ID and keeps records and addresses in their desired state until ctx ends; then it
// waits for its goroutines and returns nil. It keeps trying while the store does not answer. It
// fails at once with ErrConfig, and with ErrRunning at a second call.
//
// It calls out from one goroutine with a complete, immutable state: one at the start, then one
// after each change. It may skip states that follow each other quickly, but never the latest. out
// must not block. Run releases nothing at its end, because the ID belongs to the node and not to
// the process.
func (s *Syncer) Run(ctx context.Context, out func(*messages.ClusterState)) error {
	if err := s.cfg.validate(); err != nil {
		return err
	}
	if s.traits.layout.parse(s.traits.layout.name(s.cfg.NodeName)).kind != kindName {
		return fmt.Errorf("%w: NodeName %q is a reserved name in the node store", ErrConfig, s.cfg.NodeName)
	}
	if s.ran.Swap(true) {
		return ErrRunning
	}
	ctx, cancel := context.WithCancel(ctx)
	var goroutines sync.WaitGroup
	defer goroutines.Wait()
	defer cancel()

	inbox := make(chan any, 64)
	send := func(m any) {
		select {
		case inbox <- m:
		case <-ctx.Done():
		}
	}
	f := s.newFollower(send)
	goroutines.Go(func() { f.run(ctx) })
	if store, ok := s.store.(prober); ok {
		goroutines.Go(func() { f.probe(ctx, store, s.cfg.ProbeInterval) })
	}
	l := newLoop(s, f, out)
	l.write = func(op *operation) {
		goroutines.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, s.cfg.RequestTimeout)
			defer cancel()
			send(s.store.transact(ctx, op))
		})
	}
	l.run(ctx, inbox)
	return nil
}

// newFollower makes the follower.
func (s *Syncer) newFollower(send func(any)) *follower {
	return &follower{
		store: s.store, cfg: &s.cfg, backoff: s.cfg.delays(errorFactor), log: s.log, send: send, relist: make(chan struct{}, 1),
	}
}

// SetNodes sets the complete list of Kubernetes nodes. The Syncer takes from it the UID of this
// node, the addresses of all nodes, and the nodes that have left. It does not block; the latest
// value wins. The value is shared, not copied.
//
// nil means that the last value may be out of date. It stays in use, but the Syncer collects no
// node until the next value, and restarts all grace periods.
func (s *Syncer) SetNodes(nodes *messages.NodeInput) {
	s.mu.Lock()
	s.view = s.view.next(nodes)
	s.mu.Unlock()
	s.touch()
}

// Publish sets the VPP addresses of this node, each "ip/len". The Syncer stores them once it holds
// the ID, and again whenever the store has other addresses; ClusterState.published reports success.
// An empty list deletes them. Invalid entries are left out, and ClusterState.reason names them.
// Publish does not block; the latest value wins.
func (s *Syncer) Publish(addresses []string) {
	w := want(addresses)
	s.mu.Lock()
	s.want = w
	s.mu.Unlock()
	s.touch()
}

// latest returns the latest arguments of SetNodes and Publish.
func (s *Syncer) latest() (view, wanted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view, s.want
}

// touch wakes the loop. One token is enough, because the loop always takes the latest arguments.
func (s *Syncer) touch() {
	select {
	case s.fresh <- struct{}{}:
	default:
	}
}

package cluster

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/troupe-vpp/troupe/messages"
)

// Syncer keeps this node's ID and VPP addresses in etcd and watches those of its peers. Make one with New, call Run once; SetNodes and
// Publish may be called at any time, from any goroutine, before Run too.
type Syncer struct {
	client *clientv3.Client
	cfg    Config
	log    *slog.Logger
	ran    atomic.Bool

	// mu protects what SetNodes and Publish left for the loop.
	mu    sync.Mutex
	view  view
	want  wanted
	fresh chan struct{} // holds a token while there is something new
}

// New makes a Syncer for one node. It keeps the client but does not close it. Whether the configuration can work is told by Run.
func New(client *clientv3.Client, cfg Config, log *slog.Logger) *Syncer {
	cfg = cfg.withDefaults()
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Syncer{client: client, cfg: cfg, log: log.With("node", cfg.NodeName), fresh: make(chan struct{}, 1)}
}

// Run claims the ID and keeps everything in order until ctx ends; then it returns nil, with all its goroutines gone. It never gives up and
// never returns because etcd does not answer. It fails at once with ErrConfig, and with ErrRunning when it is called again.
//
// out gets a complete, immutable state from one goroutine: one at the start, then one whenever something changed. States that follow each
// other quickly may be skipped; the latest always arrives. out must not block. Nothing is released at the end: the ID belongs to the node
// and not to this process.
func (s *Syncer) Run(ctx context.Context, out func(*messages.ClusterState)) error {
	if err := s.cfg.validate(); err != nil {
		return err
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
	goroutines.Go(func() { f.probe(ctx, s.cfg.ProbeInterval) })
	l := newLoop(s, f, out)
	l.write = func(op *operation) {
		goroutines.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, s.cfg.RequestTimeout)
			defer cancel()
			send(transact(ctx, s.client, op))
		})
	}
	l.run(ctx, inbox)
	return nil
}

// newFollower makes the follower with a source of randomness of its own.
func (s *Syncer) newFollower(send func(any)) *follower {
	return &follower{
		client: s.client, layout: layout{s.cfg.Prefix}, timeout: s.cfg.RequestTimeout, every: s.cfg.RelistInterval,
		backoff: delays{
			min: s.cfg.BackoffMin * errorFactor, max: s.cfg.BackoffMax * errorFactor,
			rand: rand.New(rand.NewPCG(s.cfg.Rand.Uint64(), s.cfg.Rand.Uint64())),
		},
		log: s.log, send: send, relist: make(chan struct{}, 1),
	}
}

// SetNodes hands over what Kubernetes says of the nodes: the UID of this one, the addresses of all, and who has left. It does not block; of
// several values the latest wins. The value must be complete and is shared, not copied.
//
// nil says that the source cannot vouch for its last value any more. That value stays in use, except that nobody is collected until the
// next one comes, and the clocks of all grace periods start anew.
func (s *Syncer) SetNodes(nodes *messages.NodeInput) {
	s.mu.Lock()
	s.view = s.view.next(nodes)
	s.mu.Unlock()
	s.touch()
}

// Publish says which VPP addresses this node has, each "ip/len". They are stored as soon as the ID is held, and stored again whenever etcd
// has something else; ClusterState.published tells when it is done. An empty list withdraws them. Entries that are no addresses are left
// out and named in ClusterState.reason. It does not block; of several values the latest wins.
func (s *Syncer) Publish(addresses []string) {
	w := want(addresses)
	s.mu.Lock()
	s.want = w
	s.mu.Unlock()
	s.touch()
}

// latest returns what the callers have said last.
func (s *Syncer) latest() (view, wanted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view, s.want
}

func (s *Syncer) touch() {
	select {
	case s.fresh <- struct{}{}:
	default:
	}
}

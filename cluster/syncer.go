package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

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

// maxNodeName is the longest name of a Kubernetes Node (RFC 1123 subdomain).
const maxNodeName = 253

// Config configures a Syncer. The zero value of a field means its default, except for NodeName.
type Config struct {
	// NodeName is the name of this node in Kubernetes. Required. Kubernetes must accept the name;
	// it has at most 253 bytes.
	NodeName string
	// GracePeriod is the time for which this observer must miss a node in Kubernetes without
	// interruption before it releases the node's ID. Every observer adds a random time of up to a
	// tenth, so that the observers do not collect all at once. Default 10 min.
	GracePeriod time.Duration
	// LastID is the ID that an earlier process of this node has held, from the local mirror; 0 =
	// unknown. A record in the store under this node's name takes precedence. Without such a record
	// (the store lost its data) the node claims LastID again. If another node holds LastID, the
	// claim is fenced.
	LastID uint32
	// LastUID is the UID that the Kubernetes Node had when LastID was stored; "" = unknown. If
	// Kubernetes reports another UID, the Node has been created again, and the Syncer ignores
	// LastID.
	LastUID string
	// RequestTimeout limits one list or transaction. Default 5 s.
	RequestTimeout time.Duration
	// ProbeInterval is the interval of requests that check whether etcd answers and still has the
	// revision of the watch. It bounds the time until the Syncer detects a lost connection, or the
	// loss of etcd's data. Other stores are not probed. Default 5 s.
	ProbeInterval time.Duration
	// BackoffMin and BackoffMax bound the random back-off before a transaction is retried. The n-th
	// delay is an eighth to all of min(BackoffMax, BackoffMin*2^n) after a conflict, and 16
	// times as long after an error. Defaults 10 ms and 500 ms.
	BackoffMin, BackoffMax time.Duration
	// Now is the clock of the grace period. Any goroutine of the Syncer may call it. Default
	// time.Now.
	Now func() time.Time
}

// withDefaults returns the configuration with a default in every zero field.
func (c Config) withDefaults() Config {
	c.GracePeriod = cmp.Or(c.GracePeriod, 10*time.Minute)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 5*time.Second)
	c.ProbeInterval = cmp.Or(c.ProbeInterval, 5*time.Second)
	c.BackoffMin = cmp.Or(c.BackoffMin, 10*time.Millisecond)
	c.BackoffMax = cmp.Or(c.BackoffMax, 500*time.Millisecond)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// validate reports the first invalid field of a configuration with defaults.
func (c Config) validate() error {
	switch {
	case !validNodeName(c.NodeName):
		return fmt.Errorf("%w: NodeName %q is not the name of a Kubernetes node", ErrConfig, c.NodeName)
	case c.GracePeriod < 0, c.RequestTimeout < 0, c.ProbeInterval < 0, c.BackoffMin < 0:
		return fmt.Errorf("%w: negative duration", ErrConfig)
	case c.BackoffMax < c.BackoffMin:
		return fmt.Errorf("%w: BackoffMax %s is less than BackoffMin %s", ErrConfig, c.BackoffMax, c.BackoffMin)
	}
	return nil
}

// validNodeName reports whether the name can be the last element of a key. It allows more than RFC
// 1123, because it only checks that the key of one node cannot be part of the key of another.
func validNodeName(name string) bool {
	if name == "" || len(name) > maxNodeName {
		return false
	}
	for _, r := range name {
		if r <= ' ' || r == '/' || r >= 0x7f {
			return false
		}
	}
	return true
}

var (
	// ErrConfig marks an invalid configuration. The error names the field and the value.
	ErrConfig = errors.New("invalid cluster configuration")
	// ErrUndecodable marks a value in the store that does not have the type of its key. It
	// never counts as a deletion: the last good value of the key stays valid.
	ErrUndecodable = errors.New("undecodable record")
	// ErrTooLarge marks a value above the size limit of its type.
	ErrTooLarge = errors.New("record too large")
	// ErrForeign marks a Lease that has the name of a node and does not belong to the node
	// store. The store never changes such a Lease; the error tells the operator what to do.
	ErrForeign = errors.New("foreign lease")
	// ErrRunning is returned by a second call of Syncer.Run, which may be called only once.
	ErrRunning = errors.New("syncer has been run before")
)

package cluster

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Messages of the follower and the prober to the loop.
type (
	// listed is the complete content of the store at one revision.
	listed struct {
		revision int64
		pairs    []pair
	}
	// changed holds later changes: complete revisions, in order. Without changes it means that the
	// store answers.
	changed struct{ changes []change }
	// probed is the result of a request that checks whether the store answers.
	probed struct{ err error }
)

// follower keeps the keyspace of the loop current. It lists, then watches from the revision of the
// list. When the watch breaks, it watches again if the store can continue, otherwise it lists
// again. It never gives up.
type follower struct {
	store   Store
	cfg     *Config
	backoff wait.Backoff
	log     *slog.Logger
	send    func(any)
	// relist holds a token while a request for a new list is pending.
	relist chan struct{}
}

// askRelist requests a new list. It does not block; one token is enough, because a list is always
// complete.
func (f *follower) askRelist() {
	select {
	case f.relist <- struct{}{}:
	default:
	}
}

// run follows the store until ctx ends.
func (f *follower) run(ctx context.Context) {
	at := int64(0) // the watch starts at this revision; 0 = list first
	for ctx.Err() == nil {
		var err error
		if at == 0 {
			at, err = f.list(ctx)
		}
		if err == nil {
			at, err = f.watch(ctx, at)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if errors.Is(err, errGap) {
			f.log.Info("watch of the node store has a gap, listing again", "err", err)
		} else {
			f.send(probed{err: err})
		}
		sleep(ctx, f.backoff.Step())
	}
}

// list sends a complete list to the loop and returns its revision.
func (f *follower) list(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.RequestTimeout)
	defer cancel()
	list, err := f.store.list(ctx)
	if err != nil {
		return 0, err
	}
	f.send(list)
	return list.revision, nil
}

// watch sends changes to the loop until the watch ends. When a new list is requested or due, it
// returns 0 and nil.
func (f *follower) watch(ctx context.Context, after int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, f.store.traits().relist)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-f.relist:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { <-stopped }()
	defer cancel()
	begun := time.Now()
	at, err := f.store.watch(ctx, after, func(changes []change) { f.send(changed{changes: changes}) })
	if time.Since(begun) > errorFactor*f.cfg.BackoffMax {
		f.backoff = f.cfg.delays(errorFactor) // a watch that lasts is a success
	}
	if ctx.Err() != nil {
		return 0, nil
	}
	return at, err
}

// probe checks at every interval whether the store answers, until ctx ends.
func (f *follower) probe(ctx context.Context, store prober, every time.Duration) {
	for sleep(ctx, every) {
		err := f.probeOnce(ctx, store)
		if errors.Is(err, errGap) {
			f.log.Warn("the node store is another one or has lost data, listing again", "err", err)
			f.askRelist()
			err = nil // it answers
		}
		if ctx.Err() == nil {
			f.send(probed{err: err})
		}
	}
}

func (f *follower) probeOnce(ctx context.Context, store prober) error {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.RequestTimeout)
	defer cancel()
	return store.probe(ctx)
}

// errorFactor makes the back-off after errors longer than after conflicts, because a store that
// does not answer needs longer pauses.
const errorFactor = 16

// delays returns the back-off after conflicts (factor 1) or errors (errorFactor). It never ends.
func (c *Config) delays(factor time.Duration) wait.Backoff {
	const part = 8 // of a delay that is not random
	return wait.Backoff{Duration: factor * c.BackoffMin / part, Factor: 2, Jitter: part - 1, Steps: 32, Cap: factor * c.BackoffMax / part}
}

// sleep waits for d, or returns false when ctx ends earlier.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

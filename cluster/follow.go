package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Messages of the follower and the prober to the loop.
type (
	// listed is the complete content under the root at one revision.
	listed struct {
		revision int64
		pairs    []pair
	}
	// changed are later changes, complete revisions in order.
	changed struct{ changes []change }
	// probed is the result of a request that checks whether etcd answers.
	probed struct{ err error }
)

// errGap means that the watch cannot continue from its revision, so that a new list is needed.
var errGap = errors.New("watch has a gap")

// follower keeps the keyspace of the loop current: it lists, then watches from the next revision; when the watch breaks or has a gap, it lists
// again. It never gives up.
type follower struct {
	client  *clientv3.Client
	layout  layout
	timeout time.Duration
	every   time.Duration
	backoff delays
	log     *slog.Logger
	send    func(any)
	// relist holds a token while a new list is requested.
	relist chan struct{}
	// seen and cluster are the highest revision sent to the loop and the ID of its etcd cluster; the prober compares them with etcd.
	seen    atomic.Int64
	cluster atomic.Uint64
}

// askRelist requests a new list. It does not block; one token is enough, because a list is always complete.
func (f *follower) askRelist() {
	select {
	case f.relist <- struct{}{}:
	default:
	}
}

// run follows etcd until ctx ends.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		revision, err := f.list(ctx)
		if err == nil {
			err = f.watch(ctx, revision+1)
		}
		if err == nil || ctx.Err() != nil {
			continue // a new list was requested or is due
		}
		if errors.Is(err, errGap) {
			f.log.Info("etcd watch has a gap, listing again", "err", err)
		} else {
			f.send(probed{err: err})
		}
		sleep(ctx, f.backoff.next())
	}
}

// list reads everything in one request, and so at one revision.
func (f *follower) list(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	resp, err := f.client.Get(ctx, f.layout.root(), clientv3.WithPrefix())
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", f.layout.root(), err)
	}
	pairs := make([]pair, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		pairs[i] = pairOf(kv.Key, kv.Value, kv.ModRevision)
	}
	revision := resp.Header.GetRevision()
	f.seen.Store(revision)
	f.cluster.Store(resp.Header.GetClusterId())
	f.send(listed{revision: revision, pairs: pairs})
	return revision, nil
}

// watch sends changes to the loop until a new list is requested or due (nil), the watch has a gap (errGap) or breaks. A goroutine opens the
// watch, because the client blocks while etcd is down.
func (f *follower) watch(ctx context.Context, revision int64) error {
	due, cancelDue := context.WithTimeout(ctx, f.every)
	defer cancelDue()
	// Without this option the watch of a member without a leader is silent instead of broken.
	watchCtx, cancel := context.WithCancel(clientv3.WithRequireLeader(due))
	defer cancel()
	opened := make(chan clientv3.WatchChan, 1)
	go func() {
		opened <- f.client.Watch(watchCtx, f.layout.root(), clientv3.WithPrefix(), clientv3.WithRev(revision))
	}()
	var responses clientv3.WatchChan
	defer func() {
		cancel()
		if responses == nil {
			<-opened // the goroutine ends with this call
		}
	}()
	for {
		select {
		case responses = <-opened:
			opened = nil
		case <-f.relist:
			return nil
		case <-due.Done():
			return nil
		case resp, ok := <-responses:
			if err := watchError(resp, ok); err != nil {
				if due.Err() != nil {
					return nil
				}
				return err
			}
			f.pass(resp)
		}
	}
}

// watchError returns the reason for the end of a watch; nil = it continues.
func watchError(resp clientv3.WatchResponse, ok bool) error {
	switch err := resp.Err(); {
	case !ok:
		return fmt.Errorf("%w: closed by the client", errGap)
	case resp.CompactRevision != 0:
		return fmt.Errorf("%w: compacted up to revision %d", errGap, resp.CompactRevision)
	case err != nil:
		return fmt.Errorf("watch: %w", err)
	default:
		return nil
	}
}

// pass sends one response to the loop.
func (f *follower) pass(resp clientv3.WatchResponse) {
	if len(resp.Events) == 0 {
		return
	}
	f.backoff.reset()
	changes := make([]change, len(resp.Events))
	for i, e := range resp.Events {
		changes[i] = change{pair: pairOf(e.Kv.Key, e.Kv.Value, e.Kv.ModRevision), deleted: e.Type == clientv3.EventTypeDelete}
	}
	f.seen.Store(changes[len(changes)-1].mod)
	f.send(changed{changes: changes})
}

func pairOf(key, value []byte, mod int64) pair {
	return pair{key: string(key), value: value, mod: mod}
}

// probe checks at every interval whether etcd answers, until ctx ends. A watch alone is silent when nothing changes, but also after a lost
// connection, and after etcd came back without its data, when the watch waits for a revision that etcd will reach much later.
func (f *follower) probe(ctx context.Context, every time.Duration) {
	for sleep(ctx, every) {
		seen, cluster := f.seen.Load(), f.cluster.Load()
		err := f.probeOnce(ctx, seen, cluster)
		if ctx.Err() == nil {
			f.send(probed{err: err})
		}
	}
}

func (f *follower) probeOnce(ctx context.Context, seen int64, cluster uint64) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	resp, err := f.client.Get(ctx, f.layout.probe(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if header := resp.Header; cluster != 0 && (header.GetClusterId() != cluster || header.GetRevision() < seen) {
		f.log.Warn("etcd has another cluster ID or an older revision, listing again",
			"cluster", header.GetClusterId(), "clusterBefore", cluster, "revision", header.GetRevision(), "revisionBefore", seen)
		f.askRelist()
	}
	return nil
}

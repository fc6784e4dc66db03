package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// DefaultPrefix is the prefix of the keys in etcd.
const DefaultPrefix = "/troupe/v1"

// etcdStore keeps the records in etcd. A watch of etcd is silent when nothing changes, but also
// after a lost connection. It is silent too after etcd has lost its data, because it waits for a
// revision that etcd reaches much later. The probe finds both cases.
type etcdStore struct {
	client *clientv3.Client
	keys   etcdLayout
	// seen is the highest revision passed on, cluster the ID of its etcd cluster. The probe
	// compares both with etcd.
	seen    atomic.Int64
	cluster atomic.Uint64
}

var _ prober = (*etcdStore)(nil)

// NewEtcdStore makes a store in etcd, with all keys under a prefix; "" = DefaultPrefix. Clusters
// that share an etcd need different prefixes. Under one prefix the nodes of each cluster would
// collect the IDs of the other. The caller closes the client after every Syncer that uses it has
// returned.
func NewEtcdStore(client *clientv3.Client, prefix string) Store {
	return &etcdStore{client: client, keys: etcdLayout{cmp.Or(strings.TrimRight(prefix, "/"), DefaultPrefix)}}
}

// traits satisfies Store. 5 ms is the duration of a transaction on a slow but healthy etcd.
func (s *etcdStore) traits() traits {
	return traits{name: "etcd", layout: s.keys, relist: 10 * time.Minute, turn: 5 * time.Millisecond, maxTurn: 2 * time.Second}
}

// list satisfies Store with one request.
func (s *etcdStore) list(ctx context.Context) (listed, error) {
	resp, err := s.client.Get(ctx, s.keys.root(), clientv3.WithPrefix())
	if err != nil {
		return listed{}, fmt.Errorf("list %s: %w", s.keys.root(), err)
	}
	pairs := make([]pair, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		pairs[i] = pairOf(kv.Key, kv.Value, kv.ModRevision)
	}
	revision := resp.Header.GetRevision()
	s.seen.Store(revision)
	s.cluster.Store(resp.Header.GetClusterId())
	return listed{revision: revision, pairs: pairs}, nil
}

// watch satisfies Store. A goroutine opens the watch, because the client blocks while etcd is down.
// When the watch ends, watch always asks for a list: the client itself resumes watches that can be
// resumed.
func (s *etcdStore) watch(ctx context.Context, after int64, out func([]change)) (int64, error) {
	// Without this option the watch of a member without a leader is silent instead of broken.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	opened := make(chan clientv3.WatchChan, 1)
	go func() {
		opened <- s.client.Watch(ctx, s.keys.root(), clientv3.WithPrefix(), clientv3.WithRev(after+1))
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
		case <-ctx.Done():
			return 0, ctx.Err()
		case resp, ok := <-responses:
			if err := watchError(resp, ok); err != nil {
				return 0, err
			}
			if len(resp.Events) > 0 {
				s.pass(resp, out)
			}
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

// pass passes the changes of one response on.
func (s *etcdStore) pass(resp clientv3.WatchResponse, out func([]change)) {
	changes := make([]change, len(resp.Events))
	for i, e := range resp.Events {
		changes[i] = change{pair: pairOf(e.Kv.Key, e.Kv.Value, e.Kv.ModRevision), deleted: e.Type == clientv3.EventTypeDelete}
	}
	s.seen.Store(changes[len(changes)-1].mod)
	out(changes)
}

func pairOf(key, value []byte, mod int64) pair {
	return pair{key: string(key), value: value, mod: mod}
}

// probe satisfies prober with a request for a key that does not exist.
func (s *etcdStore) probe(ctx context.Context) error {
	seen, cluster := s.seen.Load(), s.cluster.Load()
	resp, err := s.client.Get(ctx, s.keys.probe(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if header := resp.Header; cluster != 0 && (header.GetClusterId() != cluster || header.GetRevision() < seen) {
		return fmt.Errorf("%w: cluster %x at revision %d, before cluster %x at revision %d", errGap, header.GetClusterId(), header.GetRevision(), cluster, seen)
	}
	return nil
}

// transact satisfies Store with one etcd transaction.
func (s *etcdStore) transact(ctx context.Context, op *operation) wrote {
	resp, err := s.client.Txn(ctx).If(comparisons(op.guards)...).Then(branchOps(op.branches)...).Commit()
	if err != nil {
		return wrote{op: op, err: fmt.Errorf("%s %s: %w", op.verb, op.about, err)}
	}
	return wrote{op: op, ok: resp.Succeeded && carriedOut(resp), revision: resp.Header.GetRevision()}
}

func comparisons(guards []guard) []clientv3.Cmp {
	cmps := make([]clientv3.Cmp, len(guards))
	for i, g := range guards {
		// The modification revision of a key that does not exist is 0.
		cmps[i] = clientv3.Compare(clientv3.ModRevision(g.key), "=", g.mod)
	}
	return cmps
}

// branchOps nests the branches: a transaction for the first branch has the transaction for the rest
// as its else part.
func branchOps(branches []branch) []clientv3.Op {
	if len(branches) == 0 {
		return nil
	}
	b := branches[0]
	var ops []clientv3.Op
	for _, p := range b.puts {
		ops = append(ops, clientv3.OpPut(p.key, p.value))
	}
	for _, key := range b.deletes {
		ops = append(ops, clientv3.OpDelete(key))
	}
	return []clientv3.Op{clientv3.OpTxn(comparisons(b.guards), ops, branchOps(branches[1:]))}
}

// carriedOut reports whether etcd executed one of the branches.
func carriedOut(resp *clientv3.TxnResponse) bool {
	responses := resp.Responses
	for len(responses) == 1 {
		nested := responses[0].GetResponseTxn()
		if nested == nil || nested.GetSucceeded() {
			return true
		}
		responses = nested.GetResponses()
	}
	return false
}

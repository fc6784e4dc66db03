package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/cluster"
	"github.com/troupe-vpp/troupe/messages"
)

// connect returns a client of etcd; it waits for an embedded etcd that is starting.
type connect func(context.Context) (*clientv3.Client, error)

// nodeSync runs one cluster.Syncer after the other, because a syncer runs only once and its actor may be restarted. It keeps the input of the
// next one: the latest nodes and addresses, and the ID of this node. All methods are safe for concurrent use.
type nodeSync struct {
	connect connect
	cfg     cluster.Config
	log     *slog.Logger
	claims  *claims // of the local mirror, nil = there is none

	mu        sync.Mutex
	syncer    *cluster.Syncer // nil while none runs
	nodes     *messages.NodeInput
	told      bool // SetNodes was called: nil is a value, too
	untrusted bool // the source may miss nodes
	addresses []string
}

var _ desired.NodeSync = (*nodeSync)(nil)

// nodeSync makes node sync, with an embedded etcd if configured; nil without a store.
func (a *Agent) nodeSync() (*nodeSync, error) {
	var to connect
	var err error
	switch a.cfg.Etcd.Mode {
	case config.EtcdNone:
		return nil, nil //nolint:nilnil // no store is a valid configuration
	case config.EtcdEmbedded:
		to, err = a.embeddedEtcd()
	default:
		to, err = a.externalEtcd()
	}
	if err != nil {
		return nil, err
	}
	n := &nodeSync{connect: to, log: a.log.With("part", "cluster"), claims: a.claims(), cfg: cluster.Config{
		Prefix: a.cfg.Etcd.Prefix, NodeName: a.cfg.NodeName, GracePeriod: a.cfg.Etcd.GracePeriod.Duration(),
	}}
	n.cfg.LastID, n.cfg.LastUID = n.claims.last(a.cfg.NodeName, a.cfg.Etcd.Prefix)
	return n, nil
}

// externalEtcd makes a client of the configured etcd, which connects and reconnects in the background.
func (a *Agent) externalEtcd() (connect, error) {
	client, err := cluster.NewClient(cluster.ClientConfig{
		Endpoints: a.cfg.Etcd.Endpoints, CA: a.cfg.Etcd.CA, Cert: a.cfg.Etcd.Cert, Key: a.cfg.Etcd.Key, DialTimeout: 5 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	a.onClose("etcd client", closeWith(client))
	return func(context.Context) (*clientv3.Client, error) { return client, nil }, nil
}

// Run satisfies desired.NodeSync. A restarted actor calls it again.
func (n *nodeSync) Run(ctx context.Context, out func(*messages.ClusterState)) error {
	out(&messages.ClusterState{Self: n.cfg.NodeName, Id: n.lastID(), Reason: cluster.Unconfirmed(n.lastID(), "waiting for etcd")})
	client, err := n.connect(ctx)
	if err != nil {
		return err
	}
	syncer := n.begin(client)
	defer n.end()
	return syncer.Run(ctx, func(state *messages.ClusterState) {
		n.remember(state)
		out(state)
	})
}

// begin makes a syncer with the input of the one before.
func (n *nodeSync) begin(client *clientv3.Client) *cluster.Syncer {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.syncer = cluster.New(client, n.cfg, n.log)
	n.tellNodes()
	if n.addresses != nil {
		n.syncer.Publish(n.addresses)
	}
	return n.syncer
}

// end forgets the syncer. Later input is kept for the next one.
func (n *nodeSync) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.syncer = nil
}

// remember keeps the ID that this node holds, for the next syncer and, in the local mirror, for the next process.
func (n *nodeSync) remember(state *messages.ClusterState) {
	if state.GetClaim() != messages.ClaimState_CLAIM_HELD {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cfg.LastID, n.cfg.LastUID = state.GetId(), state.GetNodes()[state.GetSelf()].GetUid()
	n.claims.keep(&messages.MirroredClaim{Id: n.cfg.LastID, Node: n.cfg.NodeName, Uid: n.cfg.LastUID, Prefix: n.cfg.Prefix})
}

// lastID is the ID that this node has held last, 0 = none. It is reported at once, because VPP still uses it.
func (n *nodeSync) lastID() uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cfg.LastID
}

// SetNodes satisfies desired.NodeSync.
func (n *nodeSync) SetNodes(in *messages.NodeInput) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes, n.told = in, true
	n.tellNodes()
}

// trust reports whether the source sees the cluster. While it does not, or delivers from the local mirror, a node that is missing may exist and
// must not lose its ID.
func (n *nodeSync) trust(ok bool) {
	if n == nil {
		return // no store
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.untrusted != !ok {
		n.untrusted = !ok
		n.tellNodes()
	}
}

// tellNodes passes the latest nodes to the syncer. The lock must be held.
func (n *nodeSync) tellNodes() {
	if n.syncer == nil || !n.told {
		return
	}
	n.syncer.SetNodes(n.nodes)
	if n.untrusted {
		n.syncer.SetNodes(nil)
	}
}

// Publish satisfies desired.NodeSync.
func (n *nodeSync) Publish(addresses []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses = addresses
	if n.syncer != nil {
		n.syncer.Publish(addresses)
	}
}

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
	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/kube/mirror"
	"github.com/troupe-vpp/troupe/messages"
)

// connect returns a client of etcd; it waits for an embedded etcd that is starting.
type connect func(context.Context) (*clientv3.Client, error)

// store makes the store of a connection, with all keys under a prefix.
func (c connect) store(prefix string) openStore {
	return func(ctx context.Context) (cluster.Store, error) {
		client, err := c(ctx)
		if err != nil {
			return nil, err
		}
		return cluster.NewEtcdStore(client, prefix), nil
	}
}

// openStore makes the node store of one syncer.
type openStore func(context.Context) (cluster.Store, error)

// nodeSync runs one cluster.Syncer after the other, because a syncer runs only once and its actor
// may be restarted. It keeps the input of the next one: the latest nodes and addresses, and the ID
// of this node. All methods are safe for concurrent use.
type nodeSync struct {
	open openStore
	// waitsFor is the store in the reason of a claim before it answers.
	waitsFor string
	place    string // names the store, because IDs of different stores are unrelated
	cfg      cluster.Config
	log      *slog.Logger
	claims   *mirror.Claims // nil = there is no local mirror

	mu        sync.Mutex
	syncer    *cluster.Syncer // nil while none runs
	nodes     *messages.NodeInput
	told      bool // SetNodes was called; nodes may be nil then
	untrusted bool // nodes may be incomplete
	addresses []string
}

var _ desired.NodeSync = (*nodeSync)(nil)

// nodeSync makes node sync for the configured store; nil = there is no store. client is the client
// of the API server; nil = there is none.
func (a *Agent) nodeSync(client *apiserver.Client) (*nodeSync, error) {
	kind, why := a.cfg.Store()
	n := &nodeSync{log: a.log.With("part", "cluster"), cfg: cluster.Config{
		NodeName: a.cfg.NodeName, GracePeriod: a.cfg.Etcd.GracePeriod.Duration(),
	}}
	switch kind {
	case config.StoreNone:
		n.log.Info("node store chosen", "store", kind, "why", why)
		return nil, nil //nolint:nilnil // no store is a valid configuration
	case config.StoreKubernetes:
		namespace := a.cfg.StoreNamespace()
		n.place, n.waitsFor = "leases/"+namespace, "the API server"
		n.open = func(context.Context) (cluster.Store, error) {
			return cluster.NewLeaseStore(client.Leases(namespace), namespace), nil
		}
	default:
		n.place, n.waitsFor, n.open = a.cfg.Etcd.Prefix, "etcd", a.etcd.store(a.cfg.Etcd.Prefix)
	}
	n.log.Info("node store chosen", "store", kind, "place", n.place, "why", why)
	n.claims = a.claims()
	n.cfg.LastID, n.cfg.LastUID = n.claims.Last(a.cfg.NodeName, n.place)
	return n, nil
}

// claims starts to save the node ID, if a directory is configured for the local mirror.
func (a *Agent) claims() *mirror.Claims {
	dir := a.cfg.MirrorDir()
	if dir == "" {
		return nil
	}
	c := mirror.NewClaims(mirror.NewStore(dir, durable.Disk{}), a.log.With("part", "mirror"))
	a.own("local mirror of the node ID", c.Run)
	return c
}

// connectEtcd makes the connection to the configured etcd, or starts an embedded etcd; nil = there
// is no etcd.
func (a *Agent) connectEtcd() (connect, error) {
	switch {
	case !a.cfg.HasEtcd():
		return nil, nil //nolint:nilnil // no etcd is a valid configuration
	case a.cfg.Etcd.Mode == config.EtcdEmbedded:
		return a.embeddedEtcd()
	default:
		return a.externalEtcd()
	}
}

// externalEtcd makes a client of the configured etcd, which connects and reconnects in the
// background.
func (a *Agent) externalEtcd() (connect, error) {
	client, err := etcd.NewClient(etcd.ClientConfig{
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
	out(&messages.ClusterState{Self: n.cfg.NodeName, Id: n.lastID(), Reason: cluster.Unconfirmed(n.lastID(), "waiting for "+n.waitsFor)})
	store, err := n.open(ctx)
	if err != nil {
		return err
	}
	syncer := n.begin(store)
	defer n.end()
	return syncer.Run(ctx, func(state *messages.ClusterState) {
		n.remember(state)
		out(state)
	})
}

// begin makes a syncer with the latest input.
func (n *nodeSync) begin(store cluster.Store) *cluster.Syncer {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.syncer = cluster.New(store, n.cfg, n.log)
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

// remember saves the ID that this node holds, for the next syncer and, in the local mirror, for the
// next process.
func (n *nodeSync) remember(state *messages.ClusterState) {
	if state.GetClaim() != messages.ClaimState_CLAIM_HELD {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cfg.LastID, n.cfg.LastUID = state.GetId(), state.GetNodes()[state.GetSelf()].GetUid()
	n.claims.Keep(&messages.MirroredClaim{Id: n.cfg.LastID, Node: n.cfg.NodeName, Uid: n.cfg.LastUID, Prefix: n.place})
}

// lastID is the latest ID of this node; 0 = it had none. Run reports it at once, because VPP still
// uses it.
func (n *nodeSync) lastID() uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cfg.LastID
}

func (n *nodeSync) SetNodes(in *messages.NodeInput) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes, n.told = in, true
	n.tellNodes()
}

// trust sets whether the source sees the cluster. While it does not, or delivers from the local
// mirror, a missing node may exist and must not lose its ID.
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

func (n *nodeSync) Publish(addresses []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses = addresses
	if n.syncer != nil {
		n.syncer.Publish(addresses)
	}
}

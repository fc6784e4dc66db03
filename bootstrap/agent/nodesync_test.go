package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/cluster"
	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/cluster/etcd/etcdtest"
	"github.com/troupe-vpp/troupe/messages"
)

// embedded runs an etcd for one test.
func embedded(t *testing.T) *etcd.Embedded {
	t.Helper()
	etcd, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: shortDir(t), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := etcd.Close(); err != nil {
			t.Errorf("close etcd: %v", err)
		}
	})
	return etcd
}

// syncing is one run of a node sync.
type syncing struct {
	latest atomic.Pointer[messages.ClusterState]
	cancel context.CancelFunc
	done   chan error
}

func runSync(t *testing.T, n *nodeSync) *syncing {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &syncing{cancel: cancel, done: make(chan error, 1)}
	go func() { s.done <- n.Run(ctx, func(state *messages.ClusterState) { s.latest.Store(state) }) }()
	t.Cleanup(cancel)
	return s
}

func (s *syncing) end(t *testing.T) {
	t.Helper()
	s.cancel()
	if err := <-s.done; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

func (s *syncing) holds(id uint32, address string) func() bool {
	return func() bool {
		state := s.latest.Load()
		vpp := state.GetNodes()["n1"].GetVppAddresses()
		return state.GetClaim() == messages.ClaimState_CLAIM_HELD && state.GetId() == id && len(vpp) == 1 && vpp[0] == address
	}
}

// storeOf makes stores in an etcd.
func storeOf(etcd *etcd.Embedded) openStore {
	return func(context.Context) (cluster.Store, error) { return cluster.NewEtcdStore(etcd.Client(), ""), nil }
}

func nodeOne(uid string) *messages.NodeInput {
	self := &messages.Node{Name: "n1", Uid: uid}
	return &messages.NodeInput{Self: self, Nodes: map[string]*messages.Node{"n1": self, "n2": {Name: "n2", Uid: "2"}}}
}

// TestNodeSyncRunsAgain: an actor that is restarted runs the same node sync again, with the latest
// input of the first run.
func TestNodeSyncRunsAgain(t *testing.T) {
	etcd := embedded(t)
	n := &nodeSync{
		cfg: cluster.Config{NodeName: "n1"}, log: quiet(), open: storeOf(etcd),
	}
	n.SetNodes(nodeOne("1")) // before it runs
	n.Publish([]string{"192.168.7.1/24"})
	for range 3 {
		run := runSync(t, n)
		eventually(t, "the ID is held", run.holds(1, "192.168.7.1/24"))
		run.end(t)
	}
	// Addresses that are published between two runs, or during one, count as well.
	n.Publish([]string{"192.168.7.2/24"})
	run := runSync(t, n)
	eventually(t, "another address", run.holds(1, "192.168.7.2/24"))
	n.Publish([]string{"192.168.7.3/24"})
	n.SetNodes(nodeOne("1"))
	eventually(t, "a third address", run.holds(1, "192.168.7.3/24"))
	run.end(t)
}

// TestNodeSyncKeepsItsID: an ID that was held comes back, also from an etcd that has lost
// everything meanwhile.
func TestNodeSyncKeepsItsID(t *testing.T) {
	first, second := embedded(t), embedded(t)
	current := first
	n := &nodeSync{
		cfg: cluster.Config{NodeName: "n1"}, log: quiet(),
		open: func(context.Context) (cluster.Store, error) { return cluster.NewEtcdStore(current.Client(), ""), nil },
	}
	other := &nodeSync{cfg: cluster.Config{NodeName: "n2"}, log: quiet(), open: n.open}
	other.SetNodes(&messages.NodeInput{Self: &messages.Node{Name: "n2", Uid: "2"}, Nodes: nodeOne("1").Nodes})
	two := runSync(t, other) // takes the lowest ID
	eventually(t, "the other one holds an ID", func() bool { return two.latest.Load().GetClaim() == messages.ClaimState_CLAIM_HELD })
	n.SetNodes(nodeOne("1"))
	n.Publish([]string{"192.168.7.1/24"})
	run := runSync(t, n)
	eventually(t, "ID 2 is held", run.holds(2, "192.168.7.1/24"))
	two.end(t)
	run.end(t)

	current = second // empty: ID 1 is free, but it is not ours
	run = runSync(t, n)
	if state := run.latest.Load(); state != nil && state.GetId() != 2 {
		t.Errorf("the first word is ID %d", state.GetId())
	}
	eventually(t, "ID 2 is held again", run.holds(2, "192.168.7.1/24"))
	run.end(t)
}

// TestNodeSyncWaitsForEtcd says so, and ends with its context.
func TestNodeSyncWaitsForEtcd(t *testing.T) {
	n := &nodeSync{cfg: cluster.Config{NodeName: "n1"}, log: quiet(), waitsFor: "etcd", open: func(ctx context.Context) (cluster.Store, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	run := runSync(t, n)
	eventually(t, "it waits", func() bool { return run.latest.Load().GetReason() == "waiting for etcd" })
	n.SetNodes(nodeOne("1")) // no syncer runs, and the call does not block
	n.Publish(nil)
	run.end(t)
}

// TestADoubtfulViewCollectsNobody: while the source does not see what happens, a node that is
// missing in what it said last keeps its ID.
func TestADoubtfulViewCollectsNobody(t *testing.T) {
	etcd := embedded(t)
	to := storeOf(etcd)
	other := &nodeSync{cfg: cluster.Config{NodeName: "n2"}, log: quiet(), open: to}
	other.SetNodes(&messages.NodeInput{Self: &messages.Node{Name: "n2", Uid: "2"}, Nodes: nodeOne("1").Nodes})
	two := runSync(t, other)
	eventually(t, "the other one holds an ID", func() bool { return two.latest.Load().GetClaim() == messages.ClaimState_CLAIM_HELD })
	two.end(t)

	n := &nodeSync{cfg: cluster.Config{NodeName: "n1", GracePeriod: 10 * time.Millisecond}, log: quiet(), open: to}
	n.trust(false)
	self := &messages.Node{Name: "n1", Uid: "1"}
	// n2 joined since
	n.SetNodes(&messages.NodeInput{Self: self, Nodes: map[string]*messages.Node{"n1": self}})
	n.Publish([]string{"192.168.7.1/24"})
	run := runSync(t, n)
	eventually(t, "the ID is held", run.holds(2, "192.168.7.1/24"))
	time.Sleep(100 * time.Millisecond) // ten times the grace period
	n.Publish([]string{"192.168.7.2/24"})
	eventually(t, "another address", run.holds(2, "192.168.7.2/24"))
	if id := run.latest.Load().GetNodes()["n2"].GetId(); id != 1 {
		t.Errorf("n2 has the ID %d", id)
	}
	n.trust(true) // the same view, and now it counts
	eventually(t, "n2 is collected", func() bool { return run.latest.Load().GetNodes()["n2"] == nil })
	run.end(t)
	var alone *nodeSync
	alone.trust(false)
}

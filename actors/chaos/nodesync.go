package chaos

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// nodeSync is the simulated store of node IDs, in the place of package cluster.
type nodeSync struct {
	sim     *runtime.Sim
	state   *messages.ClusterState
	version int
	broken  bool          // Run must end with an error
	slow    time.Duration // delay of each state

	nodes     []string // the last names of nodes from the agent
	published []string // the last addresses of this node from the agent
}

var _ desired.NodeSync = (*nodeSync)(nil)

func newNodeSync(sim *runtime.Sim) *nodeSync {
	n := &nodeSync{sim: sim}
	n.hold()
	return n
}

// Run satisfies desired.NodeSync.
func (n *nodeSync) Run(ctx context.Context, out func(*messages.ClusterState)) error {
	for seen := -1; ; {
		n.sim.Park(func() bool { return ctx.Err() != nil || n.broken || n.version != seen })
		switch {
		case ctx.Err() != nil:
			return nil
		case n.broken:
			n.broken = false
			return errBroken
		}
		seen = n.version
		n.sim.Sleep(n.slow, func() bool { return ctx.Err() != nil })
		out(n.state)
	}
}

// SetNodes satisfies desired.NodeSync.
func (n *nodeSync) SetNodes(in *messages.NodeInput) {
	n.nodes = slices.Sorted(maps.Keys(in.GetNodes()))
}

// Publish satisfies desired.NodeSync.
func (n *nodeSync) Publish(addresses []string) { n.published = addresses }

func (n *nodeSync) set(state *messages.ClusterState) {
	n.state = state
	n.version++
}

// hold gives this node its ID.
func (n *nodeSync) hold() {
	n.set(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 1})
}

// lose makes the store unreachable or empty; the agent claims again when it is back.
func (n *nodeSync) lose() {
	n.set(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_PENDING, Id: 1, Reason: "injected: the store is away"})
}

// fence gives the ID to another node.
func (n *nodeSync) fence() {
	n.set(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_FENCED, Id: 1, Reason: "injected: another node holds it"})
}

// wipe empties the store: the node gets another ID.
func (n *nodeSync) wipe() {
	n.set(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: n.state.GetId() + 1, Connected: true})
}

// garble makes the records of peers unreadable; the claim of this node stays.
func (n *nodeSync) garble() {
	n.set(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: n.state.GetId(), Connected: true, Reason: "injected: a record cannot be read"})
}

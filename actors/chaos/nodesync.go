package chaos

import (
	"context"
	"maps"
	"math/rand/v2"
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

// nodeIDs gives the store another state for a while.
func nodeIDs(claim messages.ClaimState, reason string) func(*world, *rand.Rand) {
	return func(w *world, r *rand.Rand) {
		w.nodes.set(&messages.ClusterState{Claim: claim, Id: w.nodes.state.GetId(), Connected: claim == messages.ClaimState_CLAIM_HELD, Reason: reason})
		w.later(seconds(r, 8), w.nodes.hold)
	}
}

// hold gives this node its ID.
func (n *nodeSync) hold() {
	n.set(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 1})
}

// wipe empties the store: the node gets another ID.
func (n *nodeSync) wipe() {
	n.set(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: n.state.GetId() + 1, Connected: true})
}

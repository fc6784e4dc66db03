package actorstest

import (
	"context"

	"github.com/troupe-vpp/troupe/messages"
)

// nodeSync is a node sync that gives the node an ID at once. It can be run again, but not twice at
// a time.
type nodeSync struct {
	park    func(ready func() bool)
	running bool
}

// Run satisfies desired.NodeSync.
func (n *nodeSync) Run(ctx context.Context, out func(*messages.ClusterState)) error {
	if n.running {
		return errTwice
	}
	n.running = true
	defer func() { n.running = false }()
	out(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 1})
	n.park(func() bool { return ctx.Err() != nil })
	return nil
}

// SetNodes satisfies desired.NodeSync.
func (*nodeSync) SetNodes(*messages.NodeInput) {}

// Publish satisfies desired.NodeSync.
func (*nodeSync) Publish([]string) {}

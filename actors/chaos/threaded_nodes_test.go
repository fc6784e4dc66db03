package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/messages"
)

// threadedNodes is nodeSync for goroutines.
type threadedNodes struct {
	wake chan struct{}

	mu     sync.Mutex // guards the following
	state  *messages.ClusterState
	broken bool
	slow   time.Duration // delay of each state
	told   nodeSync      // has the values from the agent
}

var _ desired.NodeSync = (*threadedNodes)(nil)

func newThreadedNodes() *threadedNodes {
	n := &threadedNodes{wake: make(chan struct{}, 1)}
	n.hold()
	return n
}

// claim sets the state of the claim to an ID, and the delay of its delivery.
func (n *threadedNodes) claim(state *messages.ClusterState, slow time.Duration) {
	n.mu.Lock()
	n.state, n.slow = state, slow
	n.mu.Unlock()
	nudge(n.wake)
}

// hold gives this node its ID.
func (n *threadedNodes) hold() {
	n.claim(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 1}, 0)
}

// fail ends a run with an error.
func (n *threadedNodes) fail() {
	n.mu.Lock()
	n.broken = true
	n.mu.Unlock()
	nudge(n.wake)
}

// Run satisfies desired.NodeSync.
func (n *threadedNodes) Run(ctx context.Context, out func(*messages.ClusterState)) error {
	for nudge(n.wake); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-n.wake:
		}
		n.mu.Lock()
		state, broken, slow := n.state, n.broken, n.slow
		n.broken = false
		n.mu.Unlock()
		if broken {
			return errBroken
		}
		if !pause(ctx, slow/speed) {
			return nil
		}
		out(state)
	}
}

// SetNodes satisfies desired.NodeSync.
func (n *threadedNodes) SetNodes(in *messages.NodeInput) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told.SetNodes(in)
}

// Publish satisfies desired.NodeSync.
func (n *threadedNodes) Publish(addresses []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told.Publish(addresses)
}

// nudge puts a token into a channel that holds one.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause reports false if ctx ended before the time was over.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// heard returns a copy of the values from the agent.
func (n *threadedNodes) heard() *nodeSync {
	n.mu.Lock()
	defer n.mu.Unlock()
	told := n.told
	return &told
}

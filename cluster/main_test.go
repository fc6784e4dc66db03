package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the longest time that a test waits for an expected event. No test asserts how soon it
// happens.
const patience = 60 * time.Second

// testClock is a clock that only a test moves.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newTestClock() *testClock { return &testClock{now: time.Unix(1_700_000_000, 0)} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// agent is a running Syncer with all states that it emitted.
type agent struct {
	*Syncer
	name string
	stop func()
	// forgets is true if only the last state is kept.
	forgets bool

	mu     sync.Mutex
	states []*messages.ClusterState
	more   chan struct{}
}

// testConfig returns a configuration with short intervals.
func testConfig(name string) Config {
	return Config{
		NodeName: name, ProbeInterval: 50 * time.Millisecond, RequestTimeout: time.Second,
		BackoffMin: time.Millisecond, BackoffMax: 20 * time.Millisecond,
	}
}

// startAgent runs a Syncer until it is stopped or the test ends.
func startAgent(t testing.TB, p place, cfg Config) *agent {
	t.Helper()
	return runAgent(t, p.store(t), cfg, false)
}

// runAgent is startAgent for many agents: they keep only the last state. The test may get each
// state through a callback.
func runAgent(t testing.TB, store Store, cfg Config, forgets bool, hear ...func(*messages.ClusterState)) *agent {
	t.Helper()
	return runSyncer(t, New(store, cfg, nil), forgets, hear...)
}

// runSyncer is runAgent for a Syncer that a test has made.
func runSyncer(t testing.TB, syncer *Syncer, forgets bool, hear ...func(*messages.ClusterState)) *agent {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a := &agent{Syncer: syncer, name: syncer.cfg.NodeName, more: make(chan struct{}, 1), forgets: forgets}
	ended := make(chan error, 1)
	go func() {
		ended <- a.Run(ctx, func(s *messages.ClusterState) {
			for _, f := range hear {
				f(s)
			}
			a.take(s)
		})
	}()
	a.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run of %s: %v", a.name, err)
		}
	})
	t.Cleanup(a.stop)
	return a
}

func (a *agent) take(state *messages.ClusterState) {
	a.mu.Lock()
	if a.forgets {
		a.states = a.states[:0]
	}
	a.states = append(a.states, state)
	a.mu.Unlock()
	select {
	case a.more <- struct{}{}:
	default:
	}
}

// state returns the last state of the agent.
func (a *agent) state() *messages.ClusterState {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.states) == 0 {
		return nil
	}
	return a.states[len(a.states)-1]
}

// history returns all states of the agent.
func (a *agent) history() []*messages.ClusterState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.states)
}

// waitFor waits until the agent's last state satisfies the condition, and returns it.
func (a *agent) waitFor(t testing.TB, what string, condition func(*messages.ClusterState) bool) *messages.ClusterState {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		if s := a.state(); s != nil && condition(s) {
			return s
		}
		select {
		case <-a.more:
		case <-time.After(20 * time.Millisecond): // the condition may look at the store, too
		case <-deadline.C:
			t.Fatalf("%s: not seen in time: %s; last state: %v", a.name, what, a.state())
		}
	}
}

// waitHeld waits until the agent holds an ID, and returns it.
func (a *agent) waitHeld(t testing.TB) uint32 {
	t.Helper()
	return a.waitFor(t, "a held claim", func(s *messages.ClusterState) bool {
		return s.GetClaim() == messages.ClaimState_CLAIM_HELD
	}).GetId()
}

// node makes a Kubernetes node.
func node(name, uid string, addresses ...string) *messages.Node {
	return &messages.Node{Name: name, Uid: uid, Addresses: addresses}
}

// nodesOf makes the view that a node has of Kubernetes.
func nodesOf(self string, nodes ...*messages.Node) *messages.NodeInput {
	in := &messages.NodeInput{Nodes: map[string]*messages.Node{}}
	for _, n := range nodes {
		in.Nodes[n.GetName()] = n
		if n.GetName() == self {
			in.Self = n
		}
	}
	return in
}

// named makes a view of nodes n1, n2 ... with the UIDs u1, u2 ...
func named(self string, count int) *messages.NodeInput {
	nodes := make([]*messages.Node, count)
	for i := range nodes {
		nodes[i] = node(fmt.Sprintf("n%d", i+1), fmt.Sprintf("u%d", i+1))
	}
	return nodesOf(self, nodes...)
}

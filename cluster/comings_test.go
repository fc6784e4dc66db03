package cluster

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

var members = flag.Int("members", 40, "number of nodes in TestComingsAndGoings")

// crowd is many nodes on one store. Some of them come, go, crash and start again.
type crowd struct {
	*testing.T
	place
	clock *testClock
	rand  *rand.Rand
	nodes map[string]*messages.Node
	// running are the agents, had the earlier IDs of their nodes.
	running map[string]*agent
	had     map[string]uint32
	made    int

	mu      sync.Mutex
	holders map[uint32]string // of running agents
	wrong   []string
}

// hear notes which agent holds an ID, and whether another agent holds it at the same time.
func (c *crowd) hear(name string, s *messages.ClusterState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.GetClaim() != holds {
		c.forget(name)
		return
	}
	if other := c.holders[s.GetId()]; other != "" && other != name {
		c.wrong = append(c.wrong, fmt.Sprintf("ID %d is held by %s and %s", s.GetId(), other, name))
	}
	c.holders[s.GetId()] = name
}

// forget notes that an agent holds no ID. The lock must be held.
func (c *crowd) forget(name string) {
	maps.DeleteFunc(c.holders, func(_ uint32, holder string) bool { return holder == name })
}

// add makes new Nodes.
func (c *crowd) add(count int) (names []string) {
	for range count {
		c.made++
		name := fmt.Sprintf("n%04d", c.made)
		c.nodes[name] = node(name, "u"+name)
		names = append(names, name)
	}
	return names
}

// start starts agents.
func (c *crowd) start(names []string) {
	for _, name := range names {
		cfg := testConfig(name)
		cfg.Now, cfg.GracePeriod, cfg.RequestTimeout, cfg.ProbeInterval, cfg.BackoffMax = c.clock.Now, time.Hour, time.Minute, time.Second, 500*time.Millisecond
		c.running[name] = runAgent(c.T, c.store(c.T), cfg, true, func(s *messages.ClusterState) { c.hear(name, s) })
	}
	c.tell()
}

// kill ends agents without a clean stop.
func (c *crowd) kill(names []string) {
	for _, name := range names {
		c.running[name].stop()
		delete(c.running, name)
		c.mu.Lock()
		c.forget(name)
		c.mu.Unlock()
	}
}

// tell gives every agent the current Nodes.
func (c *crowd) tell() {
	nodes := maps.Clone(c.nodes)
	for name, a := range c.running {
		a.SetNodes(&messages.NodeInput{Self: nodes[name], Nodes: nodes})
	}
}

// settle waits until every agent holds an ID. A node that had an ID must hold the same one.
func (c *crowd) settle(what string) {
	c.Helper()
	begun := time.Now()
	for name, a := range c.running {
		id := a.waitHeld(c.T)
		if had := c.had[name]; had != 0 && had != id {
			c.Errorf("%s: %s had ID %d and has ID %d", what, name, had, id)
		}
		c.had[name] = id
	}
	c.Logf("%s: %d agents settled after %s", what, len(c.running), time.Since(begun).Round(time.Millisecond))
}

// some draws running nodes.
func (c *crowd) some(count int) []string {
	names := slices.Sorted(maps.Keys(c.running))
	c.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:count]
}

// collect lets the grace period of nodes that have left pass, slowly, so that the observers do not
// all act at once.
func (c *crowd) collect(names []string) {
	c.Helper()
	c.clock.Advance(59 * time.Minute)
	deadline := time.Now().Add(5 * patience)
	for left := len(names); left > 0; {
		if time.Now().After(deadline) {
			c.Fatalf("%d of %d nodes are not collected", left, len(names))
		}
		c.clock.Advance(2 * time.Second)
		for _, a := range c.running {
			a.touch()
		}
		time.Sleep(10 * time.Millisecond)
		keys := c.keys(c.T)
		left = len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return keys[c.layout().id(c.had[name])] == "" }))
	}
}

// TestComingsAndGoings: nodes join at once, crash and start again, leave for ever and are replaced.
// No two running agents hold the same ID at any time, a node keeps its ID, and the IDs are dense at
// the end.
func TestComingsAndGoings(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		c := &crowd{
			T: t, place: p, clock: newTestClock(), rand: rand.New(rand.NewPCG(1, 2)),
			nodes: map[string]*messages.Node{}, running: map[string]*agent{}, had: map[string]uint32{}, holders: map[uint32]string{},
		}
		size := *members
		if testing.Short() {
			size = min(size, 10)
		}
		begun := time.Now()
		c.start(c.add(size))
		c.settle("joined")
		for round := range 3 {
			crashed, gone := c.some(size/10), []string(nil)
			c.kill(crashed)
			gone = c.some(size / 10)
			c.kill(gone)
			for _, name := range gone {
				delete(c.nodes, name)
			}
			c.start(crashed)
			c.settle(fmt.Sprintf("round %d, crashed and started again", round))
			c.collect(gone)
			c.start(c.add(len(gone)))
			c.settle(fmt.Sprintf("round %d, collected and replaced", round))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		var ids, want []uint32
		for id := range c.holders {
			ids = append(ids, id)
			want = append(want, uint32(len(want)+1))
		}
		slices.Sort(ids)
		if diff := cmp.Diff(want, ids); diff != "" || len(ids) != size {
			t.Errorf("%d IDs for %d nodes (-want +got):\n%s", len(ids), size, diff)
		}
		for _, problem := range c.wrong {
			t.Error(problem)
		}
		t.Logf("%d nodes: %s", size, time.Since(begun).Round(time.Millisecond))
	})
}

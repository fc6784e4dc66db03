package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

func mustEncode(t *testing.T, id uint32, name, uid string) string {
	t.Helper()
	value, err := encodeRecord(&messages.NodeRecord{Id: id, Name: name, Uid: uid})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func published(s *messages.ClusterState) bool { return s.GetPublished() }

func TestClaimAndRestart(t *testing.T) { everywhere(t, testClaimAndRestart) }

func testClaimAndRestart(t *testing.T, p place) {
	a := startAgent(t, p, testConfig("n1"))
	a.waitFor(t, "a reason to wait", func(s *messages.ClusterState) bool {
		return s.GetConnected() && strings.Contains(s.GetReason(), "waiting for Kubernetes")
	})
	if first := a.history()[0]; first.GetClaim() != waits || first.GetConnected() || first.GetSelf() != "n1" {
		t.Errorf("first state: %v", first)
	}
	a.SetNodes(named("n1", 2))
	if id := a.waitHeld(t); id != 1 {
		t.Errorf("first node has ID %d", id)
	}
	b := startAgent(t, p, testConfig("n2"))
	b.SetNodes(named("n2", 2))
	if id := b.waitHeld(t); id != 2 {
		t.Errorf("second node has ID %d", id)
	}
	a.waitFor(t, "the peer", func(s *messages.ClusterState) bool { return s.GetNodes()["n2"].GetId() == 2 })
	a.stop()
	again := startAgent(t, p, testConfig("n1"))
	if id := again.waitHeld(t); id != 1 { // without a list from Kubernetes
		t.Errorf("restarted node has ID %d", id)
	}
	checkGenerations(t, a.history())
	checkGenerations(t, again.history())
}

// checkGenerations shows that generations grow by one and that equal states are not repeated.
func checkGenerations(t *testing.T, states []*messages.ClusterState) {
	t.Helper()
	for i, s := range states {
		if s.GetGeneration() != uint64(i+1) {
			t.Errorf("state %d has generation %d", i, s.GetGeneration())
		}
		if i > 0 && cmp.Equal(stripped(s), stripped(states[i-1])) {
			t.Errorf("state %d repeats the one before: %v", i, s)
		}
	}
}

// stripped renders a state without its generation.
func stripped(s *messages.ClusterState) []string {
	lines := []string{s.GetClaim().String(), s.GetReason(), s.GetSelf(), string(rune(s.GetId()))}
	for name, n := range s.GetNodes() {
		lines = append(lines, name+n.String())
	}
	if s.GetConnected() {
		lines = append(lines, "connected")
	}
	if s.GetPublished() {
		lines = append(lines, "published")
	}
	return lines
}

func TestRunOnce(t *testing.T) { everywhere(t, testRunOnce) }

func testRunOnce(t *testing.T, p place) {
	a := startAgent(t, p, testConfig("n1"))
	a.waitFor(t, "a connection", (*messages.ClusterState).GetConnected)
	if err := a.Run(context.Background(), nil); !errors.Is(err, ErrRunning) {
		t.Errorf("second run: %v, want ErrRunning", err)
	}
}

// TestDataLoss deletes the whole prefix while two nodes run: both claim their IDs again and publish
// again.
func TestDataLoss(t *testing.T) { everywhere(t, testDataLoss) }

func testDataLoss(t *testing.T, p place) {
	agents := []*agent{startAgent(t, p, testConfig("n1")), startAgent(t, p, testConfig("n2"))}
	ids := map[string]uint32{}
	for _, a := range agents {
		a.SetNodes(named(a.name, 2))
		a.Publish([]string{"10.0.0.1/24"})
		ids[a.name] = a.waitHeld(t)
		a.waitFor(t, "its addresses published", published)
	}
	before := p.keys(t)
	generation := agents[0].state().GetGeneration()
	p.remove(t, slices.Collect(maps.Keys(before))...)
	for _, a := range agents {
		s := a.waitFor(t, "the claim renewed", func(s *messages.ClusterState) bool {
			return s.GetClaim() == holds && s.GetPublished() && len(p.keys(t)) == len(before)
		})
		if s.GetId() != ids[a.name] {
			t.Errorf("%s had ID %d and has ID %d", a.name, ids[a.name], s.GetId())
		}
	}
	if diff := cmp.Diff(before, p.keys(t)); diff != "" {
		t.Errorf("what is stored changed (-before +after):\n%s", diff)
	}
	lost := false
	for _, s := range agents[0].history()[generation:] {
		lost = lost || s.GetClaim() == waits
	}
	if !lost {
		t.Error("the loss was never visible")
	}
}

// TestStoreComesBackEmpty takes the store away and brings it back empty at the same address.
// Revisions start again, so a watch alone would wait for an old, higher revision.
func TestStoreComesBackEmpty(t *testing.T) { everywhere(t, testStoreComesBackEmpty) }

func testStoreComesBackEmpty(t *testing.T, p place) {
	for range 20 { // the next store is far behind this one
		p.put(t, p.layout().addresses("n7"), `{"name":"n7"}`)
	}
	p.remove(t, p.layout().addresses("n7"), p.layout().name("n7"))
	cfg := testConfig("n1")
	cfg.LastID = 4
	a := startAgent(t, p, cfg)
	a.SetNodes(named("n1", 1))
	if id := a.waitHeld(t); id != 4 {
		t.Fatalf("has ID %d, want the one of the mirror", id)
	}
	p.stop(t)
	a.waitFor(t, "the connection lost", func(s *messages.ClusterState) bool {
		return !s.GetConnected() && s.GetClaim() == holds && strings.Contains(s.GetReason(), a.traits.name+": ")
	})
	p.lose(t)
	p.start(t)
	s := a.waitFor(t, "the ID in the new store", func(s *messages.ClusterState) bool {
		return s.GetConnected() && s.GetClaim() == holds && p.keys(t)[p.layout().id(4)] != ""
	})
	if s.GetId() != 4 {
		t.Errorf("has ID %d after the loss", s.GetId())
	}
	a.stop()
}

func TestFence(t *testing.T) { everywhere(t, testFence) }

func testFence(t *testing.T, p place) {
	a := startAgent(t, p, testConfig("n1"))
	a.SetNodes(named("n1", 2))
	a.waitHeld(t)
	thief := mustEncode(t, 1, "n2", "u2")
	p.put(t, p.layout().id(1), thief)
	p.put(t, p.layout().name("n2"), thief)
	p.remove(t, p.layout().name("n1"))
	s := a.waitFor(t, "the fence", func(s *messages.ClusterState) bool { return s.GetClaim() == fence })
	if !strings.Contains(s.GetReason(), "ID 1, which this node has used, is held by node n2") || s.GetId() != 1 {
		t.Errorf("fenced with ID %d, reason %q", s.GetId(), s.GetReason())
	}
	if s.GetNodes()["n1"].GetId() != 0 || s.GetNodes()["n2"].GetId() != 1 {
		t.Errorf("nodes: %v", s.GetNodes())
	}
	p.remove(t, p.layout().name("n2"), p.layout().id(1))
	if id := a.waitHeld(t); id != 1 {
		t.Errorf("holds ID %d after the fence was lifted", id)
	}
}

// TestTakeover creates a node again under its name on another machine. The new agent gets the ID.
// The old agent still runs with the old UID; it is fenced and does not take the ID back.
func TestTakeover(t *testing.T) { everywhere(t, testTakeover) }

func testTakeover(t *testing.T, p place) {
	old := startAgent(t, p, testConfig("n1"))
	old.SetNodes(nodesOf("n1", node("n1", "old")))
	old.waitHeld(t)
	next := startAgent(t, p, testConfig("n1"))
	next.SetNodes(nodesOf("n1", node("n1", "new")))
	next.waitFor(t, "the takeover", func(s *messages.ClusterState) bool {
		return s.GetClaim() == holds && s.GetId() == 1 && strings.Contains(p.keys(t)[p.layout().name("n1")], "new")
	})
	s := old.waitFor(t, "the fence", func(s *messages.ClusterState) bool { return s.GetClaim() == fence })
	if !strings.Contains(s.GetReason(), "taken over by another agent") {
		t.Errorf("reason %q", s.GetReason())
	}
	// The Node is created once more while its agent runs: same agent, new UID.
	next.SetNodes(nodesOf("n1", node("n1", "newer")))
	next.waitFor(t, "the new UID", func(s *messages.ClusterState) bool {
		return s.GetClaim() == holds && strings.Contains(p.keys(t)[p.layout().id(1)], "newer")
	})
}

// TestTwoRaceForOneID holds the first transaction of two nodes until both have decided on the same
// snapshot.
func TestTwoRaceForOneID(t *testing.T) { everywhere(t, testTwoRaceForOneID) }

func testTwoRaceForOneID(t *testing.T, p place) {
	var waiting atomic.Int32
	start := make(chan struct{})
	gate := func() error {
		if waiting.Add(1) == 2 {
			close(start)
		}
		<-start
		return nil
	}
	ids := map[uint32]bool{}
	var agents []*agent
	for _, name := range []string{"n1", "n2"} {
		a := runAgent(t, hookedStore{p.store(t), gate}, testConfig(name), false)
		a.SetNodes(named(name, 2))
		agents = append(agents, a)
	}
	for _, a := range agents {
		ids[a.waitHeld(t)] = true
	}
	if !ids[1] || !ids[2] {
		t.Errorf("IDs %v, want 1 and 2", ids)
	}
}

// TestCollection removes a node from Kubernetes. No observer releases its ID before the grace
// period is over. Then an observer does, and the next new node gets the ID.
func TestCollection(t *testing.T) { everywhere(t, testCollection) }

func testCollection(t *testing.T, p place) {
	clock := newTestClock()
	config := func(name string) Config {
		c := testConfig(name)
		c.Now, c.GracePeriod = clock.Now, time.Hour
		return c
	}
	a, b, gone := startAgent(t, p, config("n1")), startAgent(t, p, config("n2")), startAgent(t, p, config("n3"))
	for _, x := range []*agent{a, b, gone} {
		x.SetNodes(named(x.name, 3))
		x.waitHeld(t)
	}
	gone.Publish([]string{"10.0.0.3/24"})
	lost := gone.waitFor(t, "its addresses published", published).GetId()
	gone.stop()
	// A state with n1's management address shows that the view without n3 has arrived, and one
	// with n3's addresses that its last write has. Until then the clock must not start.
	for _, x := range []*agent{a, b} {
		view := named(x.name, 2)
		view.Nodes["n1"].Addresses = []string{"192.0.2.1"}
		x.SetNodes(view)
		x.waitFor(t, "the new view and the last write", func(s *messages.ClusterState) bool {
			return len(s.GetNodes()["n1"].GetManagementAddresses()) == 1 && len(s.GetNodes()["n3"].GetVppAddresses()) == 1
		})
	}
	clock.Advance(59 * time.Minute)
	if p.keys(t)[p.layout().name("n3")] == "" {
		t.Error("collected before the grace was over")
	}
	clock.Advance(10 * time.Minute) // the grace and its jitter
	for _, x := range []*agent{a, b} {
		x.touch() // timers run on the clock of the machine
		x.waitFor(t, "the node gone", func(s *messages.ClusterState) bool { return s.GetNodes()["n3"] == nil })
	}
	for _, key := range nodeKeys(p.layout(), lost, "n3") {
		if value, ok := p.keys(t)[key]; ok {
			t.Errorf("%s is still there: %s", key, value)
		}
	}
	late := startAgent(t, p, config("n9"))
	late.SetNodes(nodesOf("n9", node("n1", "u1"), node("n2", "u2"), node("n9", "u9")))
	if id := late.waitHeld(t); id != lost {
		t.Errorf("newcomer has ID %d, want the collected %d", id, lost)
	}
}

// TestPublishWhileAway changes the addresses twice while the store is away: the last value arrives
// without a further call.
func TestPublishWhileAway(t *testing.T) { everywhere(t, testPublishWhileAway) }

func testPublishWhileAway(t *testing.T, p place) {
	a := startAgent(t, p, testConfig("n1"))
	a.SetNodes(named("n1", 1))
	a.Publish([]string{"10.0.0.1/24"})
	a.waitFor(t, "its addresses published", published)
	p.stop(t)
	a.waitFor(t, "the connection lost", func(s *messages.ClusterState) bool { return !s.GetConnected() })
	a.Publish([]string{"10.0.0.2/24"})
	a.waitFor(t, "the new wish", func(s *messages.ClusterState) bool { return !s.GetPublished() })
	a.Publish([]string{"10.0.0.1/16"})
	p.start(t)
	s := a.waitFor(t, "the new addresses published", published)
	if diff := cmp.Diff([]string{"10.0.0.1/16"}, s.GetNodes()["n1"].GetVppAddresses()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if s.GetId() != 1 || s.GetClaim() != holds {
		t.Errorf("claim after the outage: %s, ID %d", s.GetClaim(), s.GetId())
	}
}

// TestWriteFails: transactions fail for a while although the store answers. The reason shows it,
// and the last value is published in the end.
func TestWriteFails(t *testing.T) { everywhere(t, testWriteFails) }

func testWriteFails(t *testing.T, p place) {
	var broken atomic.Bool
	a := runAgent(t, hookedStore{p.store(t), func() error {
		if broken.Load() {
			return errors.New("database space exceeded")
		}
		return nil
	}}, testConfig("n1"), false)
	a.SetNodes(named("n1", 1))
	a.waitHeld(t)
	broken.Store(true)
	a.Publish([]string{"10.0.0.1/24"})
	a.waitFor(t, "the error", func(s *messages.ClusterState) bool {
		return s.GetConnected() && strings.Contains(s.GetReason(), "database space exceeded")
	})
	broken.Store(false)
	a.waitFor(t, "its addresses published", func(s *messages.ClusterState) bool { return s.GetPublished() && s.GetReason() == "" })
}

// TestCompaction compacts everything while the store is away, so that the watch cannot resume.
func TestCompaction(t *testing.T) { everywhere(t, testCompaction) }

func testCompaction(t *testing.T, p place) {
	a := startAgent(t, p, testConfig("n1"))
	a.SetNodes(named("n1", 1))
	a.waitHeld(t)
	p.stop(t)
	a.waitFor(t, "the connection lost", func(s *messages.ClusterState) bool { return !s.GetConnected() })

	peer := mustEncode(t, 2, "n2", "u2")
	p.miss(t, map[string]string{p.layout().id(2): peer, p.layout().name("n2"): peer})
	p.start(t)
	a.waitFor(t, "what happened meanwhile", func(s *messages.ClusterState) bool { return s.GetNodes()["n2"].GetId() == 2 })
	p.put(t, p.layout().addresses("n2"), `{"name":"n2","vppAddresses":["10.0.0.2/24"]}`)
	a.waitFor(t, "what happens afterwards", func(s *messages.ClusterState) bool {
		return len(s.GetNodes()["n2"].GetVppAddresses()) == 1 && s.GetReason() == ""
	})
}

// TestUndecodablePeer damages a record of a peer: the last good value stays and the reason names
// the key. A deletion still counts as a deletion.
func TestUndecodablePeer(t *testing.T) { everywhere(t, testUndecodablePeer) }

func testUndecodablePeer(t *testing.T, p place) {
	a := startAgent(t, p, testConfig("n1"))
	a.SetNodes(named("n1", 1))
	a.waitHeld(t)
	key := p.layout().addresses("n2")
	p.put(t, p.layout().id(2), mustEncode(t, 2, "n2", "u2"))
	p.put(t, p.layout().name("n2"), mustEncode(t, 2, "n2", "u2"))
	p.put(t, key, `{"name":"n2","vppAddresses":["10.0.0.2/24"]}`)
	a.waitFor(t, "the peer", func(s *messages.ClusterState) bool { return len(s.GetNodes()["n2"].GetVppAddresses()) == 1 })
	p.put(t, key, `{"name":`)
	s := a.waitFor(t, "the error", func(s *messages.ClusterState) bool { return strings.Contains(s.GetReason(), key) })
	if diff := cmp.Diff([]string{"10.0.0.2/24"}, s.GetNodes()["n2"].GetVppAddresses()); diff != "" || s.GetClaim() != holds {
		t.Errorf("claim %s, last good value (-want +got):\n%s", s.GetClaim(), diff)
	}
	p.remove(t, key)
	a.waitFor(t, "the deletion", func(s *messages.ClusterState) bool {
		return len(s.GetNodes()["n2"].GetVppAddresses()) == 0 && s.GetNodes()["n2"].GetId() == 2 && s.GetReason() == ""
	})
}

// TestStoreAppearsLate starts a node before its store: the reason says so, with the ID of its
// mirror, and the node joins when the store is there.
func TestStoreAppearsLate(t *testing.T) { everywhere(t, testStoreAppearsLate) }

func testStoreAppearsLate(t *testing.T, p place) {
	p.stop(t)
	cfg := testConfig("n1")
	cfg.LastID = 3
	a := startAgent(t, p, cfg)
	a.SetNodes(named("n1", 2))
	s := a.waitFor(t, "the failure and the nodes", func(s *messages.ClusterState) bool {
		return strings.Contains(s.GetReason(), a.traits.name+": ") && len(s.GetNodes()) == 2
	})
	if s.GetClaim() != waits || s.GetId() != 3 {
		t.Errorf("without the store: %v", s)
	}
	p.start(t)
	if id := a.waitHeld(t); id != 3 {
		t.Errorf("has ID %d, want the one of the mirror", id)
	}
}

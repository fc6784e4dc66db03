package cluster

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

// crowdSize is how many nodes join at once.
var crowdSize = flag.Int("crowd", 60, "how many nodes claim their first ID at the same moment; CI plays 300")

// TestCrowdJoinsAtOnce: many nodes claim their first ID at the same moment. All get different IDs,
// without a gap.
func TestCrowdJoinsAtOnce(t *testing.T) { everywhere(t, testCrowdJoinsAtOnce) }

func testCrowdJoinsAtOnce(t *testing.T, p place) {
	count := *crowdSize
	agents := make([]*agent, count)
	start := time.Now()
	for i := range agents {
		name := fmt.Sprintf("n%d", i+1)
		agents[i] = runAgent(t, p.store(t), Config{NodeName: name}, true)
		agents[i].SetNodes(named(name, count))
	}
	ids := map[uint32]string{}
	for _, a := range agents {
		ids[a.waitHeld(t)] = a.name
	}
	if l, ok := p.(*leasePlace); ok {
		t.Logf("%d lists, %d creations, %d changes, %d deletions", l.server.Requests("list"), l.server.Requests("create"), l.server.Requests("patch"), l.server.Requests("delete"))
	}
	t.Logf("%d nodes joined in %s", count, time.Since(start).Round(time.Millisecond))

	want := make([]uint32, count)
	for i := range want {
		want[i] = uint32(i + 1)
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(ids))); diff != "" {
		t.Errorf("IDs are not 1..%d (-want +got):\n%s", count, diff)
	}
	// All nodes have the same IDs for each other.
	for _, a := range []*agent{agents[0], agents[count-1]} {
		state := a.waitFor(t, "all peers with their IDs", func(s *messages.ClusterState) bool {
			for _, n := range s.GetNodes() {
				if n.GetId() == 0 {
					return false
				}
			}
			return len(s.GetNodes()) == count
		})
		for id, name := range ids {
			if got := state.GetNodes()[name].GetId(); got != id {
				t.Errorf("%s sees %s with ID %d, it holds %d", a.name, name, got, id)
			}
		}
	}
	t.Logf("all nodes had all peers after %s", time.Since(start).Round(time.Millisecond))
}

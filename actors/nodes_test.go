package actors

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

func TestNodesFeedsNodeSync(t *testing.T) {
	perform(t, PathNodes, nil, func(s *stage) {
		s.tell(&messages.NodeChanged{Input: testNodeInput(4)})
		if s.sync.nodes.GetGeneration() != 4 {
			t.Errorf("nodes %v", s.sync.nodes)
		}
		for _, address := range []string{"192.168.16.1/24", "192.168.16.1/24", "", "192.168.16.2/24"} {
			set := &messages.InterfaceSet{}
			if address != "" {
				set.NodeAddresses = []string{address}
			}
			s.tell(set)
		}
		want := [][]string{{"192.168.16.1/24"}, {"192.168.16.2/24"}} // an uplink that is gone for a moment withdraws nothing
		if diff := cmp.Diff(want, s.sync.published); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

func TestNodesIsHealthyWithAnID(t *testing.T) {
	perform(t, PathNodes, nil, func(s *stage) {
		if h := latest[*messages.Health](s, PathHealer); h.GetOk() {
			t.Errorf("healthy without an ID: %v", h)
		}
		for _, step := range []struct {
			state *messages.ClusterState
			ok    bool
			event bool
		}{
			{&messages.ClusterState{Claim: messages.ClaimState_CLAIM_PENDING, Reason: "no answer"}, false, false},
			{&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 3}, true, true},
			{&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 3, Connected: true}, true, false},
			{&messages.ClusterState{Claim: messages.ClaimState_CLAIM_FENCED, Id: 3, Reason: "held by n9"}, false, true},
		} {
			s.forget()
			s.sync.states <- step.state
			s.run(time.Millisecond)
			h, e := latest[*messages.Health](s, PathHealer), latest[*messages.Event](s, PathJournal)
			if h.GetOk() != step.ok || h.GetReason() != step.state.GetReason() || (e != nil) != step.event {
				t.Errorf("%v: health %v, event %v", step.state, h, e)
			}
		}
		s.forget()
		s.run(healthRepeat + time.Second)
		if latest[*messages.ClusterState](s, PathIntrospect).GetId() != 3 || latest[*messages.Health](s, PathHealer) == nil {
			t.Error("state and health are not repeated")
		}
	})
}

func TestRestartedNodesRunsAnotherNodeSync(t *testing.T) {
	perform(t, PathNodes, nil, func(s *stage) {
		s.tell(&messages.InterfaceSet{NodeAddresses: []string{"192.168.16.1/24"}})
		second := newFakeSync()
		s.deps.NewNodeSync = func() NodeSync { return second }
		s.sync.states <- nil
		s.run(100 * time.Millisecond)
		if len(s.faults) != 1 || !strings.Contains(s.faults[0].GetReason(), "gave up") {
			t.Errorf("faults %v", s.faults)
		}
		if s.sync.runs != 1 || second.runs != 1 {
			t.Errorf("ran %d and %d times, want each once: node sync can be run once", s.sync.runs, second.runs)
		}
		if got := latest[*messages.Resync](s, PathInterfaces).GetSibling(); got != "nodes" {
			t.Error("did not ask for the addresses")
		}
		s.tell(&messages.InterfaceSet{NodeAddresses: []string{"192.168.16.1/24"}}, &messages.NodeChanged{Input: testNodeInput(4)})
		if len(second.published) != 1 || !slices.Equal(second.published[0], []string{"192.168.16.1/24"}) || second.nodes == nil {
			t.Errorf("the new one knows %v and %v", second.published, second.nodes)
		}
	})
}

func TestNodesAloneDoesNothing(t *testing.T) {
	alone := &Deps{NodeName: testNode}
	if alone.nodeSync(1) != nil || alone.nodeSync(2) != nil {
		t.Error("node sync out of nothing")
	}
}

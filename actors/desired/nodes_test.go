package desired

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/messages"
)

func TestNodesFeedsNodeSync(t *testing.T) {
	perform(t, address.Nodes, nil, func(s *stage) {
		s.Tell(&messages.NodeChanged{Input: testNodeInput(4)})
		if s.sync.nodes.GetGeneration() != 4 {
			t.Errorf("nodes %v", s.sync.nodes)
		}
		for _, uplink := range []string{"192.168.16.1/24", "192.168.16.1/24", "", "192.168.16.2/24"} {
			set := &messages.InterfaceSet{Complete: true}
			if uplink != "" {
				set.NodeAddresses = []string{uplink}
			}
			s.Tell(set)
		}
		// an uplink that is gone for a moment withdraws nothing
		want := [][]string{{"192.168.16.1/24"}, {"192.168.16.2/24"}}
		if diff := cmp.Diff(want, s.sync.published); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

func TestNodesIsHealthyWithAnID(t *testing.T) {
	perform(t, address.Nodes, nil, func(s *stage) {
		if h := probe.Latest[*messages.Health](s.Stage, address.Healer); h.GetOk() {
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
			s.Forget()
			s.sync.states = append(s.sync.states, step.state)
			s.Run(time.Millisecond)
			h, e := probe.Latest[*messages.Health](s.Stage, address.Healer), probe.Latest[*messages.Event](s.Stage, address.Journal)
			if h.GetOk() != step.ok || h.GetReason() != step.state.GetReason() || (e != nil) != step.event {
				t.Errorf("%v: health %v, event %v", step.state, h, e)
			}
		}
		s.Forget()
		s.Run(report.Heartbeat)
		if probe.Latest[*messages.Health](s.Stage, address.Healer) == nil || probe.Latest[*messages.ClusterState](s.Stage, address.Introspect) != nil {
			t.Error("the health is not repeated, or the state is repeated without a question")
		}
		s.Tell(&messages.Resync{Sibling: "introspect"})
		if probe.Latest[*messages.ClusterState](s.Stage, address.Introspect).GetId() != 3 {
			t.Error("the state is not repeated")
		}
	})
}

func TestRestartedNodesRunsNodeSyncAgain(t *testing.T) {
	perform(t, address.Nodes, nil, func(s *stage) {
		uplink := &messages.InterfaceSet{NodeAddresses: []string{"192.168.16.1/24"}, Complete: true}
		s.Tell(uplink)
		s.sync.fails = true
		s.Run(100 * time.Millisecond)
		if len(s.Faults) != 1 || !strings.Contains(s.Faults[0].GetReason(), "gave up") || s.sync.runs != 2 {
			t.Errorf("faults %v, %d runs", s.Faults, s.sync.runs)
		}
		if got := probe.Latest[*messages.Resync](s.Stage, address.Interfaces).GetSibling(); got != "nodes" {
			t.Error("did not ask for the addresses")
		}
		s.Tell(uplink)
		if len(s.sync.published) != 2 {
			t.Errorf("published %v, want that it is said again", s.sync.published)
		}
	})
}

func TestPeersThatComeAndGoAreInTheJournal(t *testing.T) {
	state := func(nodes ...*messages.ClusterNode) *messages.ClusterState {
		s := &messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 1, Self: "n1", Nodes: map[string]*messages.ClusterNode{}}
		for _, n := range append(nodes, &messages.ClusterNode{Name: "n1", Id: 1}) {
			s.Nodes[n.GetName()] = n
		}
		return s
	}
	peer := func(id uint32, uplink string) *messages.ClusterNode {
		return &messages.ClusterNode{Name: fmt.Sprintf("n%d", id), Id: id, VppAddresses: []string{uplink}}
	}
	var crowd []*messages.ClusterNode
	for id := range uint32(300) {
		crowd = append(crowd, peer(id+4, "192.168.16.9/24"))
	}
	perform(t, address.Nodes, nil, func(s *stage) {
		for _, step := range []struct {
			state *messages.ClusterState
			want  []string
		}{
			// what is there is no news
			{state(peer(2, "192.168.16.2/24")), []string{"n1: node ID 1 CLAIM_HELD"}},
			{state(peer(2, "192.168.16.2/24"), peer(3, "192.168.16.3/24")), []string{"n3: joined with node ID 3, VPP at 192.168.16.3/24"}},
			{state(peer(3, "192.168.16.33/24")), []string{"n2: left; it had node ID 2", "n3: now has VPP at 192.168.16.33/24"}},
			{state(append(crowd, peer(3, "192.168.16.33/24"))...), []string{"n1: of the other nodes 300 joined, 0 left, 0 changed"}},
			{state(append(crowd, peer(3, "192.168.16.33/24"))...), nil},
		} {
			s.Forget()
			s.sync.states = append(s.sync.states, step.state)
			s.Run(time.Millisecond)
			var got []string
			for _, e := range probe.All[*messages.Event](s.Stage, address.Journal) {
				got = append(got, e.GetObject()+": "+e.GetText())
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
	})
}
